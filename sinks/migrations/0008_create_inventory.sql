-- Which jobs and ranks there are, folded from windows by min and max, which a redelivered window cannot change.
-- Where a value changed within an attempt, the greatest is shown: a known value wins over an empty one.
CREATE TABLE IF NOT EXISTS ranks
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job',
    attempt LowCardinality(String) COMMENT 'Restart of the job',
    worker String COMMENT 'Rank or group/rank',
    rank SimpleAggregateFunction(max, Nullable(Int32)) COMMENT 'Global rank',
    local_rank SimpleAggregateFunction(max, Nullable(Int32)) COMMENT 'Rank within its node',
    node SimpleAggregateFunction(max, String) COMMENT 'Host name',
    cluster SimpleAggregateFunction(max, String) COMMENT 'Cluster',
    process_type SimpleAggregateFunction(max, String) COMMENT 'trainer, dataloader ...',
    role SimpleAggregateFunction(max, String) COMMENT 'Parallel or RL role',
    pp SimpleAggregateFunction(max, Nullable(Int32)) COMMENT 'Coordinate pp',
    dp SimpleAggregateFunction(max, Nullable(Int32)) COMMENT 'Coordinate dp',
    tp SimpleAggregateFunction(max, Nullable(Int32)) COMMENT 'Coordinate tp',
    cp SimpleAggregateFunction(max, Nullable(Int32)) COMMENT 'Coordinate cp',
    ep SimpleAggregateFunction(max, Nullable(Int32)) COMMENT 'Coordinate ep',
    coordinates SimpleAggregateFunction(max, String) COMMENT 'All coordinates as text',
    device SimpleAggregateFunction(max, String) COMMENT 'Device',
    first_seen SimpleAggregateFunction(min, DateTime64(9, 'UTC')) COMMENT 'Start of its first window',
    last_seen SimpleAggregateFunction(max, DateTime64(9, 'UTC')) COMMENT 'End of its last window',
    iteration SimpleAggregateFunction(max, Nullable(Int64)) COMMENT 'Furthest iteration reached',
    stored SimpleAggregateFunction(max, DateTime) MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = AggregatingMergeTree
ORDER BY (job, run_id, attempt, worker)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Ranks of each attempt of a job';

CREATE TABLE IF NOT EXISTS jobs
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job',
    attempt LowCardinality(String) COMMENT 'Restart of the job',
    cluster SimpleAggregateFunction(max, String) COMMENT 'Cluster',
    world_size SimpleAggregateFunction(max, Nullable(Int64)) COMMENT 'Ranks the job says it has',
    iteration SimpleAggregateFunction(max, Nullable(Int64)) COMMENT 'Furthest iteration reached',
    total_iterations SimpleAggregateFunction(max, Nullable(Int64)) COMMENT 'Iterations the job means to run',
    layout SimpleAggregateFunction(max, String) COMMENT 'Parallel layout as text, dp=4 tp=2',
    first_seen SimpleAggregateFunction(min, DateTime64(9, 'UTC')) COMMENT 'Start of its first window',
    last_seen SimpleAggregateFunction(max, DateTime64(9, 'UTC')) COMMENT 'End of its last window',
    stored SimpleAggregateFunction(max, DateTime) MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = AggregatingMergeTree
ORDER BY (job, run_id, attempt)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Attempts of jobs';

CREATE TABLE IF NOT EXISTS runs
(
    run_id String COMMENT 'Run',
    kind LowCardinality(String) COMMENT 'diagnose, replay or demo',
    job String COMMENT 'Job, empty for several',
    started DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Event time of the first record',
    ended DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Event time of the last record',
    versions Map(String, String) COMMENT 'Versions used, by component',
    inputs Int64 COMMENT 'Records read',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree(ended)
ORDER BY (run_id)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Runs of diagnose, replay and demo';

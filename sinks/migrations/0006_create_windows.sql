-- What the rank stage said of one worker in one window. The columns answer the common questions; json holds
-- the whole record.
CREATE TABLE IF NOT EXISTS windows
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job, - for what belongs to an idle node',
    attempt LowCardinality(String) COMMENT 'Restart of the job, from 0',
    cluster LowCardinality(String) COMMENT 'Cluster that runs the job',
    node LowCardinality(String) COMMENT 'Host name',
    worker LowCardinality(String) COMMENT 'Rank, group/rank or node:NAME; the part of the Kafka key behind the job',
    rank Nullable(Int32) COMMENT 'Global rank; null where it is not known or the row belongs to a node',
    rank_reason LowCardinality(String) COMMENT 'Why the rank is null',
    local_rank Nullable(Int32) COMMENT 'Rank within its node',
    process_type LowCardinality(String) COMMENT 'trainer, dataloader, launcher, checkpoint writer ...',
    role LowCardinality(String) COMMENT 'Parallel or RL role',
    worker_group LowCardinality(String) COMMENT 'Group within which ranks restart (RL), else empty',
    pp Nullable(Int32) COMMENT 'Pipeline stage; null where unknown or several, see coordinates',
    dp Nullable(Int32) COMMENT 'Data-parallel coordinate',
    tp Nullable(Int32) COMMENT 'Tensor-parallel coordinate',
    cp Nullable(Int32) COMMENT 'Context-parallel coordinate',
    ep Nullable(Int32) COMMENT 'Expert-parallel coordinate',
    coordinates LowCardinality(String) COMMENT 'All coordinates as text, dp=1 pp=0,4',
    device LowCardinality(String) COMMENT 'Device of the worker, empty where none',
    id String COMMENT 'Deterministic id',
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Start of the window, UTC',
    window_end DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'End of the window, excluded',
    phase LowCardinality(String) COMMENT 'Phase at the end of the window',
    iteration Nullable(Int64) COMMENT 'Last iteration reached',
    iteration_time Nullable(DateTime64(9, 'UTC')) CODEC(ZSTD(1)) COMMENT 'When it was reached',
    total_iterations Nullable(Int64) COMMENT 'Iterations the job means to run',
    log_records Int64 COMMENT 'Log records in the window',
    last_log Nullable(DateTime64(9, 'UTC')) CODEC(ZSTD(1)) COMMENT 'Time of the last log record',
    heartbeats Int64 COMMENT 'Heartbeats of the producer',
    pids Array(Int64) COMMENT 'Processes seen',
    world_size Nullable(Int64) COMMENT 'Ranks the job says it has',
    signatures Array(LowCardinality(String)) CODEC(ZSTD(1)) COMMENT 'Signatures printed',
    signature_counts Array(Int64) CODEC(ZSTD(1)) COMMENT 'How often each was printed',
    series_names Array(LowCardinality(String)) COMMENT 'Metrics by iteration',
    series_last Array(Nullable(Float64)) COMMENT 'Their last values; null where not finite',
    gauge_names Array(LowCardinality(String)) COMMENT 'Sampled metrics',
    gauge_means Array(Float64) COMMENT 'Their means over the window',
    stack_activities Array(LowCardinality(String)) COMMENT 'What each stack span was doing: communication, data, idle ...',
    stack_places Array(String) COMMENT 'Innermost function of each span',
    fatal_rules Array(LowCardinality(String)) COMMENT 'Rules that known-fatal lines matched',
    fatal_texts Array(String) CODEC(ZSTD(1)) COMMENT 'Those lines',
    exit_codes Array(Nullable(Int64)) COMMENT 'Exit codes that launchers reported',
    drift_metrics Array(LowCardinality(String)) COMMENT 'Metrics with a verified shift',
    stopped Nullable(DateTime64(9, 'UTC')) CODEC(ZSTD(1)) COMMENT 'When the worker stopped',
    finished Nullable(DateTime64(9, 'UTC')) CODEC(ZSTD(1)) COMMENT 'When the worker finished its work',
    dropped Map(LowCardinality(String), Int64) COMMENT 'What was left out, by reason',
    json String CODEC(ZSTD(3)) COMMENT 'The whole record',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (job, ts, worker, run_id, attempt, id)
TTL stored + INTERVAL 90 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Summaries of one worker in one window';

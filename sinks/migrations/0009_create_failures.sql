-- What did not make it: late events and records that could not be read. Nothing is dropped uncounted.
CREATE TABLE IF NOT EXISTS late
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
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'End of the window that they missed',
    topic LowCardinality(String) COMMENT 'Raw topic',
    partition Int64 COMMENT 'Partition of the raw topic',
    producer LowCardinality(String) COMMENT 'Producer of the batch',
    boot LowCardinality(String) COMMENT 'Start of the producer',
    seq Int64 COMMENT 'Number of the batch',
    events Int64 COMMENT 'Late events of the batch',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (job, ts, worker, run_id, id)
TTL stored + INTERVAL 90 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Batches of events that came behind their window';

CREATE TABLE IF NOT EXISTS dead_letters
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    topic LowCardinality(String) COMMENT 'Topic it stood in',
    partition Int64 COMMENT 'Partition it stood in',
    offset Int64 COMMENT 'Offset it stood at',
    stage LowCardinality(String) COMMENT 'Who could not read it',
    reason String COMMENT 'Why',
    sent DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Send time of the log record',
    key String COMMENT 'Key, raw bytes',
    value String CODEC(ZSTD(1)) COMMENT 'Value, raw bytes',
    headers Map(String, String) COMMENT 'Headers',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
ORDER BY (topic, partition, offset, run_id, stage)
TTL stored + INTERVAL 90 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Records that could not be read, bytes unchanged';

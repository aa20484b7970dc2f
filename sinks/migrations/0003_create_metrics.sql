-- Samples of metrics. A value that is not finite is null, so that averages stay right; nonfinite says which it was.
CREATE TABLE IF NOT EXISTS metrics
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
    device LowCardinality(String) COMMENT 'Device the row speaks of, empty where none',
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Event time, UTC',
    time_source LowCardinality(String) COMMENT 'printed, inferred or captured',
    precision_ns Int64 COMMENT 'Nanoseconds by which ts may be off',
    phase LowCardinality(String) COMMENT 'Phase of the job as stamped: train, checkpoint ...',
    iteration Nullable(Int64) COMMENT 'Training iteration as stamped',
    name LowCardinality(String) COMMENT 'Name of the metric',
    value Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'Value; null where it is not finite',
    nonfinite LowCardinality(String) COMMENT 'nan, inf or -inf where the value is null',
    unit LowCardinality(String) COMMENT 'Unit, empty where none',
    pid Nullable(Int64) COMMENT 'Process id where the metric is of a process',
    producer LowCardinality(String) COMMENT 'Producer of the batch',
    boot LowCardinality(String) COMMENT 'Start of the producer',
    seq Int64 COMMENT 'Number of the batch within the boot',
    event_index UInt32 COMMENT 'Place of the event in its batch, from 0',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (job, ts, worker, run_id, producer, boot, seq, event_index)
TTL stored + INTERVAL 90 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Samples of metrics';

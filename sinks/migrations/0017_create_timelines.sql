-- What workers did in a training step, operation by operation, as traces of whole steps tell it.
CREATE TABLE IF NOT EXISTS timelines
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
    operations Array(LowCardinality(String)) CODEC(ZSTD(1)) COMMENT 'Operations of the step in order of their starts: forward-compute, forward-send ...',
    starts_ns Array(Int64) CODEC(ZSTD(1)) COMMENT 'When each began, in nanoseconds from a moment that all workers of the step share',
    durations_ns Array(Int64) CODEC(ZSTD(1)) COMMENT 'Nanoseconds that each took, with all waiting for others',
    microbatches Array(Int32) CODEC(ZSTD(1)) COMMENT 'Microbatch of each, -1 where it has none or it is unknown',
    chunks Array(Int32) CODEC(ZSTD(1)) COMMENT 'Model chunk of each, -1 where it has none or it is unknown',
    left_out Int64 COMMENT 'Operations of the step that are not there',
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
COMMENT 'Operations of training steps, one row per worker and step, its operations as columns';

CREATE OR REPLACE VIEW operations AS
SELECT
    run_id,
    job,
    attempt,
    worker,
    rank,
    dp,
    pp,
    ts,
    iteration,
    operation,
    start_ns,
    duration_ns,
    microbatch,
    chunk
FROM timelines FINAL
ARRAY JOIN
    operations AS operation,
    starts_ns AS start_ns,
    durations_ns AS duration_ns,
    microbatches AS microbatch,
    chunks AS chunk
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Every operation of every traced training step, one row each';

-- Where everybody of an attempt stands while it stands still, and what an incident says of it.
CREATE TABLE IF NOT EXISTS merged_stacks
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job',
    attempt LowCardinality(String) COMMENT 'Restart of the job',
    id String COMMENT 'Deterministic id of the record, which has a row for each place',
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Start of the window, UTC',
    window_end DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'End of the window, excluded',
    standstill_since DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'When the attempt last did anything',
    phase LowCardinality(String) COMMENT 'Phase of the job',
    iteration Nullable(Int64) COMMENT 'Latest training iteration',
    process_type LowCardinality(String) COMMENT 'trainer, dataloader, launcher, checkpoint writer ...',
    role LowCardinality(String) COMMENT 'Parallel or RL role',
    thread LowCardinality(String) COMMENT 'Thread as samplers name it, its numbers as #',
    class_number UInt32 COMMENT 'Place of the class in its record, from 0, those that train first',
    group_number UInt32 COMMENT 'Place of the group in its class, from 0, the largest first',
    ranks String CODEC(ZSTD(1)) COMMENT 'Ranks that stand here, as ranges: 0-4,6; empty where nobody was observed',
    rank_list Array(Int32) CODEC(ZSTD(1)) COMMENT 'The same ranks one by one',
    missing String CODEC(ZSTD(1)) COMMENT 'Ranks of the class that were observed elsewhere, as ranges',
    observed String CODEC(ZSTD(1)) COMMENT 'Ranks of the class that were observed anywhere, as ranges',
    unobserved Array(String) CODEC(ZSTD(1)) COMMENT 'Ranks of which nobody can say where they are, as ranges, one for each reason',
    unobserved_reasons Array(String) CODEC(ZSTD(1)) COMMENT 'Their reasons',
    minority Bool COMMENT 'Whether most of the class stand elsewhere',
    activity LowCardinality(String) COMMENT 'communication, engine, data, checkpoint, idle, own or unobserved',
    place String CODEC(ZSTD(1)) COMMENT 'Where they stand, in words',
    functions Array(LowCardinality(String)) COMMENT 'Functions of the frames, outermost first, as the lowest rank has them',
    files Array(LowCardinality(String)) COMMENT 'Files of the frames',
    lines Array(Int64) COMMENT 'Lines of the frames, 0 where unknown',
    outer_frames Int64 COMMENT 'Frames further out that are left out',
    since DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'From when on all of them were seen at these lines',
    samples Int64 COMMENT 'How often each of them was seen there at least',
    more_groups Int64 COMMENT 'Groups of the class that are left out',
    more_ranks String CODEC(ZSTD(1)) COMMENT 'Their ranks, as ranges',
    more_classes Int64 COMMENT 'Classes of threads that are left out of the record',
    text String CODEC(ZSTD(1)) COMMENT 'The class in one line, where it says anything',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (job, ts, attempt, run_id, id, class_number, group_number)
TTL stored + INTERVAL 90 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Stacks of all ranks merged while a job stands still, one row per kind of threads and place';

CREATE OR REPLACE VIEW merged_stacks_latest AS
SELECT *
FROM merged_stacks FINAL
WHERE (run_id, job, attempt, ts) IN (SELECT run_id, job, attempt, max(ts) FROM merged_stacks GROUP BY run_id, job, attempt)
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Where everybody of every attempt stood last';

ALTER TABLE incidents
    ADD COLUMN IF NOT EXISTS stacks Array(String) CODEC(ZSTD(1)) COMMENT 'Where the ranks stood while the job stood still, a line for each kind of threads that tells' AFTER evidence_peers;

-- A view keeps the columns that there were when it was made.
CREATE OR REPLACE VIEW incidents_latest AS
SELECT *
FROM incidents FINAL
ORDER BY run_id, job, attempt, id, revision DESC
LIMIT 1 BY run_id, job, attempt, id
COMMENT 'Every incident once, with its newest revision';

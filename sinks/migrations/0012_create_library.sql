-- What healthy jobs print, every version that was imported or learned for a run, and which version results rest on.
CREATE TABLE IF NOT EXISTS library
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    name LowCardinality(String) COMMENT 'Name of the library',
    number Int64 COMMENT 'Number of this version under its name',
    version LowCardinality(String) COMMENT 'Hash of what was learned',
    masks LowCardinality(String) COMMENT 'Masks of lines under which texts mean what they say',
    rankwatch LowCardinality(String) COMMENT 'Version of Rankwatch that learned it',
    learned_from Array(String) CODEC(ZSTD(1)) COMMENT 'Healthy jobs that it was learned from',
    id String COMMENT 'Template: hash of its text, or its predefined id',
    text String CODEC(ZSTD(1)) COMMENT 'The template',
    printed_by Array(String) CODEC(ZSTD(1)) COMMENT 'Those of the jobs that print it',
    phases Array(LowCardinality(String)) COMMENT 'Phases in which it is printed',
    rank_shares Array(Float64) COMMENT 'For each of the phases the share of the ranks of all jobs that print it there',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree(number)
ORDER BY (name, version, run_id, id)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Log templates that healthy jobs print';

ALTER TABLE anomalies
    ADD COLUMN IF NOT EXISTS library LowCardinality(String) COMMENT 'Version of the learned library that it rests on, else empty' AFTER templates;

ALTER TABLE incidents
    ADD COLUMN IF NOT EXISTS template_axes Array(LowCardinality(String)) COMMENT 'In what each stands out: space, time or cross-job' AFTER template_texts,
    ADD COLUMN IF NOT EXISTS template_absent Array(Bool) COMMENT 'Whether it is one that healthy jobs print and nobody here' AFTER template_axes,
    ADD COLUMN IF NOT EXISTS library LowCardinality(String) COMMENT 'Version of the learned library that its templates were held against, else empty' AFTER resolution;

-- A view keeps the columns that there were when it was made.
CREATE OR REPLACE VIEW incidents_latest AS
SELECT *
FROM incidents FINAL
ORDER BY run_id, job, attempt, id, revision DESC
LIMIT 1 BY run_id, job, attempt, id
COMMENT 'Every incident once, with its newest revision';

CREATE OR REPLACE VIEW anomalies_latest AS
SELECT *
FROM anomalies FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Every anomaly once';

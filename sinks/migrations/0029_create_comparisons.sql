-- Jobs beside the jobs of a library: which are like them, what differs, and which settings go with which symptom.
CREATE TABLE IF NOT EXISTS comparisons
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job',
    attempt LowCardinality(String) COMMENT 'Restart of the job',
    id String COMMENT 'Deterministic id',
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Start of the window after which it stood so, UTC',
    window_end DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'End of the window, excluded',
    library LowCardinality(String) COMMENT 'Version of the library',
    verdict LowCardinality(String) COMMENT 'How sure can be what rests on it at most: supported, ambiguous or unavailable',
    chosen DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'End of the window in which the baseline was chosen; 1970 where nothing is known of the job',
    library_jobs Array(String) CODEC(ZSTD(1)) COMMENT 'Jobs of the library, the baseline first',
    likenesses Array(Float64) CODEC(ZSTD(1)) COMMENT 'How like each is, between 0 and 1, by all that is known of both',
    certainties Array(Float64) CODEC(ZSTD(1)) COMMENT 'Which share of what counts is known of both',
    baseline Array(String) CODEC(ZSTD(1)) COMMENT 'Those of the jobs that this one is held against',
    reasons Array(String) CODEC(ZSTD(1)) COMMENT 'Why each is like it, or not',
    shown_kinds Array(LowCardinality(String)) COMMENT 'What the job shows and its baseline does not: stable words',
    shown_texts Array(String) CODEC(ZSTD(1)) COMMENT 'The same in words',
    symptoms Array(LowCardinality(String)) COMMENT 'Symptoms of its incidents so far that page',
    setting_facets Array(LowCardinality(String)) COMMENT 'What else differs from the baseline: of what it is a setting',
    setting_names Array(String) CODEC(ZSTD(1)) COMMENT 'Names of these settings',
    setting_values Array(String) CODEC(ZSTD(1)) COMMENT 'Their values here, empty for none',
    setting_others Array(String) CODEC(ZSTD(1)) COMMENT 'Their values in the baseline',
    goes_with_symptoms Array(LowCardinality(String)) COMMENT 'Settings that go with a symptom, which is no cause: the symptom',
    goes_with_facets Array(LowCardinality(String)) COMMENT 'Of what they are settings',
    goes_with_names Array(String) CODEC(ZSTD(1)) COMMENT 'Their names',
    goes_with_values Array(String) CODEC(ZSTD(1)) COMMENT 'Their values, empty for none',
    goes_with_having Array(Int64) COMMENT 'Jobs that have the setting',
    goes_with_having_shown Array(Int64) COMMENT 'Those of them that show the symptom',
    goes_with_others Array(Int64) COMMENT 'Jobs that have it not',
    goes_with_others_shown Array(Int64) COMMENT 'Those of them that show the symptom',
    caution String COMMENT 'What so few jobs cannot tell',
    json String CODEC(ZSTD(3)) COMMENT 'The whole record',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (job, ts, attempt, run_id, id)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Jobs beside the jobs of a library';

CREATE OR REPLACE VIEW comparisons_latest AS
SELECT *
FROM comparisons FINAL
ORDER BY run_id, job, attempt, ts DESC
LIMIT 1 BY run_id, job, attempt
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'How every attempt stood last beside the jobs of its library';

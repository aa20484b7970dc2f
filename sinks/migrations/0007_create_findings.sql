-- What the job stage concludes. Every revision of an incident is kept: an incident has no time that never
-- changes to partition by, and what was known when is a question of its own. incidents_latest reads the newest.
CREATE TABLE IF NOT EXISTS templates
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job',
    id String COMMENT 'Hash of the canonical text',
    text String CODEC(ZSTD(1)) COMMENT 'The template',
    signatures Array(String) CODEC(ZSTD(1)) COMMENT 'Signatures it covers',
    aliases Array(String) COMMENT 'Ids it had before it generalised',
    first_seen DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Time of its first line',
    version UInt64 COMMENT 'Signatures and aliases it covers; only grows, so the newest record wins',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (job, run_id, id)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Log templates of a job';

CREATE TABLE IF NOT EXISTS anomalies
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job',
    attempt LowCardinality(String) COMMENT 'Restart of the job',
    id String COMMENT 'Deterministic id',
    detector LowCardinality(String) COMMENT 'Detector',
    version Int64 COMMENT 'Version of the detector',
    config LowCardinality(String) COMMENT 'Hash of its configuration',
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Start of the window, UTC',
    window_end DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'End of the window, excluded',
    onset DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Earliest time that the evidence supports',
    axis LowCardinality(String) COMMENT 'space, time or cross-job',
    layer LowCardinality(String) COMMENT 'log, stack, metric, collective, profile, hardware or platform',
    symptom LowCardinality(String) COMMENT 'hang, crash, slowdown, numerics or memory',
    area LowCardinality(String) COMMENT 'Likely side: data, network, hardware ...',
    severity LowCardinality(String) COMMENT 'critical, warning or info',
    grounds LowCardinality(String) COMMENT 'Reason of the detector, a stable word',
    text String CODEC(ZSTD(1)) COMMENT 'The finding in words',
    peers String CODEC(ZSTD(1)) COMMENT 'What the peers showed',
    phase LowCardinality(String) COMMENT 'Phase of the job',
    iteration Nullable(Int64) COMMENT 'Training iteration',
    suspect_ranks Array(Nullable(Int32)) COMMENT 'Ranks it singles out; null for a node',
    suspect_nodes Array(String) COMMENT 'Their nodes',
    suspect_scores Array(Float64) COMMENT 'Their scores, 0 to 1',
    suspect_reasons Array(String) COMMENT 'Why each is suspected',
    victims Array(Int32) COMMENT 'Ranks that wait or fail with others',
    unobserved Array(Int32) COMMENT 'Ranks it could not see',
    templates Array(String) COMMENT 'Templates it rests on',
    json String CODEC(ZSTD(3)) COMMENT 'The whole record',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (job, ts, attempt, run_id, id)
TTL stored + INTERVAL 90 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Findings of one detector in one closed window';

CREATE TABLE IF NOT EXISTS incidents
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job',
    attempt LowCardinality(String) COMMENT 'Restart of the job',
    id String COMMENT 'Id, the same over all revisions',
    revision Int64 COMMENT 'Revision; the greatest is the newest',
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'When the revision was published: end of the window that brought it',
    onset DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'When the fault began',
    status LowCardinality(String) COMMENT 'open or resolved',
    severity LowCardinality(String) COMMENT 'critical, warning or info',
    symptom LowCardinality(String) COMMENT 'hang, crash, slowdown, numerics or memory',
    area LowCardinality(String) COMMENT 'Likely side: data, network, hardware ...',
    verdict LowCardinality(String) COMMENT 'supported, ambiguous or unavailable',
    reason LowCardinality(String) COMMENT 'Why blame decided so',
    summary String CODEC(ZSTD(1)) COMMENT 'The incident in one sentence',
    next_step String CODEC(ZSTD(1)) COMMENT 'What to do next',
    phase LowCardinality(String) COMMENT 'Phase of the job',
    iteration Nullable(Int64) COMMENT 'Training iteration',
    suspect_ranks Array(Nullable(Int32)) COMMENT 'Ranks that stand apart; null for a node',
    suspect_nodes Array(String) COMMENT 'Their nodes',
    suspect_scores Array(Float64) COMMENT 'Their scores, 0 to 1',
    suspect_reasons Array(String) COMMENT 'Why each is suspected',
    victims String COMMENT 'Ranks that suffer, as ranges: 0-4,6',
    missing String COMMENT 'Ranks that should have spoken, as ranges',
    unobserved String COMMENT 'Ranks that could not be seen, as ranges',
    scope_kind LowCardinality(String) COMMENT 'rank, node, device, nic, group, stage, switch, job or fleet',
    scope_name String COMMENT 'Name of the smallest place that covers the evidence',
    scope_ranks String COMMENT 'Its ranks, as ranges',
    scope_nodes Array(String) COMMENT 'Its nodes',
    template_ids Array(String) COMMENT 'Suspicious templates',
    template_texts Array(String) CODEC(ZSTD(1)) COMMENT 'Their texts',
    evidence_layers Array(LowCardinality(String)) COMMENT 'Layer of each piece of evidence',
    evidence_detectors Array(LowCardinality(String)) COMMENT 'Detector of each',
    evidence_texts Array(String) CODEC(ZSTD(1)) COMMENT 'Words of each',
    evidence_peers Array(String) CODEC(ZSTD(1)) COMMENT 'What the peers showed',
    notification_key String COMMENT 'Key under which on-call staff were told',
    merged_into String COMMENT 'Incident that this one proved to be part of',
    resolution String COMMENT 'How it ended',
    json String CODEC(ZSTD(3)) COMMENT 'The whole record',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (job, ts, attempt, run_id, id, revision)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Faults, one row per incident and revision';

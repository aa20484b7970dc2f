-- What the pipeline says of itself: producers that are silent, partitions left out, workers behind, and that it lives.
CREATE TABLE IF NOT EXISTS meta_alerts
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    cluster LowCardinality(String) COMMENT 'Cluster, empty where the alert is of the deployment as such',
    id String COMMENT 'Deterministic id, the same while it fires and when it is over',
    name LowCardinality(String) COMMENT 'What is wrong: producer_silent, skew, lag ...; watchdog where all is well',
    subject String COMMENT 'Whose it is: job and node, a partition, a worker',
    status LowCardinality(String) COMMENT 'firing or resolved',
    severity LowCardinality(String) COMMENT 'critical, warning or info',
    since DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Since when it is so',
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'When it was said, event time',
    text String COMMENT 'In words',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (name, ts, subject, cluster, run_id, id, status)
TTL stored + INTERVAL 90 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Alerts about the pipeline itself';

CREATE OR REPLACE VIEW meta_alerts_latest AS
SELECT *
FROM meta_alerts FINAL
ORDER BY run_id, cluster, name, subject, ts DESC, status DESC
LIMIT 1 BY run_id, cluster, name, subject
COMMENT 'What was last said of each: what fires now has the status firing';

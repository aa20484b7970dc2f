-- How often nodes were where jobs failed, and which incidents of jobs are part of one of several jobs.
CREATE TABLE IF NOT EXISTS node_history
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    cluster LowCardinality(String) COMMENT 'Cluster, empty where it is not known',
    node LowCardinality(String) COMMENT 'Node',
    ts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'End of the window that changed it, UTC',
    incidents Float64 COMMENT 'Failures that pointed at the node; what is 28 days old counts half',
    node_days Float64 COMMENT 'Days on which jobs ran on it, counted alike',
    rate Float64 COMMENT 'Failures a node-day, drawn towards the rate of the cluster',
    cluster_rate Float64 COMMENT 'Failures a node-day in the whole cluster, drawn towards what is usual',
    score Float64 COMMENT 'The rate in units of that of the cluster',
    counted UInt32 COMMENT 'Failures that were ever counted',
    last DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Onset of the latest of them',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (cluster, node, ts, run_id)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'How often nodes were where jobs failed, a row for each change';

CREATE OR REPLACE VIEW node_history_latest AS
SELECT *
FROM node_history FINAL
ORDER BY run_id, cluster, node, ts DESC
LIMIT 1 BY run_id, cluster, node
COMMENT 'Every node once, as it was last told; context, never a verdict';

-- Columns by name: a view of a view keeps those that there were when it was made.
CREATE OR REPLACE VIEW incidents_with_fleet AS
SELECT
    one.run_id AS run_id,
    one.cluster AS cluster,
    one.job AS job,
    one.attempt AS attempt,
    one.id AS id,
    one.revision AS revision,
    one.ts AS ts,
    one.onset AS onset,
    one.status AS status,
    one.severity AS severity,
    one.symptom AS symptom,
    one.area AS area,
    one.verdict AS verdict,
    one.summary AS summary,
    one.suspect_ranks AS suspect_ranks,
    one.suspect_nodes AS suspect_nodes,
    whole.id AS fleet,
    whole.summary AS fleet_summary
FROM incidents_latest AS one
LEFT JOIN
(
    SELECT run_id, id, summary, arrayJoin(arrayZip(member_jobs, member_incidents)) AS member
    FROM incidents_latest
    WHERE notEmpty(member_incidents)
) AS whole ON one.run_id = whole.run_id AND one.job = whole.member.1 AND one.id = whole.member.2
COMMENT 'Every incident once, with that of several jobs of which it is part; fleet is empty where there is none';

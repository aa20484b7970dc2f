-- Answers to what people ask. Views read duplicates away; a partition is a function of the sort key, so FINAL
-- need not merge across partitions.

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

CREATE OR REPLACE VIEW windows_latest AS
SELECT *
FROM windows FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Every window of every worker once';

CREATE OR REPLACE VIEW ranks_latest AS
SELECT *
FROM ranks FINAL
COMMENT 'Every rank of every attempt once';

CREATE OR REPLACE VIEW jobs_latest AS
SELECT *
FROM jobs FINAL
COMMENT 'Every attempt of every job once';

CREATE OR REPLACE VIEW rank_timeline AS
SELECT
    run_id,
    job,
    attempt,
    rank,
    worker,
    node,
    role,
    ts,
    window_end,
    phase,
    iteration,
    log_records,
    heartbeats,
    last_log,
    arrayDistinct(stack_activities) AS activities,
    fatal_rules,
    exit_codes,
    drift_metrics,
    stopped,
    finished
FROM windows FINAL
WHERE NOT startsWith(worker, 'node:')
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'What each rank did, window by window';

CREATE OR REPLACE VIEW log_templates AS
SELECT
    known.run_id AS run_id,
    known.job AS job,
    known.id AS id,
    known.text AS text,
    known.first_seen AS first_seen,
    known.aliases AS aliases,
    sum(printed.records) AS records,
    arraySort(groupUniqArrayArray(printed.workers)) AS workers
FROM
(
    SELECT run_id, job, id, text, first_seen, aliases, arrayJoin(signatures) AS signature
    FROM templates FINAL
) AS known
LEFT JOIN
(
    SELECT run_id, job, signature, sum(count) AS records, groupUniqArray(worker) AS workers
    FROM windows FINAL
    ARRAY JOIN signatures AS signature, signature_counts AS count
    GROUP BY run_id, job, signature
) AS printed USING (run_id, job, signature)
GROUP BY run_id, job, id, text, first_seen, aliases
COMMENT 'Log templates with how often and by which workers they were printed';

CREATE OR REPLACE VIEW otel_logs AS
SELECT
    ts AS Timestamp,
    '' AS TraceId,
    '' AS SpanId,
    toUInt8(0) AS TraceFlags,
    upper(level) AS SeverityText,
    toUInt8(multiIf(
        SeverityText IN ('TRACE', 'T'), 1,
        SeverityText IN ('DEBUG', 'D'), 5,
        SeverityText IN ('INFO', 'INFORMATION', 'NOTICE', 'I'), 9,
        SeverityText IN ('WARN', 'WARNING', 'W'), 13,
        SeverityText IN ('ERROR', 'ERR', 'E'), 17,
        SeverityText IN ('FATAL', 'CRITICAL', 'CRIT', 'F', 'C'), 21,
        0)) AS SeverityNumber,
    job AS ServiceName,
    text AS Body,
    '' AS ResourceSchemaUrl,
    mapFilter((k, v) -> v != '', map(
        'service.name', toString(job),
        'service.instance.id', toString(worker),
        'host.name', toString(node),
        'k8s.cluster.name', toString(cluster),
        'rankwatch.attempt', toString(attempt),
        'rankwatch.rank', ifNull(toString(rank), ''),
        'rankwatch.local_rank', ifNull(toString(local_rank), ''),
        'rankwatch.role', toString(role),
        'rankwatch.process_type', toString(process_type),
        'rankwatch.coordinates', toString(coordinates),
        'rankwatch.run_id', toString(run_id))) AS ResourceAttributes,
    '' AS ScopeSchemaUrl,
    'rankwatch' AS ScopeName,
    '' AS ScopeVersion,
    CAST(map(), 'Map(String, String)') AS ScopeAttributes,
    mapFilter((k, v) -> v != '', map(
        'log.iostream', toString(stream),
        'log.file.path', toString(file),
        'log.file.line', if(line = 0, '', toString(line)),
        'rankwatch.phase', toString(phase),
        'rankwatch.iteration', ifNull(toString(iteration), ''),
        'rankwatch.signature', toString(signature),
        'rankwatch.time_source', toString(time_source))) AS LogAttributes,
    '' AS EventName,
    run_id AS RunId
FROM logs FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Log records under the OpenTelemetry names; RunId is empty for live ones';

-- What workers told of their jobs, a row for each name and value, folded: whoever tells it again changes nothing.
CREATE TABLE IF NOT EXISTS job_facts
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    job LowCardinality(String) COMMENT 'Job',
    attempt LowCardinality(String) COMMENT 'Restart of the job',
    facet LowCardinality(String) COMMENT 'job, layout, versions, code, model, data, launch, environment, flags, hyperparameters, scale or labels',
    name String COMMENT 'Name within the facet: NCCL_ALGO, torch, commit; of job: framework, command, world_size',
    value String COMMENT 'Value, without secrets; empty where each worker has its own',
    first_seen SimpleAggregateFunction(min, DateTime64(9, 'UTC')) COMMENT 'Start of the first window in which it was told',
    last_seen SimpleAggregateFunction(max, DateTime64(9, 'UTC')) COMMENT 'End of the last',
    stored SimpleAggregateFunction(max, DateTime) MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = AggregatingMergeTree
ORDER BY (job, run_id, attempt, facet, name, value)
TTL stored + INTERVAL 365 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'What is known of jobs: versions, environment, flags, layout';

-- A name that was told with several values stands in differing alone.
CREATE OR REPLACE VIEW job_descriptions AS
SELECT
    run_id,
    job,
    arrayStringConcat(groupArrayArrayIf(told, facet = 'job' AND name = 'framework'), ', ') AS framework,
    arrayStringConcat(groupArrayArrayIf(told, facet = 'job' AND name = 'command'), '; ') AS command,
    arrayStringConcat(groupArrayArrayIf(told, facet = 'job' AND name = 'world_size'), ', ') AS world_size,
    mapFromArrays(groupArrayIf(name, facet = 'layout' AND alike), groupArrayIf(told[1], facet = 'layout' AND alike)) AS layout,
    mapFromArrays(groupArrayIf(name, facet = 'versions' AND alike), groupArrayIf(told[1], facet = 'versions' AND alike)) AS versions,
    mapFromArrays(groupArrayIf(name, facet = 'code' AND alike), groupArrayIf(told[1], facet = 'code' AND alike)) AS code,
    mapFromArrays(groupArrayIf(name, facet = 'model' AND alike), groupArrayIf(told[1], facet = 'model' AND alike)) AS model,
    mapFromArrays(groupArrayIf(name, facet = 'data' AND alike), groupArrayIf(told[1], facet = 'data' AND alike)) AS data,
    mapFromArrays(groupArrayIf(name, facet = 'launch' AND alike), groupArrayIf(told[1], facet = 'launch' AND alike)) AS launch,
    mapFromArrays(groupArrayIf(name, facet = 'environment' AND alike), groupArrayIf(told[1], facet = 'environment' AND alike)) AS environment,
    mapFromArrays(groupArrayIf(name, facet = 'flags' AND alike), groupArrayIf(told[1], facet = 'flags' AND alike)) AS flags,
    mapFromArrays(groupArrayIf(name, facet = 'hyperparameters' AND alike), groupArrayIf(told[1], facet = 'hyperparameters' AND alike)) AS hyperparameters,
    mapFromArrays(groupArrayIf(name, facet = 'scale' AND alike), groupArrayIf(told[1], facet = 'scale' AND alike)) AS scale,
    mapFromArrays(groupArrayIf(name, facet = 'labels' AND alike), groupArrayIf(told[1], facet = 'labels' AND alike)) AS labels,
    mapFromArrays(groupArrayIf(concat(facet, '.', name), facet != 'job' AND NOT alike), groupArrayIf(told, facet != 'job' AND NOT alike)) AS differing
FROM
(
    SELECT run_id, job, facet, name, arraySort(groupUniqArray(value)) AS told, length(told) = 1 AND told[1] != '' AS alike
    FROM job_facts
    GROUP BY run_id, job, facet, name
    ORDER BY run_id, job, facet, name
)
GROUP BY run_id, job
COMMENT 'Every job once, with what is known of it';

-- What staff silenced, every version of it, and which incidents that was for.
CREATE TABLE IF NOT EXISTS silences
(
    run_id LowCardinality(String) COMMENT 'Replay or diagnosis that wrote the row; empty for live',
    id String COMMENT 'Silence, the same in all its versions',
    number Int64 COMMENT 'Number of this version',
    starts DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'From when on it holds, UTC',
    ends DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)) COMMENT 'Until when it holds, excluded',
    labels Array(LowCardinality(String)) COMMENT 'Labels that incidents must have',
    values Array(String) CODEC(ZSTD(1)) COMMENT 'Their values as staff wrote them',
    likes Array(String) CODEC(ZSTD(1)) COMMENT 'The same as LIKE takes them',
    negated Array(Bool) COMMENT 'Whether it must be another value',
    created_by LowCardinality(String) COMMENT 'Who silenced',
    comment String CODEC(ZSTD(1)) COMMENT 'What they say of it',
    kind LowCardinality(String) COMMENT 'maintenance, known, test or other',
    stored DateTime MATERIALIZED now() COMMENT 'When the row was stored, by the clock of the server; retention counts from it'
)
ENGINE = ReplacingMergeTree
ORDER BY (run_id, id, number)
TTL stored + INTERVAL 730 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000
COMMENT 'Silences of on-call staff, one row per version';

CREATE OR REPLACE VIEW silences_latest AS
SELECT *
FROM silences FINAL
ORDER BY run_id, id, number DESC
LIMIT 1 BY run_id, id
COMMENT 'Every silence once, with its newest version';

-- The rules are those of streams/silencing.py: a hang is never silenced, and what an incident does not tell fits nothing.
CREATE OR REPLACE VIEW incidents_silenced AS
SELECT
    told.run_id AS run_id,
    told.job AS job,
    told.attempt AS attempt,
    told.id AS id,
    told.revision AS revision,
    told.severity AS severity,
    told.symptom AS symptom,
    told.status AS status,
    told.summary AS summary,
    told.ts AS ts,
    silence.id AS silence,
    silence.number AS silence_number,
    silence.starts AS starts,
    silence.ends AS ends,
    silence.created_by AS created_by,
    silence.comment AS comment,
    silence.kind AS kind,
    told.ts >= silence.starts AND told.ts < silence.ends AS at_publication,
    now64(9) >= silence.starts AND now64(9) < silence.ends AND told.status = 'open' AS holds_now
FROM
(
    SELECT
        *,
        -- Nodes are not known while that of any suspect is not; labels of the job do not hide those of every incident.
        if(has(suspect_nodes, ''), [], arrayConcat(suspect_nodes, scope_nodes)) AS nodes,
        mapUpdate(
            mapApply((name, value) -> (toString(name), [value]), labels),
            mapFromArrays(
                ['job', 'attempt', 'cluster', 'node', 'symptom', 'area', 'severity'],
                [if(job = '-', member_jobs, [toString(job)]), [toString(attempt)], [toString(cluster)],
                 arrayMap(name -> toString(name), nodes), [toString(symptom)], [toString(area)], [toString(severity)]]
            )
        ) AS told_labels,
        mapApply((name, known) -> (name, arrayFilter(value -> value != '', known)), told_labels) AS known
    FROM incidents_latest
    WHERE symptom != 'hang'
) AS told
INNER JOIN silences_latest AS silence ON told.run_id = silence.run_id
WHERE notEmpty(silence.labels) AND arrayAll(
    (label, want, negate) -> notEmpty(told.known[toString(label)])
        AND arrayAll(value -> (value LIKE want) != negate, told.known[toString(label)]),
    silence.labels, silence.likes, silence.negated)
COMMENT 'Incidents whose newest revision a silence is for, and whether it holds now or held when they were published';

-- An alert's cluster may become known only while it fires: what was last said of a subject is so whatever its cluster.
CREATE OR REPLACE VIEW meta_alerts_latest AS
SELECT *
FROM meta_alerts FINAL
ORDER BY run_id, name, subject, ts DESC, status DESC
LIMIT 1 BY run_id, name, subject
COMMENT 'What was last said of each: what fires now has the status firing';

-- The rules are those of streams/silencing.py: a hang is never silenced, and what an incident does not tell fits nothing.
CREATE OR REPLACE VIEW incidents_silenced_alone AS
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
COMMENT 'Incidents whose newest revision a silence is for by itself, and whether it holds now or held when they were published';

-- An incident of several jobs is silenced as well while each that it is made of is.
CREATE OR REPLACE VIEW incidents_silenced AS
SELECT * FROM incidents_silenced_alone
UNION ALL
SELECT
    run_id, job, attempt, id, revision, severity, symptom, status, summary, ts,
    silence, silence_number, starts, ends, created_by, comment, kind,
    then = members AND ts >= starts AND ts < ends AS at_publication,
    now = members AND now64(9) >= starts AND now64(9) < ends AND status = 'open' AS holds_now
FROM
(
    SELECT
        whole.run_id AS run_id,
        whole.job AS job,
        whole.attempt AS attempt,
        whole.id AS id,
        whole.revision AS revision,
        whole.severity AS severity,
        whole.symptom AS symptom,
        whole.status AS status,
        whole.summary AS summary,
        whole.ts AS ts,
        whole.members AS members,
        part.silence AS silence,
        part.silence_number AS silence_number,
        part.starts AS starts,
        part.ends AS ends,
        part.created_by AS created_by,
        part.comment AS comment,
        part.kind AS kind,
        uniqExactIf(whole.member, whole.ts >= part.starts AND whole.ts < part.ends)
            OVER (PARTITION BY whole.run_id, whole.id) AS then,
        uniqExactIf(whole.member, now64(9) >= part.starts AND now64(9) < part.ends)
            OVER (PARTITION BY whole.run_id, whole.id) AS now
    FROM
    (
        SELECT
            *,
            arrayDistinct(arrayZip(member_jobs, member_incidents)) AS all_members,
            length(all_members) AS members,
            arrayJoin(all_members) AS member
        FROM incidents_latest
        WHERE notEmpty(member_incidents) AND symptom != 'hang'
    ) AS whole
    INNER JOIN incidents_silenced_alone AS part
        ON whole.run_id = part.run_id AND whole.member.1 = part.job AND whole.member.2 = part.id
)
WHERE at_publication OR holds_now
LIMIT 1 BY run_id, id, silence
COMMENT 'Incidents that are silenced, by themselves or in all that they are made of, and whether that holds now or held when they were published';

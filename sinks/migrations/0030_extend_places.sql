-- Where an alarm of the platform is, who tells it, whether it lasts and since when.
ALTER TABLE alerts
    ADD COLUMN IF NOT EXISTS switch LowCardinality(String) COMMENT 'Switch that the alarm names, empty where none' AFTER severity,
    ADD COLUMN IF NOT EXISTS storage LowCardinality(String) COMMENT 'Storage that the alarm names, empty where none' AFTER switch,
    ADD COLUMN IF NOT EXISTS source LowCardinality(String) COMMENT 'Who tells it: a scheduler, an alert manager ...' AFTER storage,
    ADD COLUMN IF NOT EXISTS status LowCardinality(String) COMMENT 'firing or resolved; empty for what happened once' AFTER source,
    ADD COLUMN IF NOT EXISTS since Nullable(DateTime64(9, 'UTC')) COMMENT 'When it began; null where nobody tells' AFTER status;

-- The devices, groups and switches of an incident's place, and whose times were corrected.
ALTER TABLE incidents
    ADD COLUMN IF NOT EXISTS scope_devices Array(String) COMMENT 'Its devices, the first of them' AFTER scope_nodes,
    ADD COLUMN IF NOT EXISTS scope_groups Array(String) COMMENT 'The parallel and worker groups of its ranks, the first of them' AFTER scope_devices,
    ADD COLUMN IF NOT EXISTS scope_switches Array(String) COMMENT 'The switches that its nodes hang under, the first of them' AFTER scope_groups,
    ADD COLUMN IF NOT EXISTS scope_left_out Int64 COMMENT 'How many devices, groups and switches are not listed' AFTER scope_switches,
    ADD COLUMN IF NOT EXISTS clocks Array(String) COMMENT 'Whose times were corrected before it was dated' AFTER scope_left_out;

-- A view keeps the columns that there were when it was made.
CREATE OR REPLACE VIEW incidents_latest AS
SELECT *
FROM incidents FINAL
ORDER BY run_id, job, attempt, id, revision DESC
LIMIT 1 BY run_id, job, attempt, id
COMMENT 'Every incident once, with its newest revision';

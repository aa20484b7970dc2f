-- Of incidents that recur the first one, by which a series is told whatever the key of its alerts.
ALTER TABLE incidents
    ADD COLUMN IF NOT EXISTS series String COMMENT 'Id of the first of the incidents of earlier attempts that were like it, empty for none' AFTER recurs;

-- A view keeps the columns that there were when it was made.
CREATE OR REPLACE VIEW incidents_latest AS
SELECT *
FROM incidents FINAL
ORDER BY run_id, job, attempt, id, revision DESC
LIMIT 1 BY run_id, job, attempt, id
COMMENT 'Every incident once, with its newest revision';

-- Which cluster and whose jobs an incident is of, how often it came before, and what one of several jobs is made of.
ALTER TABLE incidents
    ADD COLUMN IF NOT EXISTS cluster LowCardinality(String) COMMENT 'Cluster, empty where it is not known' AFTER library,
    ADD COLUMN IF NOT EXISTS labels Map(LowCardinality(String), String) COMMENT 'Labels of the job, by which staff silence' AFTER cluster,
    ADD COLUMN IF NOT EXISTS recurs Int64 COMMENT 'How many incidents of earlier attempts of the job were like it' AFTER labels,
    ADD COLUMN IF NOT EXISTS member_jobs Array(String) COMMENT 'Of an incident of several jobs: the jobs of the incidents that it is made of' AFTER recurs,
    ADD COLUMN IF NOT EXISTS member_attempts Array(String) COMMENT 'Their attempts' AFTER member_jobs,
    ADD COLUMN IF NOT EXISTS member_incidents Array(String) COMMENT 'Their ids' AFTER member_attempts;

-- A view keeps the columns that there were when it was made.
CREATE OR REPLACE VIEW incidents_latest AS
SELECT *
FROM incidents FINAL
ORDER BY run_id, job, attempt, id, revision DESC
LIMIT 1 BY run_id, job, attempt, id
COMMENT 'Every incident once, with its newest revision';

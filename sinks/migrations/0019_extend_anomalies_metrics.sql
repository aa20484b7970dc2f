-- The ranks that a finding speaks of without suspecting them, and whether a metric's value counts up.
ALTER TABLE anomalies
    ADD COLUMN IF NOT EXISTS about Array(Int32) COMMENT 'Ranks it speaks of without accusing them' AFTER victims;

ALTER TABLE metrics
    ADD COLUMN IF NOT EXISTS counter Bool COMMENT 'Whether the value counts up from some beginning, so that only what it gains means anything' AFTER unit;

-- A view keeps the columns that there were when it was made.
CREATE OR REPLACE VIEW anomalies_latest AS
SELECT *
FROM anomalies FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Every anomaly once';

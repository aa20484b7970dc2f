-- The timer or sampled metric that a finding rests on, so that findings can be asked for by it.
ALTER TABLE anomalies
    ADD COLUMN IF NOT EXISTS metric LowCardinality(String) COMMENT 'Timer, without its unit, or sampled metric that it rests on; empty where it rests on no one' AFTER grounds;

-- A view keeps the columns that there were when it was made.
CREATE OR REPLACE VIEW anomalies_latest AS
SELECT *
FROM anomalies FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Every anomaly once';

-- What known-fatal lines are of, and what was extracted from them. The columns of a view are those that its table had
-- when it was made, so what shows whole windows is made anew.
ALTER TABLE windows
    ADD COLUMN IF NOT EXISTS fatal_times Array(DateTime64(9, 'UTC')) CODEC(ZSTD(1)) COMMENT 'When known-fatal lines were printed, UTC' AFTER fatal_texts,
    ADD COLUMN IF NOT EXISTS fatal_templates Array(LowCardinality(String)) COMMENT 'Ids of their predefined templates, the same in every job: xid.79, cuda.out_of_memory ...' AFTER fatal_times,
    ADD COLUMN IF NOT EXISTS fatal_roles Array(LowCardinality(String)) COMMENT 'candidate or cascade' AFTER fatal_templates,
    ADD COLUMN IF NOT EXISTS fatal_process_types Array(LowCardinality(String)) COMMENT 'Who of a node printed them: kernel, system, trainer; empty for a rank' AFTER fatal_roles,
    ADD COLUMN IF NOT EXISTS fatal_values Array(Map(String, String)) CODEC(ZSTD(1)) COMMENT 'What was extracted from them: code, pci, pid, action ...' AFTER fatal_process_types;

CREATE OR REPLACE VIEW windows_latest AS
SELECT *
FROM windows FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Every window of every worker once';

CREATE OR REPLACE VIEW fatals AS
SELECT
    run_id,
    job,
    attempt,
    node,
    worker,
    rank,
    -- Windows stored before these columns were there have the rule and the text alone.
    if(empty(fatal_times), windows.ts, fatal_times[place]) AS printed,
    fatal_rules[place] AS rule,
    fatal_templates[place] AS template,
    fatal_roles[place] AS role,
    fatal_process_types[place] AS process_type,
    fatal_values[place] AS extracted,
    fatal_texts[place] AS text
FROM windows FINAL
ARRAY JOIN arrayEnumerate(fatal_rules) AS place
SETTINGS do_not_merge_across_partitions_select_final = 1
COMMENT 'Every known-fatal line once, with its predefined template and what was extracted from it';

-- Where an alarm of the platform is, who tells it, whether it lasts and since when.
ALTER TABLE alerts
    ADD COLUMN IF NOT EXISTS switch LowCardinality(String) COMMENT 'Switch that the alarm names, empty where none' AFTER severity,
    ADD COLUMN IF NOT EXISTS storage LowCardinality(String) COMMENT 'Storage that the alarm names, empty where none' AFTER switch,
    ADD COLUMN IF NOT EXISTS source LowCardinality(String) COMMENT 'Who tells it: a scheduler, an alert manager ...' AFTER storage,
    ADD COLUMN IF NOT EXISTS status LowCardinality(String) COMMENT 'firing or resolved; empty for what happened once' AFTER source,
    ADD COLUMN IF NOT EXISTS since DateTime64(9, 'UTC') DEFAULT ts COMMENT 'When it began' AFTER status;

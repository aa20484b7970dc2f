-- Letters on windows and records of our own have no offset; several of one time are told apart by what they are of.
ALTER TABLE dead_letters
    ADD COLUMN IF NOT EXISTS origin String COMMENT 'What a letter without an offset is of, else empty' AFTER stage,
    MODIFY ORDER BY (topic, partition, offset, run_id, stage, origin);

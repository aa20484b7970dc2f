-- What a profile covers, and what a function typically holds of a step.
ALTER TABLE profiles
    ADD COLUMN IF NOT EXISTS typical Float64 COMMENT 'Median over steps of what it holds of the critical path of one, in unit; 0 where no steps are annotated' AFTER unit,
    ADD COLUMN IF NOT EXISTS unrest Float64 COMMENT 'Median deviation over steps from typical, in unit' AFTER typical,
    ADD COLUMN IF NOT EXISTS duration_ns Nullable(Int64) CODEC(ZSTD(1)) COMMENT 'Nanoseconds that the whole profile covers; null where unknown' AFTER unrest,
    ADD COLUMN IF NOT EXISTS steps Int64 COMMENT 'Annotated steps of the profile' AFTER duration_ns,
    ADD COLUMN IF NOT EXISTS first_step Nullable(Int64) COMMENT 'Number of the first of them as its profiler counts; null where unknown' AFTER steps,
    ADD COLUMN IF NOT EXISTS world_size Nullable(Int64) COMMENT 'Ranks of the profiled job; null where unknown' AFTER first_step,
    ADD COLUMN IF NOT EXISTS unlisted Float64 COMMENT 'No function that was left out has a larger share' AFTER world_size,
    ADD COLUMN IF NOT EXISTS recorded LowCardinality(String) COMMENT 'Kinds of calls that its profiler recorded: cpu,driver,gpu,python; empty where unknown' AFTER unlisted;

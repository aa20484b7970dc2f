-- How long operations took, of what size they were and with whom, as NCCL's inspector and flight recorders tell.
ALTER TABLE collectives
    ADD COLUMN IF NOT EXISTS tool LowCardinality(String) COMMENT 'Who told it: empty for a flight recorder, inspector, ras' AFTER point_to_point,
    ADD COLUMN IF NOT EXISTS library LowCardinality(String) COMMENT 'Library by which a flight recorder calls it, nccl or gloo; empty where unknown' AFTER tool,
    ADD COLUMN IF NOT EXISTS started Nullable(DateTime64(9, 'UTC')) CODEC(ZSTD(1)) COMMENT 'When the device began it, by the clock of the rank; null where unknown' AFTER library,
    ADD COLUMN IF NOT EXISTS duration_ns Nullable(Int64) CODEC(ZSTD(1)) COMMENT 'Nanoseconds that it took, with all waiting for others; null where unknown' AFTER started,
    ADD COLUMN IF NOT EXISTS size_bytes Nullable(Int64) CODEC(ZSTD(1)) COMMENT 'Size of the message in bytes; null where unknown' AFTER duration_ns,
    ADD COLUMN IF NOT EXISTS bandwidth_gbs Nullable(Float64) CODEC(ZSTD(1)) COMMENT 'Bandwidth of the bus in GB/s; null where unknown' AFTER size_bytes,
    ADD COLUMN IF NOT EXISTS algorithm LowCardinality(String) COMMENT 'Algorithm and protocol, RING LL128; empty where unknown' AFTER bandwidth_gbs,
    ADD COLUMN IF NOT EXISTS peer Nullable(Int32) COMMENT 'Rank that it sends to or receives from; null for collectives' AFTER algorithm;

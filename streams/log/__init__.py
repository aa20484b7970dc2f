"""The log: named partitions that are appended to and read in order, in memory, in archive files or in Kafka."""

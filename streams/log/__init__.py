"""The log: named partitions that are appended to and read in order, in memory or in archive files."""

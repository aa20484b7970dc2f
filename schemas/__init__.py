"""What crosses a log: records, codec, topics, ids. Imports nothing of ours."""

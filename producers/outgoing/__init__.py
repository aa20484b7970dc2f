"""The outgoing side of a node's producer: batches, memory, disk spool, transport. Never makes its caller wait."""

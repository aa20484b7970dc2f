"""Pictures of a job's stacks: pure functions from classes of threads to the text of a file, one module a format."""

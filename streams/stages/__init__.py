"""The three stages: what one rank did in a window, what all ranks of a job did, what jobs of a cluster share."""

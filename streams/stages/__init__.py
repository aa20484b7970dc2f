"""The two stages: what one rank did in a window, then what all ranks of a job did."""

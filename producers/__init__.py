"""Runs on nodes: read sources, batch, append. Knows a log only by its protocol."""

"""The log, ticks, windows, the two stages, detectors, incidents, replay."""

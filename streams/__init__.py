"""The log, ticks, windows, the three stages, detectors, incidents, replay."""

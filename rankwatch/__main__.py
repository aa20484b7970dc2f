"""``python -m rankwatch``."""

from rankwatch.cli import entry

entry()

"""The command line: parsing and composition, no logic."""

"""Readers, one file each: every one knows the shape of its files and turns them into observations."""

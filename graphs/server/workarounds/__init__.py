"""Faults of others that we work around, one a file: what was seen in which version, and what goes once it is mended."""

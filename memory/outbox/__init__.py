"""Pending updates: written down before a turn ends, so that nothing is lost."""

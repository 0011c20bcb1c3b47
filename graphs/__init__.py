"""Upstairs."""

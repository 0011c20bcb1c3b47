"""Pending updates: who may carry them out, and what becomes of them."""

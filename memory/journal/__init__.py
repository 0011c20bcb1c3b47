"""The daily tier: a dated journal of what was said, and what a reader of it needs to stay up to date."""

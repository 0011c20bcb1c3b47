"""The daily tier: a dated journal of what summarization took away, and its roll-up into history."""

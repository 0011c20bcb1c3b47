"""The context tier: the token budget of one thread."""

"""What a prompt shows of memory: which facts, as which text."""

"""From what was said to facts: one model call, read with tolerance, each fact checked for itself."""

"""The composition root: what one process has one of, made from its settings; all other rooms are handed it."""

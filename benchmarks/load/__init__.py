"""Load: many users at once against one or several server processes, and what many more would need."""

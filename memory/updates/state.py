"""The states of a pending update, apart from the update: the command line names them without importing it."""

from typing import Literal

EntryState = Literal["pending", "running", "dead"]
"""`pending`: waits. `running`: is being read. `dead`: failed for good."""

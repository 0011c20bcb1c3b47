"""Three tiers of memory for LangGraph: a thread's budget, a dated journal, and facts about the user.

Programs import its names from `palimpsest`.
"""

from memory import prompts as prompts

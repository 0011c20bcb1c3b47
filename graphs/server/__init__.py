"""What a LangGraph server does for Palimpsest: who calls, what they may, and the memory API."""

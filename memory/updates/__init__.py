"""What carries a finished turn into the tiers, and loses nothing."""

"""What carries a finished turn into facts and journal, and loses nothing."""

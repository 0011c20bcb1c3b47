"""Facts about a user: the value, its rules, and the store that keeps them."""

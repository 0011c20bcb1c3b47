"""The door to memory: what may stand in a prompt, and what is a secret or an order."""

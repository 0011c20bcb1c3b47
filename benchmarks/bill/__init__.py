"""The bill: how many tokens each turn of a replayed conversation costs, beside peers, with the same fake models."""

"""The core tier: facts that are right, few, and safe to put in a prompt."""

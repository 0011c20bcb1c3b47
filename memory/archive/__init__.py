"""Everything of a user as lines of JSON: written, and taken in again."""

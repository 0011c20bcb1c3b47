"""Everything of a user as one document: written, and taken in again."""

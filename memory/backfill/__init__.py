"""Conversations that were held elsewhere: read from their exports, written down here, and learned as turns are."""

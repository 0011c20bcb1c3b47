"""Palimpsest's graphs: the chat graph, its events and its streams; public names are in `palimpsest`."""

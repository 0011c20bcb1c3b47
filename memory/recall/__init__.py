"""Which facts and past turns matter now. Pure, deterministic, without a model call.

    index = Index(documents)                     # or index.put(documents), index.remove(ids): no rebuild
    hits = index.rank("When did I move?", before="We talked about Oslo", now=..., similarity=None)

A `Document` is a fact or one past message. What an embedder found comes in as `similarity`, by id; without one, the
ranking is lexical. What is hidden (superseded, quarantined, erased) is not put into the index in the first place. What
of the hits a prompt shows is chosen in `memory.injection`.
"""

from memory.recall.documents import Document, Hit
from memory.recall.index import Index
from memory.recall.words import is_about_answers

__all__ = ["Document", "Hit", "Index", "is_about_answers"]

"""Which facts and past turns matter now. Pure, deterministic, without a model call.

    index = Index.of(documents)                     # or index.put(documents), index.remove(ids): no rebuild
    hits = index.rank("When did I move?", before="We talked about Oslo", now=..., similarity=None)
    shown = choose(hits, budget=1000, cost=count)   # half for facts, half for past turns

A `Document` is a fact or one past message. What an embedder found comes in as `similarity`, by id; without one, the
ranking is lexical. What is hidden (superseded, quarantined, erased) is not put into the index in the first place.
"""

from memory.recall.choice import choose
from memory.recall.index import Document, Hit, Index
from memory.recall.standing import is_about_answers

__all__ = ["Document", "Hit", "Index", "choose", "is_about_answers"]

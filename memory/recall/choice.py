"""What of a ranking is shown within a budget of tokens. Pure."""

from collections.abc import Callable, Iterable, Sequence

from memory.recall.index import Document, Hit


def choose(
    hits: Iterable[Hit],
    *,
    budget: int,
    cost: Callable[[Document], int],
    always: Iterable[Document] = (),
    turns_share: float = 0.5,
) -> list[Document]:
    """Return what fits, best first: a share of the budget for past turns, the rest for facts.

    What one kind does not use, the other may. A turn that a chosen fact was taken from says the same again, so it
    comes after all others. A document that is too long for what is left is passed over.

    Args:
        hits: Best first.
        budget: Tokens.
        cost: Tokens that a document's line takes.
        always: What comes first, whatever was asked.
        turns_share: From 0.0 to 1.0.
    """
    chosen: dict[str, Document] = {}

    def fill(documents: Sequence[Document], left: int) -> int:
        for document in documents:
            if left <= 0:
                break
            if document.id not in chosen and (price := cost(document)) <= left:
                left -= price
                chosen[document.id] = document
        return left

    left = fill(list(always), budget)
    ranked = [hit.document for hit in hits]
    facts = [document for document in ranked if document.kind == "fact"]
    turns = [document for document in ranked if document.kind == "turn"]
    for_turns = round(left * turns_share) if turns else 0
    left = for_turns + fill(facts, left - for_turns)
    told = {source for document in chosen.values() for source in document.sources}
    left = fill([document for document in turns if document.id not in told], left)
    fill([*facts, *turns], left)
    return list(chosen.values())

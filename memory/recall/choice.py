"""What of a ranking is shown within a budget of tokens. Pure."""

from collections.abc import Callable, Collection, Iterable

from memory.recall.index import Document, Hit


def choose(
    hits: Iterable[Hit],
    *,
    budget: int,
    cost: Callable[[Document], int],
    always: Collection[Document] = (),
    turns_share: float = 0.5,
) -> list[Document]:
    """Return what fits, best first: a share of the budget for past turns, the rest for facts.

    What one kind does not use, the other may. A document that is too long for what is left is passed over.

    Args:
        hits: Best first.
        budget: Tokens.
        cost: Tokens that a document's line takes.
        always: What comes first, whatever was asked.
        turns_share: From 0.0 to 1.0.
    """
    left = budget
    chosen: dict[str, Document] = {}
    for document in always:
        price = cost(document)
        if price <= left:
            left -= price
            chosen[document.id] = document
    ranked = [hit.document for hit in hits]
    for_turns = round(left * turns_share)
    shares = {"turn": for_turns, "fact": left - for_turns}
    for last in (False, True):
        for document in ranked:
            kind = "fact" if last else document.kind
            price = cost(document)
            if document.id not in chosen and price <= shares[kind]:
                shares[kind] -= price
                chosen[document.id] = document
        shares = {"turn": 0, "fact": sum(shares.values())}
    return list(chosen.values())

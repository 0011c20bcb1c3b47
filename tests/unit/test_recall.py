"""Recall: what matters now is found, and what is gone is not."""

from memory.recall import Document, Hit, Index, choose


def fact(name: str, text: str) -> Document:
    return Document(id=name, text=text)


def test_what_shares_words_is_found_and_what_was_removed_is_not() -> None:
    index = Index.of([fact("a", "Lives in Oslo"), fact("b", "Plays the cello"), fact("c", "Oslo is cold")])
    assert [hit.document.id for hit in index.rank("cello")] == ["b"]
    index.remove(["b", "unknown"])
    assert index.rank("cello") == []
    index.put([fact("a", "Lives in Bergen")])
    assert index.rank("Who is in Bergen?")[0].document.id == "a"
    assert len(index) == 2


def test_a_budget_is_shared_and_what_one_kind_leaves_the_other_may_use() -> None:
    facts = [Document(id=f"f{n}", text="x") for n in range(4)]
    turns = [Document(id=f"t{n}", text="x", kind="turn") for n in range(4)]
    hits = [Hit(each, 1.0) for each in (*facts, *turns)]
    assert [each.id for each in choose(hits, budget=4, cost=lambda _: 1)] == ["f0", "f1", "t0", "t1"]
    assert len(choose(hits[:4], budget=4, cost=lambda _: 1)) == 4
    assert len(choose(hits, budget=3, cost=lambda _: 1, always=[facts[3]])) == 3

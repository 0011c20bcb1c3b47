import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.namespaces import Owner, owner_of, user_segment

identities = st.text(alphabet=st.characters(codec=None, exclude_categories=()), min_size=1)


@given(identities, identities)
def test_no_user_reaches_another(left: str, right: str) -> None:
    if left != right:
        one, other = user_segment(left), user_segment(right)
        assert one != other
        assert not one.startswith(other)


@given(identities)
def test_a_segment_holds_no_text_of_the_identity(user_id: str) -> None:
    segment = user_segment(user_id)
    assert segment.startswith("u_")
    assert len(segment) == 34
    assert segment[2:].isalnum()
    assert "." not in segment


@pytest.mark.parametrize("user_id", ["", None, 7])
def test_no_identity_is_refused_by_name(user_id: str) -> None:
    with pytest.raises(ValueError, match="user_id"):
        user_segment(user_id)


@pytest.mark.parametrize("agent_name", ["", "a.b", "a b", "x" * 65, "ä"])
def test_a_bad_agent_name_is_refused_by_name(agent_name: str) -> None:
    with pytest.raises(ValueError, match="agent_name"):
        Owner.of("ada", agent_name)


def test_a_bad_segment_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="segment"):
        Owner("ada")


@given(identities)
def test_namespaces_lead_back_to_their_owner(user_id: str) -> None:
    owner = Owner.of(user_id, "helper")
    assert owner_of(owner.namespace("facts")) == owner
    assert Owner.from_due_key(owner.due_key) == owner


@pytest.mark.parametrize("namespace", [("palimpsest",), ("other", "a", "b", "c"), ("palimpsest", "ada", "x", "facts")])
def test_foreign_namespaces_have_no_owner(namespace: tuple[str, ...]) -> None:
    assert owner_of(namespace) is None

from typing import Any, Literal, cast

import pytest
from langgraph_sdk import Auth

from graphs.server.authenticate import User
from graphs.server.permissions import OPERATOR, authorize, make_auth
from memory.namespaces import Owner, user_root

ADA = Owner.of("ada")

Resource = Literal["agents", "threads", "crons", "assistants", "store"]


class Caller:
    """What the server hands to a rule as the user."""

    identity = "ada"
    display_name = "ada"
    is_authenticated = True
    permissions: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __contains__(self, key: object) -> bool:
        return key == "identity"

    def __iter__(self) -> Any:
        return iter(("identity",))


def asks(resource: Resource, action: Any, *permissions: str) -> Auth.types.AuthContext:
    return Auth.types.AuthContext(permissions=permissions, user=Caller(), resource=cast("Any", resource), action=action)


async def refused(rule: Any, ctx: Auth.types.AuthContext, value: dict[str, Any], status: int = 403) -> str:
    with pytest.raises(Auth.exceptions.HTTPException) as caught:
        await rule(ctx, value)
    assert caught.value.status_code == status
    return str(caught.value.detail)


async def test_what_no_rule_knows_is_denied() -> None:
    assert await authorize(asks("agents", "create"), {}) is False


@pytest.mark.parametrize("mode", ["off", "", 1, ["normal"]])
async def test_a_thread_in_no_known_mode_is_refused_with_the_field(mode: object) -> None:
    detail = await refused(authorize, asks("threads", "update"), {"metadata": {"memory_mode": mode}}, status=422)
    assert "metadata.memory_mode must be one of normal, read_only, incognito" in detail


@pytest.mark.parametrize("permissions", [(), (OPERATOR,)])
async def test_what_is_made_is_its_makers_and_only_an_operator_publishes_an_assistant(permissions: tuple[str]) -> None:
    value = {"metadata": {"owner": "eve", "created_by": "system", "published": "true"}}
    assert await authorize(asks("assistants", "create", *permissions), value) == {"owner": "ada"}
    assert value["metadata"] == {"owner": "ada", **({"published": "true"} if permissions else {})}


@pytest.mark.parametrize("action", ["get", "search", "put", "delete", "list_namespaces"])
@pytest.mark.parametrize(
    "namespace",
    [
        Owner.of("bob").namespace("facts"),
        user_root("bob"),
        ("palimpsest",),
        ("palimpsest", "*"),
        ("palimpsest-due", "3"),
        (ADA.segment,),
        ("palimpsest", "ada"),
        ("palimpsest", ADA.segment[:-1]),
        ("palimpsest", ADA.segment + "0"),
    ],
)
async def test_the_store_of_others_is_closed(action: str, namespace: tuple[str, ...]) -> None:
    assert "must begin with your own" in await refused(authorize, asks("store", action), {"namespace": namespace})


@pytest.mark.parametrize("action", ["get", "search", "list_namespaces"])
@pytest.mark.parametrize("kind", ["facts", "history", "journal", "outbox", "receipts", "seen"])
async def test_the_own_store_may_be_read(action: str, kind: Any) -> None:
    value = {"namespace": ADA.namespace(kind)}
    await authorize(asks("store", action), value)
    assert value == {"namespace": ADA.namespace(kind)}


@pytest.mark.parametrize("action", ["put", "delete"])
async def test_of_the_own_store_facts_and_profile_may_be_written(action: str) -> None:
    for kind in ("facts", "profile"):
        await authorize(asks("store", action), {"namespace": ADA.namespace(kind)})
    closed = [ADA.namespace(kind) for kind in ("history", "journal", "outbox", "seen", "receipts")]
    for namespace in [*closed, ADA.control, user_root("ada"), (*ADA.namespace("facts"), "deeper")]:
        assert "may be written" in await refused(authorize, asks("store", action), {"namespace": namespace})


@pytest.mark.parametrize("action", ["search", "list_namespaces"])
@pytest.mark.parametrize("namespace", [None, ()])
async def test_from_the_root_means_from_the_own_part(action: str, namespace: tuple[str, ...] | None) -> None:
    value: dict[str, Any] = {"namespace": namespace}
    await authorize(asks("store", action), value)
    assert value["namespace"] == user_root("ada")


async def test_the_root_itself_is_no_place_to_write() -> None:
    for action in ("put", "get", "delete"):
        await refused(authorize, asks("store", action), {"namespace": ()})


def test_every_resource_has_a_rule_and_the_rest_is_denied() -> None:
    auth = make_auth(lambda _: User(identity="ada", permissions=[]))
    assert (auth._global_handlers, auth._handlers) == ([authorize], {})
    with pytest.raises(ValueError, match="already set"):
        auth.authenticate(authorize)  # type: ignore[type-var]

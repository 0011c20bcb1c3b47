from typing import Any, Literal
from uuid import UUID, uuid5

import pytest
from langgraph_sdk import Auth

from graphs.server.authenticate import User
from graphs.server.permissions import OPERATOR, assistant, deny, make_auth, own_cron, own_store, own_thread
from memory.namespaces import Owner, user_root

GRAPH_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
CHAT_ASSISTANT = uuid5(GRAPH_NAMESPACE, "chat")
ADA = Owner.of("ada")
PUBLISHED = {"$or": [{"owner": "ada"}, {"created_by": "system"}, {"published": "true"}]}

Resource = Literal["threads", "crons", "assistants", "store"]


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
    return Auth.types.AuthContext(permissions=permissions, user=Caller(), resource=resource, action=action)


async def refused(rule: Any, ctx: Auth.types.AuthContext, value: dict[str, Any], status: int = 403) -> str:
    with pytest.raises(Auth.exceptions.HTTPException) as caught:
        await rule(ctx, value)
    assert caught.value.status_code == status
    return str(caught.value.detail)


async def test_what_no_rule_knows_is_denied() -> None:
    assert await deny(asks("threads", "create"), {}) is False


@pytest.mark.parametrize("action", ["create", "read", "update", "delete", "search", "create_run"])
async def test_threads_belong_to_who_made_them(action: str) -> None:
    value: dict[str, Any] = {"metadata": {"owner": "bob", "topic": "x"}}
    assert await own_thread(asks("threads", action), value) == {"owner": "ada"}
    if action in ("create", "update", "create_run"):
        assert value["metadata"] == {"owner": "ada", "topic": "x"}


async def test_a_thread_without_metadata_gets_its_owner() -> None:
    value: dict[str, Any] = {"metadata": None}
    await own_thread(asks("threads", "create"), value)
    assert value["metadata"] == {"owner": "ada"}


async def test_the_chat_graph_is_open() -> None:
    value: dict[str, Any] = {"assistant_id": CHAT_ASSISTANT, "metadata": {}}
    assert await own_thread(asks("threads", "create_run"), value) == {"owner": "ada"}
    cron: dict[str, Any] = {"payload": {"assistant_id": "chat"}, "metadata": {"owner": "bob"}}
    assert await own_cron(asks("crons", "create"), cron) == {"owner": "ada"}
    assert cron["metadata"]["owner"] == "ada"


@pytest.mark.parametrize("mode", ["off", "", 1, ["normal"]])
async def test_a_thread_in_no_known_mode_is_refused_with_the_field(mode: object) -> None:
    detail = await refused(own_thread, asks("threads", "update"), {"metadata": {"memory_mode": mode}}, status=422)
    assert "metadata.memory_mode must be one of normal, read_only, incognito" in detail


@pytest.mark.parametrize("mode", ["normal", "read_only", "incognito", None])
async def test_a_thread_may_be_switched_at_any_time(mode: str | None) -> None:
    value: dict[str, Any] = {"metadata": {"memory_mode": mode}}
    assert await own_thread(asks("threads", "update"), value) == {"owner": "ada"}
    assert value["metadata"]["memory_mode"] == mode


async def test_assistants_are_read_when_published_and_written_by_their_owner() -> None:
    for action in ("read", "search"):
        assert await assistant(asks("assistants", action), {}) == PUBLISHED
    for action in ("create", "update", "delete"):
        assert await assistant(asks("assistants", action), {"graph_id": "chat"}) == {"owner": "ada"}


async def test_only_operators_publish_and_nobody_is_the_server() -> None:
    forged = {"graph_id": "chat", "metadata": {"owner": "bob", "created_by": "system", "published": "true"}}
    await assistant(asks("assistants", "create"), forged)
    assert forged["metadata"] == {"owner": "ada"}
    published = {"graph_id": "chat", "metadata": {"created_by": "system", "published": "true"}}
    await assistant(asks("assistants", "update", OPERATOR), published)
    assert published["metadata"] == {"owner": "ada", "published": "true"}


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
    assert "must begin with your own" in await refused(own_store, asks("store", action), {"namespace": namespace})


@pytest.mark.parametrize("action", ["get", "search", "list_namespaces"])
@pytest.mark.parametrize("kind", ["facts", "history", "journal", "outbox", "receipts", "seen"])
async def test_the_own_store_may_be_read(action: str, kind: Any) -> None:
    value = {"namespace": ADA.namespace(kind)}
    await own_store(asks("store", action), value)
    assert value == {"namespace": ADA.namespace(kind)}


@pytest.mark.parametrize("action", ["put", "delete"])
async def test_of_the_own_store_facts_and_profile_may_be_written(action: str) -> None:
    for kind in ("facts", "profile"):
        await own_store(asks("store", action), {"namespace": ADA.namespace(kind)})
    closed = [ADA.namespace(kind) for kind in ("history", "journal", "outbox", "seen", "receipts")]
    for namespace in [*closed, ADA.control, user_root("ada"), (*ADA.namespace("facts"), "deeper")]:
        assert "may be written" in await refused(own_store, asks("store", action), {"namespace": namespace})


@pytest.mark.parametrize("action", ["search", "list_namespaces"])
@pytest.mark.parametrize("namespace", [None, ()])
async def test_from_the_root_means_from_the_own_part(action: str, namespace: tuple[str, ...] | None) -> None:
    value: dict[str, Any] = {"namespace": namespace}
    await own_store(asks("store", action), value)
    assert value["namespace"] == user_root("ada")


async def test_the_root_itself_is_no_place_to_write() -> None:
    for action in ("put", "get", "delete"):
        await refused(own_store, asks("store", action), {"namespace": ()})


def test_every_resource_has_a_rule_and_the_rest_is_denied() -> None:
    auth = make_auth(lambda _: User(identity="ada", permissions=[]))
    assert auth._global_handlers == [deny]
    assert {resource for resource, _ in auth._handlers} == {"threads", "assistants", "crons", "store"}
    with pytest.raises(ValueError, match="already set"):
        auth.authenticate(deny)  # type: ignore[type-var]

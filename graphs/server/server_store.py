"""The server's store for its own HTTP app: our own where this process opened it, else through the server's own API.

`langgraph.config.get_store()` does not do inside an app: the server looks the store up once, before it has opened
the one that `store.path` names, and hands out its default store, in memory, ever after (langgraph-api 0.16.7).
The API reaches the store that graphs see, on any runtime. Calls carry no user, and no rule of `permissions.py` holds
for them: whoever uses this store makes namespaces from the identity that the server set.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp
from langgraph_sdk import get_client
from langgraph_sdk.client import StoreClient

from graphs.identity import as_server

# Each is a call of its own to this very process, which has users to answer meanwhile.
_AT_ONCE = 16


class ServerStore(BaseStore):
    """The store of the server that this process is; asynchronous only.

    Without an own store, operations of one batch are calls of their own: a batch is then not atomic, and in no order
    among its operations.

    Args:
        own: Returns our own store, once the server has opened it; `None` if it has another one.
    """

    def __init__(self, own: Callable[[], BaseStore | None] = lambda: None) -> None:
        self._own = own

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Refuse: an app's requests run on an event loop, which this would block."""
        raise NotImplementedError("use abatch: the server's own API is asynchronous")

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out the operations, and return their results; through the server's API at most 16 at once."""
        # A document of 480 facts is 2,900 operations: as requests they took minutes on a busy machine, one by one seen
        # by whoever reads meanwhile.
        if own := self._own():
            return await own.abatch(ops)
        return await as_server(self._carry_out(list(ops)))

    async def _carry_out(self, ops: list[Op]) -> list[Result]:
        store = get_client().store
        results: list[Result] = []
        for start in range(0, len(ops), _AT_ONCE):
            results += await asyncio.gather(*(_call(store, op) for op in ops[start : start + _AT_ONCE]))
        return results


async def _call(store: StoreClient, op: Op) -> Result:
    """Carry out one operation."""
    if isinstance(op, PutOp):
        # A put of nothing is how a store is told to delete.
        if op.value is None:
            await store.delete_item(op.namespace, op.key)
        else:
            await store.put_item(op.namespace, op.key, op.value, index=op.index)
        return None
    if isinstance(op, GetOp):
        found = await store.get_item(op.namespace, op.key)
        return Item(**_fields(found)) if found else None
    if isinstance(op, SearchOp):
        page = await store.search_items(
            op.namespace_prefix, filter=op.filter, limit=op.limit, offset=op.offset, query=op.query
        )
        return [SearchItem(**_fields(item), score=item.get("score")) for item in page["items"]]
    paths = {condition.match_type: list(map(str, condition.path)) for condition in op.match_conditions or ()}
    listed = await store.list_namespaces(
        prefix=paths.get("prefix"),
        suffix=paths.get("suffix"),
        max_depth=op.max_depth,
        limit=op.limit,
        offset=op.offset,
    )
    return [tuple(namespace) for namespace in listed["namespaces"]]


def _fields(item: Mapping[str, Any]) -> dict[str, Any]:
    # In process a namespace is a tuple and a time a datetime; over the API they are a list and a text.
    return {
        "namespace": tuple(item["namespace"]),
        "key": item["key"],
        "value": item["value"],
        "created_at": datetime.fromisoformat(item["created_at"]),
        "updated_at": datetime.fromisoformat(item["updated_at"]),
    }

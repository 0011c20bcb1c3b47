"""What the stores on SQLite and Postgres share: each call is a batch of its own, and nothing in them expires."""

from collections.abc import Iterable

from langgraph.store.base import BaseStore, Op, PutOp, Result


class DurableStore(BaseStore):
    """The doors of a store. Nobody sweeps its files and tables, so that an item to expire would stay for good."""

    supports_ttl = False

    # The stock stores gather every operation of one tick, whoever asked, into one batch that fails as a whole:
    # one user's value that cannot be stored would lose another user's. `BaseStore` runs each call by itself.
    aget = BaseStore.aget
    asearch = BaseStore.asearch
    aput = BaseStore.aput
    adelete = BaseStore.adelete
    alist_namespaces = BaseStore.alist_namespaces

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out the operations, as the store does.

        Raises:
            NotImplementedError: If an item is to expire; as for `aput`, which raises it.
        """
        batch = list(ops)
        for op in batch:
            if isinstance(op, PutOp) and op.ttl is not None:
                await self.aput(op.namespace, op.key, {}, ttl=op.ttl)
        return await super().abatch(batch)  # type: ignore[safe-super]  # the stock store's, which comes behind

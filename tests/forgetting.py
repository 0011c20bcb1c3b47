"""What erases a user or a fact, on a store's synchronous or asynchronous interface."""

import time
from collections.abc import Callable

from langgraph.store.base import BaseStore

from memory.door import arun, run
from memory.facts.chain import Chain
from memory.forget import erase
from memory.namespaces import Owner


def erase_user(store: BaseStore, user_id: str) -> int:
    return run(store, erase.erase_user(Owner.of(user_id), time.time()))


def erase_fact(store: BaseStore, owner: Owner, fact_id: str, *, clock: Callable[[], float] = time.time) -> Chain:
    return run(store, erase.erase_fact(owner, fact_id, clock()))


async def aerase_fact(store: BaseStore, owner: Owner, fact_id: str) -> Chain:
    return await arun(store, erase.erase_fact(owner, fact_id, time.time()))

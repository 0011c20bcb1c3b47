"""What `tests/e2e/langhost/serve.py` mends of a runtime's sessions with its database."""

import asyncio

from tests.e2e.langhost.cluster import Cluster


async def test_a_session_is_closed_once_nothing_is_under_way_in_it(cluster: Cluster) -> None:
    # In the environment of the servers alone.
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    from tests.e2e.langhost.serve import Session

    engine = create_async_engine(cluster.postgres.database().replace("postgresql:", "postgresql+asyncpg:"))
    for steps in range(40):
        session = Session(engine)
        asking = asyncio.create_task(session.execute(text("SELECT pg_sleep(0.2)")))
        for _ in range(steps):
            await asyncio.sleep(0)
        await session.close()
        await asyncio.gather(asking, return_exceptions=True)
        await session.close()
    await engine.dispose()

"""A program that ends in order writes down the turns that a deadline left unwritten, and says of which it could not."""

import subprocess
import sys

from tests.stories.serving import PROJECT

PROGRAM = """
import asyncio, logging, threading
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from palimpsest import FactStore, MemoryConfig, MemoryService, Settings, build_graph
from tests.fakes import RecordingModel, learns

logging.basicConfig(format="%(message)s")

class Store(InMemoryStore):
    fails, hangs = False, False

    async def abatch(self, ops):
        if self.fails:
            raise OSError("the disk is gone")
        return await super().abatch(ops)

    def batch(self, ops):
        if self.hangs:
            threading.Event().wait()
        return super().batch(ops)

store, model = Store(), RecordingModel(respond=learns)
settings = Settings(single_user=True, memory=MemoryConfig(update_spacing_seconds=0))
service = MemoryService(settings, lambda *_: model)
graph = build_graph(service=service).compile(checkpointer=InMemorySaver(), store=store)

def say(text, thread):
    asked = {"messages": [("user", text)]}
    return asyncio.run(graph.ainvoke(asked, {"configurable": {"thread_id": thread}}))["memory"]["receipt"]

def facts():
    return sorted(fact.content for fact in FactStore(store, "local").list())

assert "not_written" not in say("I like figs.", "T")
store.fails = True
assert say("I like plums.", "T")["not_written"] in ("failed", "store_away")
assert say("I like kiwis.", "U")["not_written"] in ("failed", "store_away")
"""


def ends(rest: str) -> tuple[str, str]:
    """Run the program, with this behind its turns, to its end; return what it prints and logs."""
    command = [sys.executable, "-c", PROGRAM + rest]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_a_closed_service_has_written_down_and_learned_what_was_left() -> None:
    assert ends("service.close(100); print(facts())")[0] == "['Likes figs', 'Likes kiwis', 'Likes plums']\n"


def test_what_cannot_be_written_down_is_said_and_delays_no_end() -> None:
    assert "2 turns are lost unless a checkpointer keeps their threads" in ends("store.hangs = True")[1]

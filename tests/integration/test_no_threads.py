"""A process that can have no further thread answers, writes its turns down, and learns them once it can."""

import subprocess
import sys

from tests.stories.serving import PROJECT

PROGRAM = """
import asyncio, resource, threading
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore
from graphs.process.service import MemoryService
from graphs.settings import Settings
from memory.config import MemoryConfig
from memory.facts.store import FactStore
from memory.turn import Closing
from tests.fakes import RecordingModel, learns
from tests.memory_bench import ADA

GIB = 2**30
memory = MemoryConfig(debounce_seconds=0, update_spacing_seconds=0)
store, model = InMemoryStore(), RecordingModel(respond=learns)
service = MemoryService(Settings(memory=memory), lambda *_: model)

def say(number, text):
    said = [HumanMessage(text, id=f"u{number}"), AIMessage("Noted.", id=f"a{number}")]
    return asyncio.run(service.aremember(store, Closing(owner=ADA, thread_id="T", kind="turn", messages=said)))

resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, resource.RLIM_INFINITY))
threading.stack_size(16 * GIB)
assert say(1, "I like figs") is not None
threading.stack_size(0)
assert say(2, "I like plums") is not None
assert service.close(100)
print(sorted(fact.content for fact in FactStore(store, ADA).list()))
"""


def test_a_turn_for_whose_update_there_is_no_thread_is_written_down_and_learned_later() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=240, check=False)
    assert (done.stdout, done.returncode) == ("['Likes figs', 'Likes plums']\n", 0), done.stderr

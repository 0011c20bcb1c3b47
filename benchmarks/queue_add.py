"""What `MemoryUpdateQueue.add` costs a turn, with few and with many conversations waiting.

    python -m benchmarks.queue_add

Prints CPU microseconds for one call, the best of several rounds. The exit code is 1 when one is over 20, whatever the
depth.
"""

import sys
import time

from memory.config import MemoryConfig
from memory.updates.conversation import ConversationContext
from memory.updates.queue import MemoryUpdateQueue

DEPTHS = (1, 100, 10_000)
ROUNDS = 7
CALLS = 2_000
GOAL = 20.0


def cost(depth: int) -> float:
    """Return the CPU microseconds of one `add` while so many conversations wait."""
    config = MemoryConfig(debounce_seconds=3600, max_wait_seconds=3600)
    queue = MemoryUpdateQueue(lambda _: None, memory_config=config)
    for number in range(depth):
        queue.add(ConversationContext(f"waiting {number}", f"user {number}"))
    contexts = [ConversationContext(f"waiting {number % depth}", f"user {number % depth}") for number in range(CALLS)]
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for context in contexts:
            queue.add(context)
        best = min(best, (time.process_time() - began) / CALLS * 1e6)
    queue.close(0)
    return best


def main() -> int:
    """Measure, print a line for each depth, and return the exit code."""
    costs = {depth: cost(depth) for depth in DEPTHS}
    for depth, microseconds in costs.items():
        print(f"{depth:>6} waiting: {microseconds:5.1f} µs of CPU for one add (at most {GOAL:g})")
    return 0 if max(costs.values()) <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())

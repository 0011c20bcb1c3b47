"""The context tier against langmem and langchain: CPU time, tokenizer calls, bytes in the checkpoint file.

    python -m benchmarks.context [--turns 1000] [--rounds 15] [--times 1] [--write measured/context.md]

All in one process, on made-up conversations of 40 words a message. The exit code is 1 when a ratio is more than so many
`--times` its goal.
"""

import sys
from pathlib import Path

from benchmarks import checkpoints, decision, measuring
from benchmarks.measuring import keep, table, verdict
from memory.context.tokens import shared_counter


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = measuring.options(__doc__)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    shared_counter().tokenizer.warm_up()
    if not shared_counter().tokenizer.exact:
        print("Tokens are estimated here: install the extra `tokens` to compare exact counts.", file=sys.stderr)
    rows = [*decision.rows(options.rounds), decision.tokenizer_calls(options.turns), *checkpoints.rows(options.turns)]
    code = verdict(rows, options.times)
    if options.write:
        keep(options.write, table(rows))
    return code


if __name__ == "__main__":
    sys.exit(main())

"""The context tier against langmem and langchain: CPU time, tokenizer calls, bytes in the checkpoint file.

    python -m benchmarks.context [--turns 1000] [--rounds 15] [--write README.md]

All in one process, on made-up conversations of 40 words a message. `--write` puts the table between the marks
`<!-- benchmark: context -->` and `<!-- end -->` of a file. The exit code is 1 when a goal is missed.
"""

import argparse
import sys
from pathlib import Path

from benchmarks import checkpoints, decision
from benchmarks.measuring import rewrite, table
from memory.context.tokens import shared_counter


def main() -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    shared_counter().tokenizer.warm_up()
    if not shared_counter().tokenizer.exact:
        print("Tokens are estimated here: install the extra `tokens` to compare exact counts.", file=sys.stderr)
    rows = [*decision.rows(options.rounds), decision.tokenizer_calls(options.turns), *checkpoints.rows(options.turns)]
    print(table(rows))
    if options.write:
        rewrite(options.write, "context", table(rows))
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Which server tests say nothing about servers over Postgres and Redis, and why: a file, or one test of it."""

from typing import Final

_FILES: Final = "looks into the SQLite files of `langgraph dev`"

SKIPPED: Final = {
    "test_command_line.py::test_the_local_files_beside_a_running_server_are_its_memory": _FILES,
    "test_database_breaks_off.py": "chooses the database, and these servers bring their own",
    "test_deleted_under_any_saver.py": "chooses the saver, and these servers bring their own",
    "test_isolation.py::test_a_thread_that_only_memory_knows_still_is_nobody_elses": _FILES,
    "test_kept_no_longer.py": _FILES,
    "test_this_machine.py": "asks from another machine, and the tests' own proxy on this one stands before the servers",
    "test_unwritten_turns.py": _FILES,
}

"""What each request of a server does about the files that the server has open."""

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.requests import HTTPConnection

from graphs.server.data_folder import data_is_there


def test_where_memory_is_in_a_database_a_request_waits_for_no_thread() -> None:
    asked = cast("Coroutine[Any, Any, object]", data_is_there([])(HTTPConnection({"type": "http", "headers": []})))
    with pytest.raises(StopIteration) as answered:
        asked.send(None)  # it comes to its end without an event loop
    assert answered.value.value is None


def test_that_a_file_is_gone_is_logged_once_until_it_is_there_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (file := tmp_path / "store.sqlite").touch()
    guard = data_is_there([file])

    def refuses() -> bool:
        return asyncio.run(cast("Coroutine[Any, Any, object]", guard(HTTPConnection({"type": "http"})))) is not None

    assert not refuses()
    for _ in range(2):
        file.rename(away := tmp_path / "away")
        assert [refuses(), refuses(), refuses()] == [True, True, True]
        away.rename(file)
        assert not refuses()
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2

"""What each request of a server does about the files that the server has open."""

from collections.abc import Coroutine
from typing import Any, cast

import pytest
from starlette.requests import HTTPConnection

from graphs.server.data_folder import data_is_there


def test_where_memory_is_in_a_database_a_request_waits_for_no_thread() -> None:
    asked = cast("Coroutine[Any, Any, object]", data_is_there([])(HTTPConnection({"type": "http", "headers": []})))
    with pytest.raises(StopIteration) as answered:
        asked.send(None)  # it comes to its end without an event loop
    assert answered.value.value is None

"""A provider that refuses a call: its reason is in the log and in the error, what the user said in neither."""

import pytest
from langchain_core.messages import HumanMessage

from graphs.chat import build_graph
from graphs.process.failures import ModelUnavailable
from graphs.process.service import MemoryService
from graphs.settings import Settings
from tests.fakes import RecordingModel


class BadRequestError(Exception):
    """A refusal as providers' packages raise it."""

    status_code = 400

    def __init__(self, message: str, **body: str) -> None:
        super().__init__(message)
        self.body = {"message": message, **body}


async def test_the_log_says_more_and_never_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    refusal = BadRequestError("Unknown argument for 'My quokka is Zoltan'", code="bad_argument", param="top_q")
    service = MemoryService(Settings(), lambda *_: RecordingModel(respond=lambda _: refusal))
    with pytest.raises(ModelUnavailable) as caught:
        await build_graph(service=service).compile().ainvoke({"messages": [HumanMessage("My quokka is Zoltan")]})
    for told in (str(caught.value), caplog.text):
        assert "status 400, code bad_argument, parameter top_q" in told
        assert "quokka" not in told
        assert "Zoltan" not in told
    assert "BadRequestError at " in caplog.text

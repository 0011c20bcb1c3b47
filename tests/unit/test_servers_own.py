"""Under a server that keeps checkpoints itself ours step aside, our store does not."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from graphs import persistence
from graphs.process import deployment
from graphs.server.workarounds.named_checkpointer import _CHECKPOINTER
from graphs.settings import Settings

MODULE, NAMED, GET = _CHECKPOINTER


class _Service:
    settings = Settings(keeps_its_own=True)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A server's module that was told to use ours, and has its own too."""
    module = ModuleType(MODULE)
    setattr(module, NAMED, "ours")

    async def own() -> object:
        return getattr(module, NAMED) or "its own"

    setattr(module, GET, own)
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setattr(deployment, "service_of_process", _Service)
    return module


async def test_the_server_is_given_its_own_and_asks_for_ours_no_more(server: ModuleType) -> None:
    async with persistence.checkpointer() as opened:
        assert str(opened) == "its own"
    assert await getattr(server, GET)() == "its own"


async def test_a_server_of_another_shape_is_told_what_to_do(server: ModuleType) -> None:
    delattr(server, NAMED)
    with pytest.raises(RuntimeError, match="take `checkpointer` out of its configuration"):
        async with persistence.checkpointer():
            pass


def test_the_installed_server_has_that_shape() -> None:
    package = find_spec("langgraph_api")
    if package is None or package.origin is None:
        pytest.skip("needs langgraph-api")
    path = Path(package.origin).parent.joinpath(*MODULE.split(".")[1:]).with_suffix(".py")
    source = path.read_text()
    assert f"\n{NAMED}: " in source
    assert f"if {NAMED}" in source
    assert f"\nasync def {GET}(" in source


@pytest.mark.usefixtures("server")
async def test_where_no_database_is_named_memory_is_kept_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Service, "settings", Settings(keeps_its_own=True, data_dir=tmp_path))
    with pytest.raises(ValueError, match="DATABASE_URI must name a Postgres"):
        async with persistence.store():
            pass
    assert os.listdir(tmp_path) == []

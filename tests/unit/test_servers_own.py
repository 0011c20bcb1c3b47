"""Under a server that keeps checkpoints and memory itself ours step aside, though the configuration names them."""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from graphs import deployment, persistence
from graphs.persistence.servers_own import _CHECKPOINTER, _STORE
from graphs.settings import Settings


class _Service:
    settings = Settings(keeps_its_own=True)


def server_with(monkeypatch: pytest.MonkeyPatch, module_name: str, named: str, get: str) -> ModuleType:
    """A server's module that was told to use ours, and has its own too."""
    module = ModuleType(module_name)
    setattr(module, named, "ours")

    async def own() -> object:
        return getattr(module, named) or "its own"

    setattr(module, get, own)
    monkeypatch.setitem(sys.modules, module_name, module)
    monkeypatch.setattr(deployment, "service_of_process", _Service)
    return module


async def test_the_server_is_given_its_own_and_asks_for_ours_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    for (module_name, named, get), ours in ((_CHECKPOINTER, persistence.checkpointer), (_STORE, persistence.store)):
        server = server_with(monkeypatch, module_name, named, get)
        async with ours() as opened:
            assert str(opened) == "its own"
        assert await getattr(server, get)() == "its own"


async def test_a_server_of_another_shape_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    server = server_with(monkeypatch, *_STORE)
    delattr(server, _STORE[1])
    with pytest.raises(RuntimeError, match="take `checkpointer` and `store` out of its configuration"):
        async with persistence.store():
            pass


@pytest.mark.parametrize(("module_name", "named", "get"), [_CHECKPOINTER, _STORE])
def test_the_installed_server_has_that_shape(module_name: str, named: str, get: str) -> None:
    package = find_spec("langgraph_api")
    if package is None or package.origin is None:
        pytest.skip("needs langgraph-api")
    path = Path(package.origin).parent.joinpath(*module_name.split(".")[1:]).with_suffix(".py")
    source = path.read_text()
    assert f"\n{named}: " in source
    assert f"if {named}" in source
    assert f"\nasync def {get}(" in source

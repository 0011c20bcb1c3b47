"""Benchmarks that publish tokens refuse to estimate them, and say what to install."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import quality
from benchmarks.bill import __main__ as bill
from memory.context.tokenizer import Encoder, Tokenizer

TALK = {"sample_id": "conv-41", "conversation": {"speaker_a": "Ada", "speaker_b": "Bo"}, "observation": {}, "qa": []}


def no_network() -> Encoder:
    raise OSError("no network")


@pytest.mark.parametrize("main", [quality.main, bill.main])
def test_without_a_tokenizer_nothing_is_measured(
    main: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "locomo").mkdir()
    (tmp_path / "locomo" / "conv-41.json").write_text(json.dumps(TALK))
    report = tmp_path / "report.md"
    report.write_text("as it was")

    assert main([str(tmp_path), "--write", str(report)], Tokenizer([no_network])) == 2

    assert report.read_text() == "as it was"
    told = capsys.readouterr()
    assert told.out == ""
    assert "pip install 'palimpsest-memory[tokens]'" in told.err


@pytest.mark.parametrize("main", [quality.main, bill.main])
def test_without_data_nothing_is_counted(
    main: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)], Tokenizer([no_network])) == 0
    assert "Skipped" in capsys.readouterr().out

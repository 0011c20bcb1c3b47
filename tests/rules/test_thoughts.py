"""What follows the thoughts that a model puts into its answer's text; the page's script reads it as the memory does."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from graphs.server import page
from memory.text import after_thoughts

SCRIPT = Path(page.__file__ or "").parent / "static" / "thoughts.js"

THOUGHTS = {
    "<think>Figs?</think>Try figs.": "Try figs.",
    "\n<think>\n\n</think>\n\nTry figs.": "Try figs.",
    "<Thinking>Figs?</Thinking> Try figs.": "Try figs.",
    "<think>Figs?</think>\n<think>Or plums?</think>\n\nTry figs.": "Try figs.",
    "They want figs.\n</think>\n\nTry figs.": "Try figs.",
    "They want figs. </think> Try figs.": "Try figs.",
    "They want figs</think>Try figs.": "Try figs.",
    'They want figs</think>{"facts": []}': '{"facts": []}',
    "They want figs</think>```json\n[]\n```": "```json\n[]\n```",
    "他们要无花果。</think>吃无花果。": "吃无花果。",
    "Well. <thinking>Figs?</thinking> Try figs.": "Well. Try figs.",
    "They want figs\n</think>": "",
    "<think>It breaks": "",
    "<think>in ``` code</think>Try ```figs```": "Try ```figs```",
}
TEXTS = [
    "",
    "Try figs.",
    "Use `<think>` and `</think>`.",
    "So:\n```xml\n<think>my plan</think>\n```\nThat is all.",
    "So:\n```xml\n</think>\n",
    "HTML has no </think> tag.",
    'The template prints "</think>" first.',
    "Put it between <think> and </think>, then answer.",
    "Use this:\n<thinking>my plan</thinking>\n<answer>figs</answer>",
    "I would. <think> is the tag that begins it.",
    "<thinkpad>is a laptop</thinkpad>",
]


@pytest.mark.parametrize(("said", "follows"), [*THOUGHTS.items(), *((text, text) for text in TEXTS)])
def test_thoughts_are_left_out_and_tags_in_code_and_within_sentences_are_text(said: str, follows: str) -> None:
    assert after_thoughts(said) == follows


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_the_pages_script_leaves_out_the_same() -> None:
    asked = [*THOUGHTS, *TEXTS]
    program = (
        f"import {{ afterThoughts }} from {json.dumps(SCRIPT.as_uri())};"
        f"console.log(JSON.stringify({json.dumps(asked)}.map(afterThoughts)))"
    )
    told = subprocess.run(["node", "--input-type=module", "-e", program], capture_output=True, check=True, text=True)
    assert json.loads(told.stdout) == [*map(after_thoughts, asked)]

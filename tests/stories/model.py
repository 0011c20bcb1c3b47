"""The model of all stories. What it answers follows from what it is asked: stories run side by side and share it.

It has two names: `chat` talks, `memory` summarizes and extracts. A story steers it by what its user says:

- "I keep bees." is a fact: "User keeps bees." "Now I keep hens." corrects a known fact with the same verb.
- "What do you see?" is answered with the whole prompt.
- 'Call forget {"fact_id": …}' calls that tool; its result is the answer.
- "Think aloud." is answered with a thought in the text, whose opening tag a template has swallowed.
- "Take your time." streams slowly, "Count." for a minute.
- "Break down." fails, "Break down once." the first time. "Refuse my key." fails as a key that is wrong.
- "Write Markdown." is answered with it, and with what must not become alive.
- "(inaudible)" fails the first extraction that reads it, "(mumbled)" makes it slow.
"""

import json
import re
from typing import Any

from tests.stub_model import ChatRequest, Reply

SUMMARY = "They talked about the ferry to Lofoten."
SLOW_SECONDS = 2.0
MARKDOWN = """## A curry

It is **mild**, see [the recipe](https://example.com/curry) or [another](javascript:alert(1)).

| For | Grams |
|---|---|
| rice | 300 |

```python
print("<b>hot</b>")
```

7. Serve. [Write](mailto:cook@example.com) to the cook.

<img src=x onerror="alert(1)"> <a href="facts-delete" data-thread="x">all</a> ![map](https://example.com/map.png)
<script>alert(1)</script>"""

_NEW_MESSAGE = re.compile(r"^\[(\d+)\] user[^:]*: (.*)$", re.M)
_KNOWN_FACT = re.compile(r"^(\d+)\. User (\w+)s ", re.M)
_TELLS = re.compile(r"\b(Now )?I (\w+) ([^.!?]+)\.")
_CALLS = re.compile(r"Call (\w+) (\{.*\})")
_EMPTY = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "array": [], "object": {}}

_failed: set[str] = set()


def answer(request: ChatRequest) -> Reply | str:
    """Answer as the model that is asked for by name."""
    if request.model == "chat":
        return _chat(request)
    return _extract(request) if request.schema else SUMMARY


def _chat(request: ChatRequest) -> Reply | str:
    said = request.last
    if request.messages[-1]["role"] == "tool":
        return f"The tool says: {said}"
    said = said.rpartition("\n\n")[2]  # before it stands what the user said in a turn that failed
    if call := _CALLS.search(said):
        return Reply(tool_calls=((call[1], json.loads(call[2])),))
    if "Break down once" in said and said in _failed:
        return "Noted."
    if "Break down" in said:
        _failed.add(said)
        # What a client does not try again by itself.
        return Reply(text="the model is down", status=403 if "once" in said else 500)
    if "Refuse my key" in said:
        return Reply(text="Incorrect API key provided: invalid_api_key", status=401)
    if "Write Markdown" in said:
        return MARKDOWN
    if "What do you see" in said:
        return request.text
    if "Think aloud" in said:
        return "They want me to think.\n</think>\n\nDone."
    if "Count." in said:
        return Reply(text=" ".join(map(str, range(120))), delay=0.5)
    return Reply(text="One word after the other.", delay=0.5) if "Take your time" in said else "Noted."


def _extract(request: ChatRequest) -> Reply:
    asked = request.last
    new = _NEW_MESSAGE.findall(asked)
    if any("(inaudible)" in text for _, text in new) and asked not in _failed:
        _failed.add(asked)
        return Reply(text="no", status=403)
    known = {verb: int(number) for number, verb in _KNOWN_FACT.findall(asked)}
    facts = [_fact(request, int(number), told, known) for number, text in new for told in _TELLS.finditer(text)]
    delay = SLOW_SECONDS if any("(mumbled)" in text for _, text in new) else 0.0
    return Reply(text=json.dumps(_filled(request.schema["schema"], {"facts": facts})), delay=delay)


def _fact(request: ChatRequest, message: int, told: re.Match[str], known: dict[str, int]) -> dict[str, Any]:
    now, verb, rest = told.groups()
    corrected = known.get(verb, 0) if now else 0
    fact = {
        "message": message,
        "action": "corrects" if corrected else "new",
        "known": corrected,
        "content": f"User {verb}s {rest}.",
        "category": "knowledge",
        "confidence": 0.9,
        "topic": "health" if "asthma" in rest else "none",
    }
    return _filled(request.schema["schema"]["properties"]["facts"]["items"], fact)


def _filled(schema: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a JSON schema: these values where it knows their names, else the emptiest of its type."""
    return {
        name: values.get(name, each["enum"][0] if "enum" in each else _EMPTY.get(each.get("type", "")))
        for name, each in schema["properties"].items()
    }

"""The shape of the memory API: what its OpenAPI document promises to programs, without words for people.

`python -m tests.api_shape` writes the shape of today into `tests/data/memory_api.json`, where a test holds it.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.memory_app import MemoryApp

Json = dict[str, Any]

SNAPSHOT = Path(__file__).parent / "data" / "memory_api.json"
WORDS = {"title", "description"}


def shape_of(document: Json) -> Json:
    """Return parameters, body and answers of each operation, and the schemas that they name."""
    schemas: Json = dict(document["components"]["schemas"])
    operations: Json = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody")
            operations[f"{method.upper()} {path}"] = {
                "name": operation["operationId"],
                "parameters": {each["name"]: _parameter(each) for each in operation.get("parameters", ())},
                "body": body and {"required": body["required"], **_content(body, schemas)},
                "answers": {status: _content(each, schemas) for status, each in operation["responses"].items()},
            }
    return {"operations": operations, "schemas": {name: _plain(schema) for name, schema in schemas.items()}}


def _content(part: Json, schemas: Json) -> Json:
    """Return the names of schemas by content type; one that stands in place is as good as one among the others."""
    found: Json = {}
    for kind, content in part.get("content", {}).items():
        schema = content["schema"]
        found[kind] = _plain(schema) if "$ref" in schema else schema.get("title") or schema["type"]
        if "title" in schema:
            schemas[schema["title"]] = schema
    return found


def _parameter(parameter: Json) -> Json:
    """Return a parameter; that it may be `null` is left out, as nobody can say that in a path or a query."""
    schema = _plain(parameter["schema"])
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        schema = {**{key: value for key, value in schema.items() if key != "anyOf"}, **choices[0]}
    return {"in": parameter["in"], "required": parameter["required"], **schema}


def _plain(schema: Any) -> Any:
    """Return a schema without words, and by one of the ways in which the same can be said."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    # A field may be called `title`, too: then a schema stands there, and no word.
    kept = {key: _plain(value) for key, value in schema.items() if key not in WORDS or isinstance(value, dict)}
    if kept.get("default", "") is None:
        del kept["default"]
    if kept.get("additionalProperties") in (True, "JsonValue"):
        del kept["additionalProperties"]
    return kept


async def _write() -> None:
    served = (await MemoryApp().user("ada").get("/openapi.json")).json()
    SNAPSHOT.write_text(json.dumps(shape_of(served), sort_keys=True, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(_write())

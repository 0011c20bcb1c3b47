"""The OpenAPI 3.1 document of the memory API, made from the endpoints themselves."""

import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from graphs.server.api.endpoint import PREFIX, AnyEndpoint, Query
from graphs.server.api.guard import Problem

Json = dict[str, Any]

_REFS = "#/components/schemas/{model}"
_PARAMETER = re.compile(r"\{(\w+)\}")
_ALWAYS = {401: "No identity.", 403: "Another web site sent it.", 422: "A field is wrong.", 429: "Too many requests."}
_WITH_BODY = {413: "The body is too long.", 415: "The body is no JSON."}
_SOMETIMES = {404: "It is not there, or not yours.", 409: "It conflicts with what is there."}


def document(endpoints: Iterable[AnyEndpoint], version: str) -> Json:
    """Return the document."""
    listed = tuple(endpoints)
    paths: dict[str, Json] = {}
    for endpoint in listed:
        paths.setdefault(PREFIX + endpoint.path, {})[endpoint.method.lower()] = operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Palimpsest memory API",
            "version": version,
            "description": "What is remembered about you, and control over it. You are who the server says you are.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(listed),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
        "security": [{"bearer": []}, {}],
    }


def operation(endpoint: AnyEndpoint) -> Json:
    """Return what the document says of one endpoint."""
    query = Query if endpoint.has_body else endpoint.takes
    found: Json = {
        "operationId": endpoint.handler.__name__,
        "tags": ["memory"],
        "summary": endpoint.summary,
        "description": endpoint.handler.__doc__ or "",
        "parameters": [*_path_parameters(endpoint.path), *_query_parameters(query)],
        "responses": _responses(endpoint),
    }
    if endpoint.has_body:
        found["requestBody"] = {"required": True, "content": _json(endpoint.takes)}
    return found


def _responses(endpoint: AnyEndpoint) -> Json:
    refusals = {**_ALWAYS, **{status: _SOMETIMES[status] for status in endpoint.refusals}}
    if endpoint.has_body:
        refusals |= _WITH_BODY
    done: Json = {"description": "Done."}
    if endpoint.answers is not None:
        done["content"] = _json(endpoint.answers)
    refused = {str(status): {"description": text, "content": _json(Problem)} for status, text in refusals.items()}
    return {str(endpoint.status): done, **dict(sorted(refused.items()))}


def _json(model: type[BaseModel]) -> Json:
    return {"application/json": {"schema": {"$ref": _REFS.format(model=model.__name__)}}}


def _path_parameters(path: str) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PARAMETER.findall(path)
    ]


def _query_parameters(form: type[BaseModel]) -> list[Json]:
    schema = form.model_json_schema()
    return [_query_parameter(name, each) for name, each in schema.get("properties", {}).items()]


def _query_parameter(name: str, schema: Json) -> Json:
    """Return one query parameter; `null` cannot be said in a query, so it is no choice."""
    choices = [each for each in schema.get("anyOf", []) if each.get("type") != "null"]
    inner = {**(choices[0] if len(choices) == 1 else schema)}
    said = {key: schema[key] for key in ("description",) if key in schema}
    plain = {key: value for key, value in inner.items() if key not in ("title", "description")}
    if plain.get("default", "") is None:
        del plain["default"]
    return {"name": name, "in": "query", "required": False, **said, "schema": plain}


def _schemas(endpoints: Iterable[AnyEndpoint]) -> Json:
    forms = {endpoint.takes for endpoint in endpoints if endpoint.has_body}
    answers = {endpoint.answers for endpoint in endpoints if endpoint.answers is not None}
    wanted = [*((form, "validation") for form in forms), *((answer, "serialization") for answer in (*answers, Problem))]
    _, definitions = models_json_schema(
        sorted(wanted, key=lambda pair: pair[0].__name__),  # type: ignore[arg-type]
        ref_template=_REFS,
    )
    found: Json = definitions["$defs"]
    return found

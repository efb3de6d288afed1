"""The OpenAPI document as rows for pages: areas, operations, and the fields of bodies."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from workloads.api.api_description import build_openapi_document

METHODS = ("get", "post", "put", "patch", "delete")
AREAS: Mapping[str, str] = {
    "token": "Getting a token",
    "workloads": "Workloads",
    "templates": "Templates",
    "assets": "Assets",
    "policies": "Policies",
    "organisation": "Organisation",
    "access": "Access",
}
"""The headings by the tags of the document, in their order."""
MAX_DEPTH = 8
"""Levels of a body that are shown."""
MAX_SAMPLE_FIELDS = 4
"""Fields of a sample's object that needs none."""
_JSON = "application/json"

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the address, the query or the headers; or a header of an answer."""

    name: str
    place: str
    type_words: str
    description: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class BodyField:
    """A field of a body; its path leads from the top, with [] for the items of a list."""

    path: str
    type_words: str
    is_required: bool
    description: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer by its status, with the fields of its body."""

    status: str
    description: str
    fields: Sequence[BodyField]
    types: str
    """Its content types."""
    headers: Sequence[Parameter] = ()

    @property
    def is_refusal(self) -> bool:
        return self.status >= "400"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one address."""

    name: str
    method: str
    path: str
    area: str
    description: str
    definition: Mapping[str, Any]
    """Its part of the document."""

    @property
    def summary(self) -> str:
        """The first sentence of its description."""
        end = self.description.find(". ")
        return self.description[: end + 1] if end > 0 else self.description

    def matches(self, words: Sequence[str]) -> bool:
        """Return whether each word is in its method, address, name or description."""
        text = f"{self.method} {self.path} {self.name} {self.description}".casefold()
        return all(word in text for word in words)


@cache
def list_operations() -> Sequence[Operation]:
    """Return all operations in the order of areas, addresses and methods."""
    operations = [
        Operation(
            name=definition["operationId"],
            method=method.upper(),
            path=path,
            area=next((tag for tag in definition.get("tags", ()) if tag in AREAS), ""),
            description=_clean(definition.get("description", "")),
            definition=definition,
        )
        for path, methods in build_openapi_document()["paths"].items()
        for method, definition in methods.items()
        if method in METHODS
    ]
    areas = [*AREAS, ""]
    order = [method.upper() for method in METHODS]
    operations.sort(key=lambda each: (areas.index(each.area), each.path, order.index(each.method)))
    return operations


def find_operation(name: str) -> Operation | None:
    """Return the operation with this id."""
    return next((each for each in list_operations() if each.name == name), None)


def list_parameters(operation: Operation) -> Sequence[Parameter]:
    return [
        Parameter(
            each["name"],
            each["in"],
            describe_type(each["schema"]),
            _clean(each.get("description", "")),
            each.get("required", False),
        )
        for each in operation.definition.get("parameters", ())
    ]


def list_request_fields(operation: Operation) -> Sequence[BodyField]:
    """Return the fields of the body that a request has; none where it has no body."""
    schema = _find_request_schema(operation)
    return [] if schema is None else list(_list_fields(schema))


def list_answers(operation: Operation) -> Sequence[Answer]:
    return [
        Answer(
            status=status,
            description=each.get("description", ""),
            # All refusals have the same body, which the page describes once.
            fields=list(_list_fields(each.get("content", {}).get(_JSON, {}).get("schema", {})))
            if status < "400"
            else (),
            types=", ".join(each.get("content", {})),
            headers=[
                Parameter(
                    name, "header", describe_type(header["schema"]), header.get("description", "")
                )
                for name, header in each.get("headers", {}).items()
            ],
        )
        for status, each in sorted(operation.definition["responses"].items())
    ]


def build_command(operation: Operation) -> str:
    """Return a request as a command line that can be filled in; one for each of its samples."""
    query = "&".join(
        f"{each['name']}={_build_sample(each['schema'])}"
        for each in operation.definition.get("parameters", ())
        if each["in"] == "query" and each.get("required")
    )
    address = f"{operation.path}?{query}" if query else operation.path
    lines = [f'curl -X {operation.method} "$MUSTER{address}"']
    if operation.definition.get("security"):
        lines.append('-H "Authorization: Bearer $TOKEN"')
    bodies = [
        ["-H 'Content-Type: application/json'", f"-d '{_serialize_sample(sample)}'"]
        for sample in _list_samples(operation)
    ]
    return "\n\n".join(" \\\n  ".join([*lines, *body]) for body in bodies or [[]])


def _list_samples(operation: Operation) -> Sequence[Any]:
    """Return bodies to begin with; none where a request has no body."""
    content = operation.definition.get("requestBody", {}).get("content", {}).get(_JSON, {})
    if "examples" in content:
        return [each["value"] for each in content["examples"].values()]
    return [_build_sample(content["schema"])] if "schema" in content else []


def _serialize_sample(sample: Any) -> str:
    return json.dumps(sample, indent=2, ensure_ascii=False)


def describe_type(schema: Schema) -> str:
    """Return the words for a schema's type, with its choices and bounds."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(describe_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join("null" if each is None else str(each) for each in schema["enum"])
    kinds = schema.get("type", "anything")
    names = [kinds] if isinstance(kinds, str) else kinds
    words = " or ".join(_describe_kind(name, schema) for name in names)
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f"{words}, {least:,} to {most:,}"
    if least is not None:
        return f"{words}, at least {least:,}"
    if "maxLength" in schema:
        return f"{words}, at most {schema['maxLength']:,} characters"
    if "maxItems" in schema:
        return f"{words}, at most {schema['maxItems']:,}"
    return words


def _clean(description: str) -> str:
    """Return a description without the marks of its code words."""
    return description.replace("`", "")


def _describe_kind(kind: str, schema: Schema) -> str:
    if kind == "array" and "items" in schema:
        return f"list of {describe_type(schema['items'])}"
    return str(schema.get("format", kind)) if kind == "string" else kind


def _find_request_schema(operation: Operation) -> Schema | None:
    content = operation.definition.get("requestBody", {}).get("content", {})
    schema: Schema | None = content.get(_JSON, {}).get("schema")
    return schema


def _list_fields(schema: Schema, path: str = "", depth: int = MAX_DEPTH) -> Iterator[BodyField]:
    """Yield the fields of an object, each before those inside it."""
    if not path and "anyOf" in schema:
        # A body of one of several shapes: the fields of each, once.
        fields = (each for shape in schema["anyOf"] for each in _list_fields(shape, "", depth))
        yield from {each.path: each for each in fields}.values()
        return
    if not path and "items" in schema:
        yield from _list_fields(schema["items"], "[]", depth)
        return
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        inner_path = f"{path}.{name}" if path else name
        yield BodyField(
            inner_path, describe_type(inner), name in required, _clean(inner.get("description", ""))
        )
        if depth > 1:
            is_list = "items" in inner
            yield from _list_fields(
                inner["items"] if is_list else inner,
                f"{inner_path}[]" if is_list else inner_path,
                depth - 1,
            )


def _build_sample(schema: Schema, depth: int = 4) -> Any:
    """Return a value of the schema: what is required, or the first few fields."""
    if "anyOf" in schema:
        return _build_sample(schema["anyOf"][0], depth)
    if "enum" in schema:
        return next((each for each in schema["enum"] if each is not None), None)
    kinds = schema.get("type", "string")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "object":
            properties = schema.get("properties", {})
            names = [name for name in properties if name in schema.get("required", ())]
            chosen = names or list(properties)[:MAX_SAMPLE_FIELDS]
            inside = chosen if depth > 1 else []
            return {name: _build_sample(properties[name], depth - 1) for name in inside}
        case "array":
            return [_build_sample(schema.get("items", {}), depth - 1)] if depth > 1 else []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case _:
            return "..."

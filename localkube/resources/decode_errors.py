"""Errors of decoding: what a real server says, with a 400, of a value of a wrong type.

The words are those of Go's JSON decoder for a built-in kind. Custom kinds are checked here for
their metadata alone; their own types are the schema's to refuse, with a 422.
"""

import base64
import binascii
from typing import Any

from localkube import clock, quantities, schemas
from localkube.metadata import Object
from localkube.resources.resource import Resource
from localkube.schemas.compiled_schema import SchemaNode

_JSON_TYPE_NAMES = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
}
_GO_TYPES = {
    "Spec": "PodSpec",
    "Containers": "Container",
    "InitContainers": "Container",
    "Volumes": "Volume",
    "Env": "EnvVar",
    "EnvFrom": "EnvFromSource",
    "ValueFrom": "EnvVarSource",
    "Ports": "ContainerPort",
    "Resources": "ResourceRequirements",
    "VolumeMounts": "VolumeMount",
    "Tolerations": "Toleration",
    "ImagePullSecrets": "LocalObjectReference",
}
"""Go types inside a pod's spec whose names are not that of their field.

The upstream schema does not name them.
"""
_INTEGER_BOUNDS = {"int32": 2**31, "int64": 2**63}


class _TypeMismatch(Exception):
    """The first value that does not fit its type; the message is the decoder's."""


def find_decode_error(resource: Resource, obj: Object) -> str | None:
    """Return the message of the 400 for an object that does not decode, or None.

    It is about wrong types, bad quantities, times or base64. Raises nothing, whatever the object
    holds.
    """
    if not resource.schema:
        return None
    node = schemas.load_schema(resource.schema).node
    try:
        if resource.custom:
            _check_value(node.properties["metadata"], obj.get("metadata"), "metadata", node)
        else:
            _check_fields(node, obj, "", node)
    except _TypeMismatch as misfit:
        return (
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {misfit}"
        )
    return None


def _check_fields(node: SchemaNode, value: dict[str, Any], path: str, owner: SchemaNode) -> None:
    props, values = node.properties, node.values
    for key, item in value.items():
        part = props.get(key)
        if part is None:
            if values is None:
                continue
            # The elements of a map have no path of their own in Go's texts.
            _check_value(values, item, path, owner)
        elif item is not None:
            if type(item) is str and part.type == "string" and not part.format:
                continue
            _check_value(part, item, f"{path}.{key}" if path else key, node)


def _check_value(node: SchemaNode, value: Any, path: str, owner: SchemaNode) -> None:
    if value is None:
        return
    if node.is_quantity:
        _check_quantity(value)
    elif node.accepts is not None and type(value) not in node.accepts:
        raise _TypeMismatch(_describe_mismatch(node, value, path, owner))
    elif type(value) is dict:
        _check_fields(node, value, path, owner)
    elif type(value) is list:
        if node.items is not None:
            for item in value:
                _check_value(node.items, item, path, owner)
    elif type(value) is int:
        if (
            not -_INTEGER_BOUNDS.get(node.format, 2**63)
            <= value
            < _INTEGER_BOUNDS.get(node.format, 2**63)
        ):
            raise _TypeMismatch(_describe_mismatch(node, value, path, owner))
    elif node.format == "date-time":
        _check_time(value)
    elif node.format == "byte":
        _check_base64(value)


def _check_quantity(value: Any) -> None:
    try:
        quantities.parse_quantity(value)
    except ValueError as error:
        raise _TypeMismatch(str(error)) from None


def _check_time(value: str) -> None:
    try:
        clock.parse_time(value)
    except ValueError:
        raise _TypeMismatch(
            f'parsing time "{value[:80]}" as "2006-01-02T15:04:05Z07:00": cannot parse '
            f'"{value[:80]}" as "2006"'
        ) from None


def _check_base64(value: str) -> None:
    text = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        position = next(
            (index for index, character in enumerate(text) if character not in alphabet), len(text)
        )
        raise _TypeMismatch(f"illegal base64 data at input byte {position}") from None


def _describe_mismatch(node: SchemaNode, value: Any, path: str, owner: SchemaNode) -> str:
    word = _JSON_TYPE_NAMES.get(type(value), "object")
    if node.type == "integer" and type(value) in (int, float):
        word = f"number {value}"
    if node.type == "integer,string":
        return f"json: cannot unmarshal {word} into Go value of type int32"
    return (
        f"json: cannot unmarshal {word} into Go struct field "
        f"{_GO_TYPES.get(owner.go_name, owner.go_name)}.{path} of type {_name_go_type(node)}"
    )


def _name_go_type(node: SchemaNode) -> str:
    if node.type == "integer":
        return node.format or "int64"
    if node.type == "boolean":
        return "bool"
    if node.type == "number":
        return "float64"
    if node.type == "array":
        return f"[]{_name_go_type(node.items)}" if node.items else "[]interface {}"
    if node.type == "object":
        if node.values:
            return f"map[string]{_name_go_type(node.values)}"
        return f"v1.{_GO_TYPES.get(node.go_name, node.go_name)}"
    return "string" if node.format != "date-time" else "time.Time"

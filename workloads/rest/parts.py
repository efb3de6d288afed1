"""The parts of a pod that are objects of their own in a body: variables, tolerations and so on.

Each struct is read into its part of a Spec, and written from it. The names of a struct's attributes
are those of the part, so that problems of the part find their place in the body.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any

from msgspec import field

from console.rest_bodies import RestBody, describe_field, mark_unsupported
from workloads.specs import (
    ExtendedResource,
    Pair,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Topology,
    Variable,
    VariableSource,
)

Refuse = Callable[[str, str], None]
"""Adds a problem: the place below the part's own ("" for itself), and what is wrong."""


class LocatedBody(RestBody, forbid_unknown_fields=True):
    """The base of bodies whose attributes are called as those of the part that they make."""

    def locate(self, attribute: str) -> str:
        """Return the name in the body of an attribute of the part of a Spec."""
        names = dict(zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True))
        return names.get(attribute, "")


class PartBody(LocatedBody, forbid_unknown_fields=True, kw_only=True):
    """The base of parts that stand in a list of a body."""

    exclude: bool = False


class NameBody(PartBody, kw_only=True):
    """A name in an object of its own."""

    name: str = ""
    user_credential: Annotated[Any, mark_unsupported(False)] = None


class PairBody(PartBody, kw_only=True):
    """A label or an annotation."""

    key: str = field(name="name")
    value: str = ""

    def build_part(self, refuse: Refuse) -> Pair:
        return Pair(self.key, self.value)

    @classmethod
    def write(cls, pair: Pair, number: int) -> dict[str, Any]:
        return {"name": pair.key, "value": pair.value}


class ExtendedBody(PartBody, kw_only=True):
    """A quantity of another resource."""

    resource: str = ""
    quantity: str = ""

    def build_part(self, refuse: Refuse) -> ExtendedResource:
        return ExtendedResource(self.resource, self.quantity)

    @classmethod
    def write(cls, extended: ExtendedResource, number: int) -> dict[str, Any]:
        return {"resource": extended.resource, "quantity": extended.quantity}


class TolerationBody(PartBody, kw_only=True):
    """A taint that the pods tolerate."""

    given_name: Annotated[str, describe_field("Taken, and not kept.")] = field(
        name="name", default=""
    )
    operator: TolerationOperator | None = None
    key: str = ""
    value: str = ""
    effect: TolerationEffect | None = None
    seconds: int | None = None

    def build_part(self, refuse: Refuse) -> Toleration:
        return Toleration(
            self.key,
            self.operator or TolerationOperator.EQUAL,
            self.value,
            self.effect or TolerationEffect.ANY,
            self.seconds,
        )

    @classmethod
    def write(cls, toleration: Toleration, number: int) -> dict[str, Any]:
        return {
            "name": f"toleration-{number}",
            "operator": toleration.operator.value,
            "effect": toleration.effect.value,
        } | drop_empty(key=toleration.key, value=toleration.value, seconds=toleration.seconds)


class KeyBody(RestBody, forbid_unknown_fields=True):
    """A key of a Secret or ConfigMap."""

    name: str = ""
    key: str = ""


class PodFieldBody(RestBody, forbid_unknown_fields=True):
    """A field of the pod."""

    path: str = ""


class VariableBody(PartBody, kw_only=True):
    """An environment variable, with a value or one other source of it."""

    name: str
    value: str | None = None
    secret: KeyBody | None = None
    config_map: KeyBody | None = None
    pod_field: PodFieldBody | None = field(name="podFieldRef", default=None)
    description: Annotated[str, describe_field("Taken, and not kept.")] = ""
    user_credential: Annotated[Any, mark_unsupported()] = None

    def build_part(self, refuse: Refuse) -> Variable:
        sources = self._list_sources()
        if len(sources) > 1:
            text = f"cannot be given together with {sources[0]}: a variable has one source"
            refuse(sources[1], text)
        elif self.pod_field is not None:
            return Variable(self.name, source=VariableSource.POD_FIELD, key=self.pod_field.path)
        elif reference := self.secret or self.config_map:
            source = VariableSource.SECRET if self.secret else VariableSource.CONFIG_MAP
            return Variable(self.name, source=source, object_name=reference.name, key=reference.key)
        return Variable(self.name, self.value or "")

    def _list_sources(self) -> list[str]:
        sources = {
            "value": self.value,
            "secret": self.secret,
            "configMap": self.config_map,
            "podFieldRef": self.pod_field,
        }
        return [name for name, value in sources.items() if value is not None]

    def locate(self, attribute: str) -> str:
        [source, *_] = [*self._list_sources(), "value"]
        places = {
            "object_name": f"{source}.name",
            "key": f"{source}.{'path' if source == 'podFieldRef' else 'key'}",
        }
        return places.get(attribute) or super().locate(attribute)

    @classmethod
    def write(cls, variable: Variable, number: int) -> dict[str, Any]:
        match variable.source:
            case VariableSource.CUSTOM:
                source: dict[str, Any] = {"value": variable.value}
            case VariableSource.POD_FIELD:
                source = {"podFieldRef": {"path": variable.key}}
            case _:
                reference = {"name": variable.object_name, "key": variable.key}
                source = {variable.source.value: reference}
        return {"name": variable.name} | source


class AffinityType(StrEnum):
    REQUIRED = "Required"
    PREFERRED = "Preferred"


class TopologyBody(LocatedBody, forbid_unknown_fields=True):
    """How the pods are kept together."""

    required: AffinityType | None = field(name="type", default=None)
    key: str = ""

    def build_part(self) -> Topology | None:
        is_required = self.required is AffinityType.REQUIRED
        return Topology(self.key, is_required) if self.key or self.required else None

    @classmethod
    def write(cls, topology: Topology) -> dict[str, Any]:
        kind = AffinityType.REQUIRED if topology.required else AffinityType.PREFERRED
        return {"type": kind.value, "key": topology.key}


PART_BODIES: Mapping[type, type[Any]] = {
    Variable: VariableBody,
    ExtendedResource: ExtendedBody,
    Toleration: TolerationBody,
    Pair: PairBody,
}
"""The struct of each part of a Spec that stands in a list."""


def drop_empty(**values: Any) -> dict[str, Any]:
    """Return the values that are not empty: the API takes a missing field for its default."""
    return {name: value for name, value in values.items() if value}

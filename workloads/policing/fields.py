"""A field of the final Spec that policies can rule: how it is read, set and named. Pure."""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any

from workloads.policing.kinds import REQUIRED, ValueKind
from workloads.specs import Architecture, Spec

Getter = Callable[[Any], Any]
Setter = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class PolicyField:
    """A field of a Setup or, where `of_pods` is not set, of a whole Spec.

    A field of a Setup is judged for the workers and the master alike. `path` is where problems
    point, `form` the fields of the wizard that it stands beside, `raw` reads what was given and
    `value` what results from it; None of either is no value. `implied` fields always have a value:
    whether one was given shows in `given_paths`.
    """

    name: str
    label: str
    kind: ValueKind
    path: str
    form: tuple[str, ...]
    section: str
    raw: Getter
    value: Getter
    set: Setter | None = None
    of_pods: bool = True
    architecture: Architecture | None = None
    implied: bool = False
    given_paths: tuple[str, ...] = ()
    is_open: bool = False
    """Whether a missing value leaves the field unlimited, so that a limit makes it required."""
    attributes: frozenset[str] = frozenset()
    about: str = ""

    def applies_to(self, spec: Spec) -> bool:
        """Return whether a workload of this spec has the field."""
        return self.architecture is None or self.architecture is spec.architecture

    def is_omitted(self, part: Any, prefix: str, given_fields: Container[str] | None) -> bool:
        """Return whether a submission gives no value for the field.

        `given_fields` are the paths that it gave; None where everything with a value was given.
        """
        if self.implied:
            return given_fields is not None and not any(
                f"{prefix}{path}" in given_fields for path in self.given_paths
            )
        return self.raw(part) is None


def build_lens(path: str) -> tuple[Getter, Setter]:
    """Return a getter and a setter for a path inside a part of a Spec.

    The setter returns a changed copy.
    """
    first, _, rest = path.partition(".")
    if not rest:
        return lambda whole: getattr(whole, first), lambda whole, value: replace(
            whole, **{first: value}
        )
    get, change = build_lens(rest)
    return lambda whole: get(getattr(whole, first)), lambda whole, value: replace(
        whole, **{first: change(getattr(whole, first), value)}
    )


def _none_if_empty(get: Getter) -> Getter:
    """Return a getter that gives None for an empty value."""

    def get_non_empty(part: Any) -> Any:
        value = get(part)
        return None if value is None or value in ("", ()) else value

    return get_non_empty


def build_field(
    name: str,
    label: str,
    kind: ValueKind,
    path: str,
    form: str | tuple[str, ...],
    section: str,
    **more: Any,
) -> PolicyField:
    """Build a field at a path; keywords replace the defaults of its attributes."""
    get, change = build_lens(path)
    raw = _none_if_empty(get)
    attributes: dict[str, Any] = {
        "raw": raw,
        "value": raw,
        "set": change,
        "attributes": kind.attributes,
        "given_paths": (path,),
    } | more
    if attributes.get("implied"):
        attributes["attributes"] -= {REQUIRED}
    return PolicyField(
        name, label, kind, path, (form,) if isinstance(form, str) else form, section, **attributes
    )

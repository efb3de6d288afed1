"""A field of the final Spec that a policy can speak of: how it is read, set and called. Pure; the
catalogue names them all.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any

from workloads.policing.kinds import REQUIRED, ValueKind
from workloads.specs import Architecture, Spec

Getter = Callable[[Any], Any]
Setter = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class PolicyField:
    """A field of a Setup, judged for the workers and the master alike, or of a whole Spec where
    `of_pods` is not set.

    `path` is where problems have it, `form` the fields of the wizard that it stands beside, `raw`
    what was said and `value` what comes of it. None of either is nothing. `implied` fields always
    have a value: whether it was said is known from elsewhere, by `said_by`.
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
    of: Architecture | None = None
    implied: bool = False
    said_by: tuple[str, ...] = ()
    is_open: bool = False
    """Saying nothing leaves it free, so that a limit on what it may be asks for it to be said."""
    has: frozenset[str] = frozenset()
    about: str = ""

    def applies_to(self, spec: Spec) -> bool:
        """Whether a workload has this field."""
        return self.of is None or self.of is spec.architecture

    def is_omitted(self, part: Any, prefix: str, given_fields: Container[str] | None) -> bool:
        """Whether a submission says nothing of it. `said` are the paths that it gave; None is where
        all that has a value was said.
        """
        if self.implied:
            return given_fields is not None and not any(
                f"{prefix}{path}" in given_fields for path in self.said_by
            )
        return self.raw(part) is None

    @property
    def parts(self) -> str:
        """For which pods it is judged, in words."""
        return "Workers and master" if self.of_pods else "Workload"


def build_lens(path: str) -> tuple[Getter, Setter]:
    """How what lies at a path is read out of a part of a Spec, and how one like it is made with
    another value there.
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
    """None for what is empty."""

    def said(whole: Any) -> Any:
        value = get(whole)
        return None if value is None or value in ("", ()) else value

    return said


def build_field(
    name: str,
    label: str,
    kind: ValueKind,
    path: str,
    form: str | tuple[str, ...],
    section: str,
    **more: Any,
) -> PolicyField:
    """A field that lies at its path, save for what is said otherwise."""
    get, change = build_lens(path)
    raw = _none_if_empty(get)
    given: dict[str, Any] = {
        "raw": raw,
        "value": raw,
        "set": change,
        "has": kind.has,
        "said_by": (path,),
    } | more
    if given.get("implied"):
        given["has"] -= {REQUIRED}
    return PolicyField(
        name, label, kind, path, (form,) if isinstance(form, str) else form, section, **given
    )

"""A field of the final Spec that a policy can speak of: how it is read, set and called. Pure; the
catalogue names them all.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any

from workloads.policing.kinds import REQUIRED, Kind
from workloads.specs import Architecture, Spec

Get = Callable[[Any], Any]
Set = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a Setup, judged for the workers and the master alike, or of a whole Spec where
    `of_pods` is not set.

    `path` is where problems have it, `form` the fields of the wizard that it stands beside, `raw`
    what was said and `value` what comes of it. None of either is nothing. `implied` fields always
    have a value: whether it was said is known from elsewhere, by `said_by`.
    """

    name: str
    label: str
    kind: Kind
    path: str
    form: tuple[str, ...]
    section: str
    raw: Get
    value: Get
    set: Set | None = None
    of_pods: bool = True
    of: Architecture | None = None
    implied: bool = False
    said_by: tuple[str, ...] = ()
    is_open: bool = False
    """Saying nothing leaves it free, so that a limit on what it may be asks for it to be said."""
    has: frozenset[str] = frozenset()
    about: str = ""

    def applies(self, spec: Spec) -> bool:
        """Whether a workload has this field."""
        return self.of is None or self.of is spec.architecture

    def is_silent(self, part: Any, prefix: str, said: Container[str] | None) -> bool:
        """Whether a submission says nothing of it. `said` are the paths that it gave; None is where
        all that has a value was said.
        """
        if self.implied:
            return said is not None and not any(f"{prefix}{path}" in said for path in self.said_by)
        return self.raw(part) is None

    @property
    def parts(self) -> str:
        """For which pods it is judged, in words."""
        return "Workers and master" if self.of_pods else "Workload"


def lens(path: str) -> tuple[Get, Set]:
    """How what lies at a path is read out of a part of a Spec, and how one like it is made with
    another value there.
    """
    first, _, rest = path.partition(".")
    if not rest:
        return lambda whole: getattr(whole, first), lambda whole, value: replace(
            whole, **{first: value}
        )
    get, change = lens(rest)
    return lambda whole: get(getattr(whole, first)), lambda whole, value: replace(
        whole, **{first: change(getattr(whole, first), value)}
    )


def _said(get: Get) -> Get:
    """None for what is empty."""

    def said(whole: Any) -> Any:
        value = get(whole)
        return None if value is None or value in ("", ()) else value

    return said


def field(
    name: str,
    label: str,
    kind: Kind,
    path: str,
    form: str | tuple[str, ...],
    section: str,
    **more: Any,
) -> Field:
    """A field that lies at its path, save for what is said otherwise."""
    get, change = lens(path)
    raw = _said(get)
    given: dict[str, Any] = {
        "raw": raw,
        "value": raw,
        "set": change,
        "has": kind.has,
        "said_by": (path,),
    } | more
    if given.get("implied"):
        given["has"] -= {REQUIRED}
    return Field(
        name, label, kind, path, (form,) if isinstance(form, str) else form, section, **given
    )

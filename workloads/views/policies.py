"""What all policies that hold in a project want together, with the policy that says each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from console.http import page
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Permission, Verb
from workloads.policies import in_force
from workloads.policing import Source
from workloads.policing.limits import Limits
from workloads.policing.merging import AnyLimits, Merged
from workloads.specs import Architecture

MOST_PROJECTS = 500
SEES = Permission(Entity.POLICIES, Verb.VIEW)


@dataclass(frozen=True, slots=True)
class Line:
    """A field: what it may be, what stands where nothing is said, and whose words these are."""

    section: str
    label: str
    limits: str
    default: str
    is_locked: bool
    sources: Sequence[Source]
    conflicts: Sequence[str]


@require_GET
def effective(request: Request) -> HttpResponse:
    """For a project that the reader chooses among those whose policies they may see; and for the
    kind of workloads that they choose.
    """
    projects = list(Project.objects.where(request.user, SEES).order_by("name")[:MOST_PROJECTS])
    asked = request.GET.get("project", "")
    chosen = next((each for each in projects if not asked or str(each.pk) == asked), None)
    if chosen is None and asked:
        raise Http404("There is no such project among those that you may see.")
    architecture = next(
        (each for each in Architecture if each.value == request.GET.get("for")),
        Architecture.DISTRIBUTED,
    )
    context = {
        "projects": projects,
        "project": chosen,
        "architecture": architecture,
        "architectures": list(Architecture),
    }
    return page(
        request,
        "policies/effective.html",
        "policies/_effective.html",
        context | (told(chosen, architecture) if chosen else {}),
    )


def told(project: Project, architecture: Architecture = Architecture.DISTRIBUTED) -> dict[str, Any]:
    """What templates/policies/_effective.html shows of a project. One query."""
    found = in_force(project)
    merged = found.merged(architecture)
    return {
        "policy_lines": lines(merged),
        "policy_idle": [each.text for each in merged.idle if not each.set_aside],
        "policies_in_force": [policy.source for policy in merged.policies],
    }


def lines(merged: Merged) -> Sequence[Line]:
    """Every field that policies speak of, in the order of the form."""
    return [_line(limits, merged.conflicts.get(name, ())) for name, limits in merged.limits.items()]


def _line(limits: AnyLimits, conflicts: Sequence[str]) -> Line:
    field, given = limits.field, limits.given
    words = limits.range_words
    if isinstance(limits, Limits) and limits.required:
        words = ", ".join(filter(None, (words, "must be given")))
    is_locked = isinstance(limits, Limits) and limits.locked is not None
    sources = tuple(dict.fromkeys((*limits.sources, *(given.by if given else ()))))
    return Line(
        field.section,
        field.label,
        words,
        field.kind.words(given.value) if given else "",
        is_locked,
        sources,
        conflicts,
    )

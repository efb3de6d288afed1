"""What all policies of a project demand together, with the policy that says each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from console.http import render_page
from console.texts import parse_number
from projects.http import Request
from projects.models import Project
from projects.permissions import Entity, Permission, Verb
from workloads.policies import load_for_project
from workloads.policing import PolicySource
from workloads.policing.limits import FieldLimits
from workloads.policing.merging import AnyLimits, MergedPolicies
from workloads.specs import Architecture

MOST_PROJECTS = 500
"""Projects that are offered to choose from; the address shows any."""
VIEW_POLICIES = Permission(Entity.POLICIES, Verb.VIEW)


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """A field: its allowed values, its default, and the policies that say so."""

    section: str
    label: str
    limits: str
    default: str
    is_locked: bool
    sources: Sequence[PolicySource]
    conflicts: Sequence[str]


@require_GET
def effective_policies(request: Request) -> HttpResponse:
    """Show the effective policies of a project, for a kind of workloads.

    The reader chooses the project among those whose policies they may see.
    """
    permitted = Project.objects.where(request.user, VIEW_POLICIES)
    projects = list(permitted.order_by("name")[:MOST_PROJECTS])
    project = next(iter(projects), None)
    if project_key := request.GET.get("project", ""):
        project = permitted.filter(pk=parse_number(project_key) or 0).first()
        if project is None:
            raise Http404("There is no such project among those that you may see.")
        if project not in projects:
            projects.insert(0, project)
    architecture = next(
        (candidate for candidate in Architecture if candidate.value == request.GET.get("for")),
        Architecture.DISTRIBUTED,
    )
    context = {
        "projects": projects,
        "project": project,
        "architecture": architecture,
        "architectures": list(Architecture),
    }
    return render_page(
        request,
        "policies/effective.html",
        "policies/_effective.html",
        context | (build_effective_context(project, architecture) if project else {}),
    )


def build_effective_context(
    project: Project, architecture: Architecture = Architecture.DISTRIBUTED
) -> dict[str, Any]:
    """Build the context of templates/policies/_effective.html for a project. One query."""
    policies = load_for_project(project)
    merged = policies.merge(architecture)
    return {
        "policy_lines": build_lines(merged),
        "policy_idle": [each.text for each in merged.idle if not each.is_set_aside],
        "policies_in_force": [policy.source for policy in merged.policies],
    }


def build_lines(merged: MergedPolicies) -> Sequence[PolicyLine]:
    """Return every field that policies mention, in the order of the form."""
    return [
        _build_line(limits, merged.conflicts.get(name, ()))
        for name, limits in merged.limits.items()
    ]


def _build_line(limits: AnyLimits, conflicts: Sequence[str]) -> PolicyLine:
    field, fallback = limits.field, limits.fallback
    allowed = limits.range_words
    if isinstance(limits, FieldLimits) and limits.required:
        allowed = ", ".join(filter(None, (allowed, "must be given")))
    is_locked = isinstance(limits, FieldLimits) and limits.locked is not None
    sources = tuple(dict.fromkeys((*limits.sources, *(fallback.sources if fallback else ()))))
    return PolicyLine(
        field.section,
        field.label,
        allowed,
        field.kind.describe(fallback.value) if fallback else "",
        is_locked,
        sources,
        conflicts,
    )

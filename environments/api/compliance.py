"""Whether listed assets comply with a project's policies."""

from collections.abc import Callable
from typing import Any

from console.errors import Invalid
from console.texts import parse_number
from environments import seams
from environments.models import Asset
from projects.api import schemas
from projects.api.base import ListQuery
from projects.models import Project, User

WORKLOAD_TYPES = {"distributed": "Distributed", "training": "Standard"}
CHECKED_KINDS = ("environment", "compute")
"""The kinds of assets that policies have rules for."""
PARAMETERS = [
    schemas.query_parameter(
        "complyToProject",
        schemas.TEXT,
        "The id of a project: each entry says whether its policies allow it.",
    ),
    schemas.query_parameter(
        "complyToWorkloadType",
        schemas.enum_schema(*WORKLOAD_TYPES),
        "For which workloads; distributed where it is not said.",
    ),
]
SCHEMA = schemas.object_schema(
    ["status", "issues"],
    status=schemas.enum_schema("Compliant", "NonCompliant"),
    issues=schemas.array_schema(
        schemas.object_schema(
            ["field", "details", "rule"],
            field=schemas.TEXT,
            details=schemas.TEXT,
            rule=schemas.TEXT,
        )
    ),
)


def build_compliance_check(
    parameters: ListQuery, user: User
) -> Callable[[Asset], dict[str, Any]] | None:
    """Return a function from an asset to its compliance; None where it was not asked for.

    Raises Invalid.
    """
    text = parameters.text("complyToProject")
    if not text:
        return None
    project = Project.objects.visible_to(user).filter(pk=parse_number(text)).first()
    if project is None:
        raise Invalid(
            [("complyToProject", f"There is no project {text[:40]} among those that you may see.")]
        )
    judge = seams.POLICY_RULES.get().build_compliance_judge(
        project, WORKLOAD_TYPES[parameters.choice("complyToWorkloadType", tuple(WORKLOAD_TYPES))]
    )

    def check_asset(asset: Asset) -> dict[str, Any]:
        issues = [
            {"field": field, "details": details, "rule": rule}
            for field, details, rule in judge(asset)
        ]
        return {
            "compliance": {"status": "NonCompliant" if issues else "Compliant", "issues": issues}
        }

    return check_asset

"""Whether assets in a list could be used as they are in a project, by the policies that hold
there.
"""

from collections.abc import Callable
from typing import Any

from console.errors import Invalid
from environments import policy_fields
from environments.models import Asset
from projects.api import schemas
from projects.api.base import Asked
from projects.models import Project, User

TYPES = {"distributed": "Distributed", "training": "Standard"}
KINDS = ("environment", "compute")
"""Those that policies speak of."""
PARAMETERS = [
    schemas.parameter(
        "complyToProject",
        schemas.TEXT,
        "The id of a project: each entry says whether its policies allow it.",
    ),
    schemas.parameter(
        "complyToWorkloadType",
        schemas.words(*TYPES),
        "For which workloads; distributed where it is not said.",
    ),
]
SCHEMA = schemas.obj(
    ["status", "issues"],
    status=schemas.words("Compliant", "NonCompliant"),
    issues=schemas.array(
        schemas.obj(
            ["field", "details", "rule"],
            field=schemas.TEXT,
            details=schemas.TEXT,
            rule=schemas.TEXT,
        )
    ),
)


def complying(asked: Asked, user: User) -> Callable[[Asset], dict[str, Any]] | None:
    """What to add to each entry; None where it was not asked for. Raises Invalid."""
    text = asked.text("complyToProject")
    if not text:
        return None
    key = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
    project = Project.objects.visible_to(user).filter(pk=key).first()
    if project is None:
        raise Invalid(
            [("complyToProject", f"There is no project {text[:40]} among those that you may see.")]
        )
    judge = policy_fields.complying(
        project, TYPES[asked.choice("complyToWorkloadType", tuple(TYPES))]
    )

    def told(asset: Asset) -> dict[str, Any]:
        issues = [
            {"field": field, "details": details, "rule": rule}
            for field, details, rule in judge(asset)
        ]
        return {
            "compliance": {"status": "NonCompliant" if issues else "Compliant", "issues": issues}
        }

    return told

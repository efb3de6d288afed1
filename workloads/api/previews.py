"""REST view that shows what a submission would become, and submits nothing."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects import access
from projects.api import schemas
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads import workload_manifests
from workloads.api.submissions import ArchitectureView, read_submission
from workloads.api.workload_schemas import SUBMISSION
from workloads.fit import Verdict
from workloads.judgement import Judgement, judge_submission
from workloads.manifests import dump_yaml

VERDICTS = {
    Verdict.NEVER: "never",
    Verdict.WARNS: "waits",
    Verdict.UNKNOWN: "unknown",
    Verdict.FITS: "fits",
}
"""The words of this API for what a check finds."""
_VERDICT = schemas.enum_schema(*VERDICTS.values())
_CHECK = schemas.object_schema(["verdict", "message"], verdict=_VERDICT, message=schemas.TEXT)
PREVIEW = schemas.object_schema(
    ["name", "objects", "manifest", "fit"],
    name=schemas.TEXT,
    objects=schemas.describe_schema(
        schemas.array_schema({"type": "object", "additionalProperties": True}),
        "The Kubernetes objects that it would become, the job last.",
    ),
    manifest=schemas.describe_schema(schemas.TEXT, "The same as YAML."),
    fit=schemas.object_schema(
        ["verdict", "message", "quota", "nodes"],
        verdict=_VERDICT,
        message=schemas.TEXT,
        quota=_CHECK,
        nodes=_CHECK,
    ),
    note=schemas.describe_schema(schemas.TEXT, "What policies set."),
)


class PreviewView(ArchitectureView):
    @extend_schema(
        description=(
            "What a submission would become: its Kubernetes objects, and whether it fits now. "
            "Nothing is submitted; what POST would refuse is refused here in the same words."
        ),
        request=schemas.json_content(SUBMISSION),
        responses={200: schemas.json_response(PREVIEW)}
        | schemas.error_responses(400, 401, 403, 409, 413),
        tags=["workloads"],
    )
    def post(self, request: Request) -> Response:
        submission, project, _ = read_submission(request.data, self.architecture, self.user)
        access.require(self.user, Verb.CREATE, Entity.WORKLOADS, project_scope(project))
        try:
            judgement = judge_submission(
                submission.build_spec(project), project, given_fields=submission.given_fields
            )
            judgement.require_acceptable()
        except Invalid as invalid:
            raise submission.translate_problems(invalid) from None
        return Response(_serialize_preview(judgement))


def _serialize_preview(judgement: Judgement) -> dict[str, Any]:
    objects = workload_manifests.build_for_spec(judgement.spec, judgement.project, judgement.pools)
    fit = judgement.fit
    checks = {
        name: {"verdict": VERDICTS[check.verdict], "message": check.text}
        for name, check in (("quota", fit.quota), ("nodes", fit.nodes))
    }
    return {
        "name": judgement.spec.name,
        "objects": objects,
        "manifest": dump_yaml(objects),
        "fit": {"verdict": VERDICTS[fit.verdict], "message": fit.text, **checks},
        "note": judgement.note,
    }

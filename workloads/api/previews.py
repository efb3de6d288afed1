"""REST views that show what a submission would become, and submit nothing."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from projects.api import schemas
from workloads import journal, workload_manifests
from workloads.api.submissions import ArchitectureView, read_submission
from workloads.api.workload_schemas import SUBMISSION
from workloads.fit import Verdict
from workloads.judgement import Judgement, judge_submission
from workloads.manifests import dump_yaml
from workloads.preflight import Answer, check_submission

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
        scheduler=schemas.describe_schema(_CHECK, "Missing where nothing is wrong with it."),
        volumes=schemas.describe_schema(_CHECK, "Missing where nothing is wrong with them."),
    ),
    note=schemas.describe_schema(schemas.TEXT, "What policies set."),
)


_ANSWER = schemas.enum_schema(*Answer)
_OBJECT_CHECK = schemas.object_schema(
    ["kind", "name", "answer", "message"],
    kind=schemas.TEXT,
    name=schemas.TEXT,
    answer=_ANSWER,
    message=schemas.describe_schema(schemas.TEXT, "The cluster's own words where it refuses it."),
)
PREFLIGHT = {
    **PREVIEW,
    "required": [*PREVIEW["required"], "checks"],
    "properties": {
        **PREVIEW["properties"],
        "checks": schemas.describe_schema(
            schemas.array_schema(_OBJECT_CHECK),
            "What the cluster says of each object, and of a pod of each kind, in a dry run.",
        ),
    },
}


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
        return Response(_serialize_preview(judge_request(self, request)))


class PreflightView(ArchitectureView):
    @extend_schema(
        description=(
            "What a submission would become, whether it fits now, and what the cluster says of "
            "each of its objects in a dry run: quotas, admission and webhooks in its own "
            "words. At most 3 seconds; what was not answered is said to be unchecked. Nothing is "
            "submitted; what POST would refuse is refused here in the same words."
        ),
        request=schemas.json_content(SUBMISSION),
        responses={200: schemas.json_response(PREFLIGHT)}
        | schemas.error_responses(400, 401, 403, 409, 413),
        tags=["workloads"],
    )
    def post(self, request: Request) -> Response:
        judgement = judge_request(self, request)
        checks = [
            {
                "kind": each.kind,
                "name": each.name,
                "answer": each.answer.value,
                "message": each.message,
            }
            for each in check_submission(judgement)
        ]
        return Response(_serialize_preview(judgement) | {"checks": checks})


def judge_request(view: ArchitectureView, request: Request) -> Judgement:
    """Judge the submission of a request; raises what submitting it would raise."""
    submission, project, _ = read_submission(request.data, view.architecture, view.user)
    try:
        judgement = judge_submission(
            submission.build_spec(project), project, given_fields=submission.given_fields
        )
        judgement.require_acceptable()
    except Invalid as invalid:
        raise submission.translate_problems(invalid) from None
    journal.require_free_name(project, judgement.spec.name)
    return judgement


def _serialize_preview(judgement: Judgement) -> dict[str, Any]:
    objects = workload_manifests.build_for_spec(judgement.spec, judgement.project, judgement.pools)
    fit = judgement.fit
    checks = {
        name: {"verdict": VERDICTS[check.verdict], "message": check.text}
        for name, check in (
            ("scheduler", fit.scheduler),
            ("quota", fit.quota),
            ("nodes", fit.nodes),
            ("volumes", fit.volumes),
        )
        if check is not None
    }
    return {
        "name": judgement.spec.name,
        "objects": objects,
        "manifest": dump_yaml(objects),
        "fit": {"verdict": VERDICTS[fit.verdict], "message": fit.text, **checks},
        "note": judgement.note,
    }

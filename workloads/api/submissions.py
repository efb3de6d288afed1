"""REST views that submit, show, stop, run and delete one workload.

They are the same for distributed and standard workloads, each kind at its own address.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid
from console.texts import parse_number
from projects import access
from projects.api import schemas
from projects.api.base import ApiView, Samples
from projects.api.idempotency import idempotent
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from workloads import actions
from workloads.api import from_template, workload_serializers
from workloads.api.details import get_workload
from workloads.api.workload_schemas import ACCEPTED, SUBMISSION, SUBMITTED
from workloads.asset_references import AssetReference
from workloads.judgement import judge_submission
from workloads.rest.reading import Submission, parse_submission
from workloads.specs import Architecture
from workloads.states import Status


class ArchitectureView(ApiView):
    """A view of workloads of one architecture; others are not found at its address."""

    architecture: ClassVar[Architecture] = Architecture.DISTRIBUTED


class SubmitView(ArchitectureView):
    @property
    def samples(self) -> Samples:
        spec: dict[str, object] = {"image": "muster/allreduce", "compute": {"gpuDevicesRequest": 1}}
        name = "a training"
        if self.architecture is Architecture.DISTRIBUTED:
            name = "PyTorch with two workers"
            spec |= {"distributedFramework": "PyTorch", "numWorkers": 2}
        place = {"projectId": "1", "clusterId": "00000000-0000-4000-8000-000000000000"}
        return {"POST": {name: {"name": "train1", **place, "spec": spec}}}

    @extend_schema(
        description=(
            "Submit a workload. Fields that this version cannot heed, and unknown ones, are "
            "refused by name. It is accepted when this "
            "answers; what becomes of it is told by GET."
        ),
        request=schemas.json_content(SUBMISSION),
        responses={202: schemas.json_response(ACCEPTED)}
        | schemas.error_responses(400, 401, 403, 409, 413),
        tags=["workloads"],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        submission, project, assets = read_submission(request.data, self.architecture, self.user)
        try:
            judgement = judge_submission(
                submission.build_spec(project), project, given_fields=submission.given_fields
            )
            workload = actions.submit(
                judgement.spec, project=project, user=self.user, assets=assets, judgement=judgement
            )
        except Invalid as invalid:
            raise submission.translate_problems(invalid) from None
        warnings = judgement.warnings
        return Response(
            workload_serializers.serialize_submission(workload, submission.spec.name)
            | ({"warnings": warnings} if warnings else {}),
            status=202,
        )


class SubmittedView(ArchitectureView):
    @extend_schema(
        description=(
            "A workload as it was submitted, with the phase it is in and the one that is wanted."
        ),
        responses={200: schemas.json_response(SUBMITTED)} | schemas.error_responses(401, 404),
        tags=["workloads"],
    )
    def get(self, request: Request, workload_id: uuid.UUID) -> Response:
        return Response(
            workload_serializers.serialize_submission(
                get_workload(self.user, workload_id, architecture=self.architecture)
            )
        )

    @extend_schema(
        description=(
            "Delete a workload from its cluster. It stays listed with deleted=true, with its "
            "history, for some days."
        ),
        responses={202: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404),
        tags=["workloads"],
    )
    def delete(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id, architecture=self.architecture)
        is_new = actions.remove(workload, self.user)
        outcome = "is being deleted" if is_new else "was being deleted already"
        return _build_accepted_response(f"{workload.name} {outcome}.")


class SuspendView(ArchitectureView):
    @extend_schema(
        description="Stop a workload: its resources are freed, its definition and logs are kept.",
        request=None,
        responses={202: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404, 409),
        tags=["workloads"],
    )
    def post(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id, architecture=self.architecture)
        is_new = actions.stop(workload, self.user)
        if is_new:
            outcome = "is being stopped"
        elif workload.status == Status.STOPPED:
            outcome = "was stopped already"
        else:
            outcome = "is being stopped already"
        return _build_accepted_response(f"{workload.name} {outcome}.")


class ResumeView(ArchitectureView):
    @extend_schema(
        description="Run a workload again that is stopped, failed or completed, as a new attempt.",
        request=None,
        responses={202: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404, 409),
        tags=["workloads"],
    )
    def post(self, request: Request, workload_id: uuid.UUID) -> Response:
        workload = get_workload(self.user, workload_id, architecture=self.architecture)
        is_new = actions.run(workload, self.user)
        outcome = "runs again" if is_new else "was started already"
        return _build_accepted_response(f"{workload.name} {outcome}.")


def read_submission(
    body: Any, architecture: Architecture, user: User
) -> tuple[Submission, Project, Sequence[AssetReference]]:
    """Return the submission of a body, its project, and the assets that its template uses.

    Raises Invalid, and NotAllowed or Http404 for a user who may not submit there.
    """
    if isinstance(body, Mapping) and body.get(from_template.TEMPLATE_FIELD):
        project = _get_project_on_cluster(
            _read_id_text(body, "projectId"), _read_id_text(body, "clusterId"), user
        )
        submission, assets = from_template.build_submission(body, architecture, project, user)
        return submission, project, assets
    submission = parse_submission(body, architecture)
    return (
        submission,
        _get_project_on_cluster(submission.project_id, submission.cluster_id, user),
        (),
    )


def _read_id_text(body: Mapping[str, Any], name: str) -> str:
    """Return an id of a body that is not parsed yet, as text."""
    value = body.get(name)
    return "" if value is None else str(value)


def get_project(project_id: str, user: User) -> Project:
    """Return the project that a request names.

    Raises Invalid, the same where the user may not see it and where it does not exist.
    """
    key = parse_number(project_id) or 0
    project: Project | None = (
        Project.objects.visible_to(user).select_related("department").filter(pk=key).first()
    )
    if project is None:
        raise Invalid(
            [
                (
                    "projectId",
                    (
                        f"There is no project {project_id[:40]} among those that you may see. GET "
                        "/api/v1/org-unit/projects lists them."
                    ),
                )
            ]
        )
    return project


def _get_project_on_cluster(project_id: str, cluster_id: str, user: User) -> Project:
    """Return the project of a submission. Raises Invalid also where it is on another cluster.

    Who may not submit there gets NotAllowed, or Http404, before a template or a policy is read.
    """
    project = get_project(project_id, user)
    access.require(user, Verb.CREATE, Entity.WORKLOADS, project_scope(project))
    if cluster_id.lower() != str(project.cluster_id):
        raise Invalid(
            [
                (
                    "clusterId",
                    (
                        f"The project {project.name} is on the cluster {project.cluster_id}, and "
                        f"not on {cluster_id[:40]}."
                    ),
                )
            ]
        )
    return project


def _build_accepted_response(message: str) -> Response:
    return Response({"code": 202, "message": message}, status=202)

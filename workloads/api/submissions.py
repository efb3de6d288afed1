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
from projects.api import schemas
from projects.api.base import ApiView
from projects.models import Project, User
from workloads import actions
from workloads.api import from_template, workload_serializers
from workloads.api.details import get_workload
from workloads.api.workload_schemas import SUBMISSION, SUBMITTED
from workloads.asset_uses import AssetReference
from workloads.rest.reading import parse_submission
from workloads.specs import Architecture


class ArchitectureView(ApiView):
    """A view of workloads of one architecture; others are not found at its address."""

    architecture: ClassVar[Architecture] = Architecture.DISTRIBUTED


class SubmitView(ArchitectureView):
    @extend_schema(
        description=(
            "Submit a workload. Fields that this version cannot heed, and unknown ones, are "
            "refused by name. It is accepted when this "
            "answers; what becomes of it is told by GET."
        ),
        request=schemas.json_content(SUBMISSION),
        responses={202: schemas.json_response(SUBMITTED)}
        | schemas.error_responses(400, 401, 403, 409, 413),
        tags=["workloads"],
    )
    def post(self, request: Request) -> Response:
        body = request.data
        assets: Sequence[AssetReference] = ()
        if isinstance(body, Mapping) and body.get(from_template.TEMPLATE_FIELD):
            project = _get_project(
                _read_id_text(body, "projectId"), _read_id_text(body, "clusterId"), self.user
            )
            submission, assets = from_template.build_submission(
                body, self.architecture, project, self.user
            )
        else:
            submission = parse_submission(body, self.architecture)
            project = _get_project(submission.project_id, submission.cluster_id, self.user)
        try:
            workload = actions.submit(
                submission.build_spec(project),
                project=project,
                user=self.user,
                assets=assets,
                given_fields=submission.given_fields,
            )
        except Invalid as invalid:
            raise submission.translate_problems(invalid) from None
        return Response(
            workload_serializers.serialize_submission(workload, submission.spec.name), status=202
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
        actions.remove(workload, self.user)
        return _build_accepted_response(f"{workload.name} is being deleted.")


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
        actions.stop(workload, self.user)
        return _build_accepted_response(f"{workload.name} is being stopped.")


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
        actions.run(workload, self.user)
        return _build_accepted_response(f"{workload.name} runs again.")


def _read_id_text(body: Mapping[str, Any], name: str) -> str:
    """Return an id of a body that is not parsed yet, as text."""
    value = body.get(name)
    return "" if value is None else str(value)


def _get_project(project_id: str, cluster_id: str, user: User) -> Project:
    """Return the project of a submission.

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

"""`/api/v1/clusters`: a bare array for everybody; administrators add, try, change and remove
clusters, as on the pages.
"""

import uuid
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import actions, cluster_twins, connection_trial
from clusters.api import cluster_schemas
from clusters.api.cluster_schemas import ClusterChange, ConnectionBody
from clusters.cluster_forms import ClusterChangeForm, ClusterForm
from clusters.cluster_saving import save_cluster
from clusters.connection_trial import ConnectionTrial
from clusters.models import Cluster
from clusters.permission_review import PermissionReview
from clusters.prerequisites import list_prerequisites
from console.errors import Invalid
from console.moments import format_moment
from console.rest_bodies import Body, parse_body
from projects import access
from projects.api import schemas
from projects.api.base import ApiView, ListQuery
from projects.api.idempotency import idempotent
from projects.api.merging import follow_version, repeat_stale
from projects.permissions import Entity, Verb
from projects.scopes import cluster_scope


class ClustersView(ApiView):
    @extend_schema(
        operation_id="list_clusters",
        description=(
            "The clusters of the projects that you may see; an administrator of Muster sees all. "
            "The answer is an array."
        ),
        responses={200: schemas.json_response({"type": "array", "items": schemas.CLUSTER})}
        | schemas.error_responses(401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        clusters = Cluster.objects.visible_to(self.user).defer("kubeconfig")
        return Response([serialize_cluster(cluster) for cluster in clusters])

    @extend_schema(
        operation_id="create_cluster",
        description=(
            "Add a cluster, by a kubeconfig, by its address and a token, or the one that Muster "
            "runs in. For administrators."
        ),
        request=schemas.body_content(ConnectionBody, "name"),
        responses={201: schemas.json_response(cluster_schemas.CREATED)}
        | schemas.error_responses(400, 401, 403, 409),
        tags=["organisation"],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.CLUSTERS)
        body = _parse_body(ConnectionBody, request.data)
        form = _validate_form(ClusterForm(body.build_form_data()))
        way, kubeconfig = form.credentials
        cluster = actions.register(form.cleaned_data["name"], kubeconfig, way=way, user=self.user)
        twins = cluster_twins.find_twins(cluster, Cluster.objects.visible_to(self.user))
        return Response(serialize_cluster(cluster) | {"sameAs": twins}, status=201)


class ConnectionTestView(ApiView):
    @extend_schema(
        operation_id="test_connection",
        description=(
            "Try a connection and keep nothing. It takes a few seconds. For administrators."
        ),
        request=schemas.body_content(ConnectionBody),
        responses={200: schemas.json_response(cluster_schemas.TRIAL)}
        | schemas.error_responses(400, 401, 403),
        tags=["organisation"],
    )
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.CLUSTERS)
        body = _parse_body(ConnectionBody, request.data)
        # For a test a name is not needed.
        form = _validate_form(ClusterForm({"name": "test"} | body.build_form_data()))
        visible = Cluster.objects.visible_to(self.user)
        trial = connection_trial.try_connection(*form.credentials, visible)
        return Response(_serialize_trial(trial))


class ClusterView(ApiView):
    @extend_schema(
        operation_id="get_cluster",
        description=(
            "One cluster, with what it can do: its prerequisites and what its credentials may not."
        ),
        responses={200: schemas.json_response(cluster_schemas.DETAILS)}
        | schemas.error_responses(401, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        cluster = _get_cluster(pk, Cluster.objects.visible_to(self.user))
        gpus = [each > 0 for each in cluster.nodes.values_list("gpus", flat=True)]
        review = PermissionReview.from_json(cluster.permissions)
        return Response(
            serialize_cluster(cluster)
            | {
                "prerequisites": [
                    _serialize_prerequisite(each)
                    for each in list_prerequisites(cluster.can, cluster.parsed_findings, gpus)
                ],
                "missingPermissions": [
                    {"verb": need.verb, "resource": need.kind} for need in review.refused_needs
                ],
                "sameAs": cluster_twins.find_twins(cluster, Cluster.objects.visible_to(self.user)),
                "probedAt": format_moment(cluster.probed_at),
                "permissionsCheckedAt": format_moment(cluster.permissions_at),
            }
        )

    @extend_schema(
        operation_id="change_cluster",
        description=(
            "Another name, other credentials, or whether it is used at all (enabled). What is not "
            "given stays. For administrators."
        ),
        request=schemas.body_content(ClusterChange),
        responses={200: schemas.json_response(schemas.CLUSTER)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @repeat_stale
    def patch(self, request: Request, pk: uuid.UUID) -> Response:
        access.require(self.user, Verb.EDIT, Entity.CLUSTERS, cluster_scope(pk))
        cluster = _get_cluster(pk)
        body = _parse_body(ClusterChange, request.data)
        stored = ClusterChangeForm.values(cluster)
        form = ClusterChangeForm(
            stored | body.build_form_data(),
            initial=stored,
            is_local=cluster.is_local,
            stored_way=actions.find_sign_in_way(cluster),
        )
        _validate_form(form)
        with follow_version(cluster.edit_version, None) as version:
            cluster = save_cluster(pk, form, self.user, version, is_enabled=body.enabled)
        return Response(serialize_cluster(cluster))

    @extend_schema(
        operation_id="remove_cluster",
        description=(
            "Forget a cluster and its credentials; nothing is asked of it. Refused while projects "
            "are on it, unless forced: then they are deleted here, its workloads are listed under "
            "Deleted, and what runs in the cluster goes on. For administrators."
        ),
        parameters=[
            schemas.query_parameter(
                "force", schemas.BOOLEAN, "Whether to remove it with what is on it."
            )
        ],
        responses={200: schemas.json_response(schemas.DONE)}
        | schemas.error_responses(401, 403, 404, 409),
        tags=["organisation"],
    )
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        access.require(self.user, Verb.DELETE, Entity.CLUSTERS, cluster_scope(pk))
        cluster = _get_cluster(pk)
        actions.remove(cluster, self.user, force=ListQuery(request).flag("force") is True)
        return Response(
            {
                "code": 200,
                "message": f"Cluster {cluster.name} is removed, and its credentials with it.",
            }
        )


class ClusterTestView(ApiView):
    @extend_schema(
        operation_id="test_cluster",
        description=(
            "Try a cluster's connection with its stored credentials. It takes a few seconds. For "
            "administrators."
        ),
        request=None,
        responses={200: schemas.json_response(cluster_schemas.TRIAL)}
        | schemas.error_responses(401, 403, 404),
        tags=["organisation"],
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        access.require(self.user, Verb.EDIT, Entity.CLUSTERS, cluster_scope(pk))
        cluster = _get_cluster(pk)
        visible = Cluster.objects.visible_to(self.user)
        trial = connection_trial.try_stored_connection(cluster, visible)
        return Response(_serialize_trial(trial))


def serialize_cluster(cluster: Cluster) -> dict[str, Any]:
    """Return a cluster as the API has it, without its credentials."""
    return {
        "uuid": str(cluster.pk),
        "tenantId": 1,
        "name": cluster.name,
        "createdAt": format_moment(cluster.created_at),
        "domain": cluster.server,
        "version": cluster.version,
        "platform": cluster.platform,
        "enabled": cluster.is_enabled,
        "status": {"state": cluster.state, "message": cluster.trouble},
        "lastLiveness": format_moment(cluster.last_seen_at),
        "metrics": {
            "lastAt": format_moment(cluster.metrics_at),
            "message": cluster.metrics_problem,
        },
    }


def _get_cluster(pk: uuid.UUID, rows: Any = None) -> Cluster:
    rows = Cluster.objects.there() if rows is None else rows
    cluster: Cluster | None = rows.defer("kubeconfig").filter(pk=pk).first()
    if cluster is None:
        raise Http404("There is no such cluster among those that you may see.")
    return cluster


def _parse_body(body_type: type[Body], data: Any) -> Body:
    """Parse a body; one that is no object gives nothing. Raises Invalid."""
    return parse_body(body_type, data if isinstance(data, dict) else {})


def _validate_form(form: ClusterForm) -> ClusterForm:
    """Return the form if it is valid. Raises Invalid with all its problems."""
    if form.is_valid():
        return form
    problems = [(name, " ".join(map(str, errors))) for name, errors in form.errors.items()]
    if "way" in form.errors and form.data.get("way") is None:
        problems = [
            *((name, text) for name, text in problems if name != "way"),
            ("kubeconfig", cluster_schemas.ONE_WAY),
        ]
    elif "way" in form.errors:
        problems = [
            (
                "inCluster" if name == "way" else name,
                cluster_schemas.NOT_INSIDE if name == "way" else text,
            )
            for name, text in problems
        ]
    raise Invalid(problems)


def _serialize_trial(trial: ConnectionTrial) -> dict[str, Any]:
    return {
        "connected": not trial.trouble,
        "message": trial.trouble,
        "version": trial.version,
        "platform": trial.platform,
        "nodes": trial.nodes,
        "prerequisites": [_serialize_prerequisite(each) for each in trial.prerequisites],
        "missingPermissions": [
            {"verb": need.verb, "resource": need.kind} for need in trial.review.refused_needs
        ],
        "permissionsSkipped": trial.review.trouble,
        "sameAs": list(trial.twins),
    }


def _serialize_prerequisite(prerequisite: Any) -> dict[str, Any]:
    return {
        "title": prerequisite.title,
        "state": prerequisite.state.value,
        "message": prerequisite.text,
        "install": prerequisite.command,
        "isRequired": prerequisite.is_required,
    }

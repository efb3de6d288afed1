"""`/api/v1/clusters`: a bare array for everybody; adding, trying, changing and removing for
administrators, as on the pages.
"""

import uuid
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from clusters import actions, trying
from clusters.adding import STORED, ClusterChangeForm, ClusterForm
from clusters.api import describing
from clusters.models import Cluster, Way
from clusters.prerequisites import prerequisites
from clusters.reviewing import Review
from clusters.trying import Trial
from console.errors import Invalid
from projects import access
from projects.api import schemas
from projects.api.base import ApiView, Asked
from projects.permissions import Entity, Verb
from projects.scopes import of_cluster

_TEXTS = ("name", "kubeconfig", "server", "token", "ca", "prometheusUrl")


class ClustersView(ApiView):
    @extend_schema(
        operation_id="list_clusters",
        description=(
            "The clusters of the projects that you may see; an administrator of Muster sees all. "
            "The answer is an array."
        ),
        responses={200: schemas.answer({"type": "array", "items": schemas.CLUSTER})}
        | schemas.errors(401),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        found = Cluster.objects.visible_to(self.user).defer("kubeconfig")
        return Response([shown(cluster) for cluster in found])

    @extend_schema(
        operation_id="create_cluster",
        description=(
            "Add a cluster, by a kubeconfig, by its address and a token, or the one that Muster "
            "runs in. For administrators."
        ),
        request=schemas.content(describing.CONNECTION),
        responses={201: schemas.answer(schemas.CLUSTER)} | schemas.errors(400, 401, 403, 409),
        tags=["organisation"],
    )
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.CLUSTERS)
        form = _valid(ClusterForm(_typed(request.data)))
        way, kubeconfig = form.credentials
        made = actions.register(form.cleaned_data["name"], kubeconfig, way=way, by=self.user)
        return Response(shown(made), status=201)


class ConnectionTestView(ApiView):
    @extend_schema(
        operation_id="test_connection",
        description=(
            "Try a connection and keep nothing. It takes a few seconds. For administrators."
        ),
        request=schemas.content(describing.CONNECTION),
        responses={200: schemas.answer(describing.TRIAL)} | schemas.errors(400, 401, 403),
        tags=["organisation"],
    )
    def post(self, request: Request) -> Response:
        access.require(self.user, Verb.CREATE, Entity.CLUSTERS)
        # For a test a name is not needed.
        form = _valid(ClusterForm({"name": "test"} | _typed(request.data)))
        return Response(_told(trying.tried(*form.credentials)))


class ClusterView(ApiView):
    @extend_schema(
        operation_id="get_cluster",
        description=(
            "One cluster, with what it can do: its prerequisites and what its credentials may not."
        ),
        responses={200: schemas.answer(describing.DETAILS)} | schemas.errors(401, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        found = _reach(pk, Cluster.objects.visible_to(self.user))
        gpus = [each > 0 for each in found.nodes.values_list("gpus", flat=True)]
        review = Review.from_json(found.permissions)
        return Response(
            shown(found)
            | {
                "prerequisites": [
                    _prerequisite(each) for each in prerequisites(found.can, found.found, gpus)
                ],
                "missingPermissions": [
                    {"verb": need.verb, "resource": need.kind} for need in review.refused
                ],
                "probedAt": _moment(found.probed_at),
                "permissionsCheckedAt": _moment(found.permissions_at),
            }
        )

    @extend_schema(
        operation_id="change_cluster",
        description=(
            "Another name, other credentials, or whether it is used at all (enabled). What is not "
            "given stays. For administrators."
        ),
        request=schemas.content(describing.CHANGE),
        responses={200: schemas.answer(schemas.CLUSTER)} | schemas.errors(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    def patch(self, request: Request, pk: uuid.UUID) -> Response:
        access.require(self.user, Verb.EDIT, Entity.CLUSTERS, of_cluster(pk))
        found = _reach(pk)
        body = request.data if isinstance(request.data, dict) else {}
        stored = {"name": found.name, "way": STORED, "prometheus_url": found.prometheus_url}
        form = ClusterChangeForm(stored | _typed(body), is_local=found.is_local)
        _valid(form)
        enabled = body.get("enabled")
        if enabled is not None and not isinstance(enabled, bool):
            raise Invalid([("enabled", "enabled must be true or false.")])
        if form.cleaned_data["name"] != found.name:
            actions.rename(found, form.cleaned_data["name"], by=self.user)
        if not form.keeps:
            way, kubeconfig = form.credentials
            actions.reconnect(found, kubeconfig, way=way, by=self.user)
        if form.cleaned_data["prometheus_url"] != found.prometheus_url:
            actions.measure(found, form.cleaned_data["prometheus_url"], by=self.user)
        if enabled is not None and enabled != found.is_enabled:
            (actions.enable if enabled else actions.disable)(found, by=self.user)
        return Response(shown(found))

    @extend_schema(
        operation_id="remove_cluster",
        description=(
            "Forget a cluster and its credentials; nothing is asked of it. Refused while projects "
            "are on it, unless forced: then they are deleted here, its workloads are listed under "
            "Deleted, and what runs in the cluster goes on. For administrators."
        ),
        parameters=[
            schemas.parameter("force", schemas.FLAG, "Whether to remove it with what is on it.")
        ],
        responses={200: schemas.answer(schemas.DONE)} | schemas.errors(401, 403, 404, 409),
        tags=["organisation"],
    )
    def delete(self, request: Request, pk: uuid.UUID) -> Response:
        access.require(self.user, Verb.DELETE, Entity.CLUSTERS, of_cluster(pk))
        found = _reach(pk)
        actions.remove(found, self.user, force=Asked(request).flag("force") is True)
        return Response(
            {
                "code": 200,
                "message": f"Cluster {found.name} is removed, and its credentials with it.",
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
        responses={200: schemas.answer(describing.TRIAL)} | schemas.errors(401, 403, 404),
        tags=["organisation"],
    )
    def post(self, request: Request, pk: uuid.UUID) -> Response:
        access.require(self.user, Verb.EDIT, Entity.CLUSTERS, of_cluster(pk))
        found = _reach(pk)
        return Response(_told(trying.stored(found)))


def shown(cluster: Cluster) -> dict[str, Any]:
    """A cluster as the API has it, without its credentials."""
    return {
        "uuid": str(cluster.pk),
        "tenantId": 1,
        "name": cluster.name,
        "createdAt": cluster.created_at.isoformat(),
        "domain": cluster.server,
        "version": cluster.version,
        "platform": cluster.platform,
        "enabled": cluster.is_enabled,
        "status": {"state": cluster.state, "message": cluster.trouble},
        "lastLiveness": _moment(cluster.last_seen_at),
    }


def _reach(pk: uuid.UUID, among: Any = None) -> Cluster:
    rows = Cluster.objects.there() if among is None else among
    found: Cluster | None = rows.defer("kubeconfig").filter(pk=pk).first()
    if found is None:
        raise Http404("There is no such cluster among those that you may see.")
    return found


def _typed(data: Any) -> dict[str, str]:
    """A body as the form has it. Raises Invalid for what is no text where one is wanted."""
    body = data if isinstance(data, dict) else {}
    wrong = [
        (name, f"{name} must be a text.")
        for name in _TEXTS
        if name in body and not isinstance(body[name], str)
    ]
    if wrong:
        raise Invalid(wrong)
    given = {name: body[name] for name in _TEXTS if name in body}
    if "prometheusUrl" in given:
        given["prometheus_url"] = given.pop("prometheusUrl")
    if body.get("inCluster") is True:
        given["way"] = Way.INSIDE.value
    elif "kubeconfig" in given:
        given["way"] = Way.KUBECONFIG.value
    elif given.keys() & {"server", "token", "ca"}:
        given["way"] = Way.TOKEN.value
    return given


def _valid(form: ClusterForm) -> ClusterForm:
    """The form. Raises Invalid with everything that is wrong."""
    if form.is_valid():
        return form
    problems = [(name, " ".join(map(str, errors))) for name, errors in form.errors.items()]
    if "way" in form.errors and form.data.get("way") is None:
        problems = [
            *((name, text) for name, text in problems if name != "way"),
            ("kubeconfig", describing.ONE_WAY),
        ]
    elif "way" in form.errors:
        problems = [
            (
                "inCluster" if name == "way" else name,
                describing.NOT_INSIDE if name == "way" else text,
            )
            for name, text in problems
        ]
    raise Invalid(problems)


def _told(trial: Trial) -> dict[str, Any]:
    return {
        "connected": not trial.trouble,
        "message": trial.trouble,
        "version": trial.version,
        "platform": trial.platform,
        "nodes": trial.nodes,
        "prerequisites": [_prerequisite(each) for each in trial.prerequisites],
        "missingPermissions": [
            {"verb": need.verb, "resource": need.kind} for need in trial.review.refused
        ],
        "permissionsSkipped": trial.review.trouble,
    }


def _prerequisite(each: Any) -> dict[str, Any]:
    return {
        "title": each.title,
        "state": each.mark.value,
        "message": each.text,
        "install": each.command,
        "isRequired": each.is_required,
    }


def _moment(moment: Any) -> str | None:
    return moment.isoformat() if moment else None

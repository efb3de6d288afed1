"""`/api/v1/quota-trials`: other quotas, weights and nodes, tried on the last 30 days."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated

from django.http import Http404
from drf_spectacular.utils import extend_schema
from msgspec import UNSET, Meta, UnsetType
from rest_framework.request import Request
from rest_framework.response import Response

from clusters.models import Cluster
from console.errors import Invalid
from console.rest_bodies import RestBody, describe_field, parse_body
from projects import access
from projects.api import schemas
from projects.api.base import ApiView, ListQuery, build_list_body
from projects.api.idempotency import idempotent
from projects.models import User
from projects.permissions import Entity, Verb
from workloads import trial_requests
from workloads.api.quota_trial_answers import (
    FIELD_NAMES,
    TRIAL,
    WHOLE_TRIAL,
    serialize_trial,
    serialize_whole_trial,
)
from workloads.elastic.cluster_state import MOST_NODES
from workloads.forms.trial_form import TrialForm
from workloads.trials import ChangeKind, load_node_kinds
from workloads.trials.changes import COUNT_FIELD, SHARE_FIELDS
from workloads.trials.node_kinds import MOST_OF_A_KIND

MOST_NAMED = 500
"""Projects, departments, or kinds of nodes of one body."""
UNLIMITED = Decimal(-1)
WEIGHT_FIELD = "over_quota_weight"
_PLACES = {
    ChangeKind.PROJECT: "projects",
    ChangeKind.DEPARTMENT: "departments",
    ChangeKind.NODES: "nodes",
}
Amount = Annotated[
    Decimal | UnsetType | None,
    describe_field("null and -1 are without limit; what is not given stays."),
]


class TrialSharesBody(RestBody, forbid_unknown_fields=True):
    """Other shares of GPUs of a project or a department."""

    id: str
    gpu_quota: Amount = UNSET
    gpu_limit: Amount = UNSET
    over_quota_weight: Decimal | UnsetType = UNSET


class TrialNodesBody(RestBody, forbid_unknown_fields=True):
    """Another number of nodes of one kind."""

    like: Annotated[
        str,
        describe_field(
            "A node's name. Of its kind are those with as many GPUs of its type, in "
            "the same node pools, with the same taints."
        ),
    ]
    count: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_NODES)],
        describe_field(
            f"At most {MOST_OF_A_KIND:,}, or as many as there are now.",
            problem=f"must be a whole number from 0 to {MOST_NODES:,}",
        ),
    ]


Shares = Annotated[tuple[TrialSharesBody, ...], Meta(max_length=MOST_NAMED)]


class TrialBody(RestBody, forbid_unknown_fields=True):
    """What is tried on a cluster."""

    cluster_id: str
    projects: Shares = ()
    departments: Shares = ()
    nodes: Annotated[tuple[TrialNodesBody, ...], Meta(max_length=MOST_NAMED)] = ()


class QuotaTrialsView(ApiView):
    @extend_schema(
        operation_id="list_quota_trials",
        description=(
            "The trials of clusters whose departments, projects and workloads you administer, the "
            "newest first. They are kept for 30 days."
        ),
        parameters=schemas.paging_parameters(),
        responses={200: schemas.json_response(schemas.list_schema("trials", TRIAL))}
        | schemas.error_responses(400, 401, 403),
        tags=["organisation"],
    )
    def get(self, request: Request) -> Response:
        access.require_anywhere(self.user, Verb.EDIT, Entity.DEPARTMENTS)
        _, rows = trial_requests.list_trials(self.user)
        page, next_offset = ListQuery(request).page(rows)
        return Response(
            build_list_body("trials", [serialize_trial(each) for each in page], next_offset)
        )

    @extend_schema(
        operation_id="create_quota_trial",
        description=(
            "Try other quotas, limits and over-quota weights of GPUs, and other numbers of nodes, "
            "on the last 30 days of a cluster: how long would workloads have waited? Nothing is "
            "applied. It is played in the background; ask for the trial until its status is done."
        ),
        request=schemas.body_content(TrialBody),
        responses={202: schemas.json_response(WHOLE_TRIAL)}
        | schemas.error_responses(400, 401, 403, 404, 409),
        tags=["organisation"],
    )
    @idempotent
    def post(self, request: Request) -> Response:
        body = parse_body(TrialBody, request.data)
        cluster = _get_cluster(self.user, body.cluster_id)
        form = _load_form(body, cluster)
        trial = trial_requests.request_trial(self.user, cluster, form.changes)
        return Response(serialize_whole_trial(trial), status=202)


class QuotaTrialView(ApiView):
    @extend_schema(
        operation_id="get_quota_trial",
        description="One trial, with its result as soon as it is done.",
        responses={200: schemas.json_response(WHOLE_TRIAL)}
        | schemas.error_responses(401, 403, 404),
        tags=["organisation"],
    )
    def get(self, request: Request, pk: uuid.UUID) -> Response:
        trial = trial_requests.get_trial(self.user, pk)
        return Response(serialize_whole_trial(trial))


def _get_cluster(user: User, text: str) -> Cluster:
    """Return the cluster of an id. Raises Http404, and NotAllowed for whom it is no cluster to try.

    The rights come first: another's cluster reads like one that is not there.
    """
    try:
        key = uuid.UUID(text)
    except ValueError:
        raise Http404(access.NOT_THERE) from None
    trial_requests.require_trials(user, key)
    cluster: Cluster | None = Cluster.objects.in_use().filter(pk=key).first()
    if cluster is None:
        raise Http404(access.NOT_THERE)
    return cluster


def _load_form(body: TrialBody, cluster: Cluster) -> TrialForm:
    """Load the form with what the body says. Raises Invalid, each problem with its place."""
    places = _index_places(_list_places(body, cluster))
    data: dict[str, str] = {}
    for (kind, key), (_, values) in places.items():
        data |= {f"{kind.value}-{key}-{name}": value for name, value in values.items()}
    form = trial_requests.load_form(cluster, data=data, named=places)
    row_keys = {(row.kind, row.id) for row in form.rows}
    unknown = [
        (f"{place}.id", "There is no such one on this cluster.")
        for key, (place, _) in places.items()
        if key not in row_keys
    ]
    if unknown:
        raise Invalid(unknown)
    if not form.is_valid():
        raise Invalid(
            [
                (f"{places[row.kind, row.id][0]}.{FIELD_NAMES[field]}", text)
                for row, field, text in form.problems
            ]
            or [("projects", form.problem)]
        )
    return form


Row = tuple[ChangeKind, str]
Place = tuple[str, Mapping[str, str]]


def _index_places(pairs: Iterable[tuple[Row, Place]]) -> Mapping[Row, Place]:
    """Return the places by their rows. Raises Invalid where the body names a row twice."""
    places: dict[Row, Place] = {}
    problems = []
    for row, place in pairs:
        if row in places:
            problems.append(_describe_repetition(row, place, places[row]))
        else:
            places[row] = place
    if problems:
        raise Invalid(problems)
    return places


def _describe_repetition(row: Row, place: Place, first: Place) -> tuple[str, str]:
    """Return the place of a row's second mention, and what is wrong with it."""
    if row[0] is ChangeKind.NODES:
        return f"{place[0]}.like", f"The same kind of nodes as {first[0]}. Give each kind once."
    return f"{place[0]}.id", f"The same as {first[0]}. Give each once."


def _list_places(body: TrialBody, cluster: Cluster) -> Iterator[tuple[Row, Place]]:
    """Yield each row that the body names: its kind and id, its place, and the given values."""
    parts: Sequence[tuple[ChangeKind, Sequence[TrialSharesBody]]] = (
        (ChangeKind.PROJECT, body.projects),
        (ChangeKind.DEPARTMENT, body.departments),
    )
    for kind, items in parts:
        for index, item in enumerate(items):
            shares = {name: getattr(item, name) for name in SHARE_FIELDS}
            values = {
                name: _write_amount(name, value)
                for name, value in shares.items()
                if value is not UNSET
            }
            yield (kind, item.id), (f"{_PLACES[kind]}.{index}", values)
    if not body.nodes:
        return
    kinds = {node.name: kind.key for kind in load_node_kinds(cluster) for node in kind.nodes}
    for index, one in enumerate(body.nodes):
        place = f"nodes.{index}"
        if one.like not in kinds:
            raise Invalid([(f"{place}.like", "There is no such node that takes pods.")])
        yield (ChangeKind.NODES, kinds[one.like]), (place, {COUNT_FIELD: str(one.count)})


def _write_amount(name: str, amount: Decimal | None) -> str:
    """Return an amount as it is typed; no weight is without limit."""
    is_unlimited = amount == UNLIMITED and name != WEIGHT_FIELD
    return "" if amount is None or is_unlimited else f"{amount:f}"

"""What is asked of the simulator about one submission, or one workload that waits.

All is read out of rows here; nothing asks the cluster. What the reader may not see is named
"another project".
"""

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import islice

from django.utils import timezone

from clusters.models import Cluster
from console.errors import UserError
from projects.access import is_permitted, list_permitted_projects
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.scopes import project_scope
from scheduling import GPU, ClusterState, Gang, Number
from scheduling.shapes import compute_charge
from simulation import Past, RunLengths
from simulation.alternatives import Alternative
from workloads import policies
from workloads.alternatives.gangs import TooManyPods, build_gang
from workloads.alternatives.namespace_objects import has_named_objects
from workloads.alternatives.spec_changes import list_spec_changes
from workloads.elastic import cluster_state
from workloads.elastic.cluster_state import LoadedState
from workloads.elastic.pod_shapes import ShapeBuilder
from workloads.forecasting.cluster_forecast import STALE_AFTER, TOO_LARGE
from workloads.forecasting.evidence import load_run_lengths
from workloads.forecasting.played_state import LEFT_OUT, load_played_state
from workloads.forecasting.submissions import load_past_submissions
from workloads.forecasting.unplayed_devices import NOT_PLAYED, find_unplayed_device
from workloads.judgement import Judgement, judge_submission
from workloads.models import Workload, WorkloadForecast
from workloads.placement_rules import load_pools
from workloads.policies import PoliciesInForce
from workloads.queries.disruptions import UNNAMED
from workloads.specs import Spec, UnreadableSpec, decode_spec

BASE = "as-it-is"
"""The key of the gang as it waits, or would wait."""
MOST_CHANGES = 9
"""Changes of the spec that are played."""
MOST_ENDED = 3
"""Running workloads whose end is tried."""
MOST_PLACES = 2
"""Other clusters that are played."""
MOST_TRIES = 6
MOST_PROJECTS = 200
"""Projects on other clusters that are tried, and that are read."""


class CannotAsk(Exception):
    """Nothing can be played; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One alternative in words. `change` is the key of a change of the spec, "" without one."""

    key: str
    title: str
    change: str = ""
    project: int | None = None
    """The project of a copy; None where it is no copy, or the reader may not launch one there."""
    is_elsewhere: bool = False
    """Whether it is on another cluster."""
    ended: uuid.UUID | None = None
    """The workload that would end, where the reader sees it."""
    quota_of: Project | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """One cluster with what is asked of it; the first alternative is the measure of the others."""

    state: ClusterState
    lengths: Mapping[str, RunLengths]
    alternatives: Sequence[Alternative]
    past: Past


@dataclass(frozen=True, slots=True)
class Question:
    """All that is asked at once, the submission's own cluster first."""

    places: Sequence[Place]
    offers: Mapping[str, Offer]
    asked_at: datetime


def ask_for_workload(workload: Workload, user: User) -> Question:
    """Build the question of a workload that waits. Raises CannotAsk.

    It is loaded with its project and cluster. Some queries for each change, of which there are
    fewer than twenty.
    """
    try:
        spec = decode_spec(workload.spec)
    except UnreadableSpec as error:
        raise CannotAsk("It was submitted by another version of Muster.") from error
    _require_played_devices(spec)
    builder = _Builder(workload.project, user)
    key = str(workload.pk)
    gang = next((each for each in builder.state.gangs if each.key == key), None)
    if gang is None and builder.is_cut:
        raise CannotAsk(LEFT_OUT)
    if gang is None or any(pod.node for pod in gang.pods):
        raise CannotAsk("None of its pods waits for a node, or some have one already.")
    forecast = WorkloadForecast.objects.filter(pk=workload.pk).first()
    return builder.build(spec, gang, [] if forecast is None else forecast.blockers)


def ask_for_draft(judgement: Judgement, user: User) -> Question:
    """Build the question of an acceptable submission that is not made yet. Raises CannotAsk."""
    _require_played_devices(judgement.spec)
    builder = _Builder(judgement.project, user)
    if builder.is_cut:
        # It would wait behind all that is left out.
        raise CannotAsk(LEFT_OUT)
    try:
        gang = builder.build_gang(judgement)
    except TooManyPods as error:
        raise CannotAsk("It has more pods than Muster plays forward.") from error
    return builder.build(judgement.spec, gang, ())


def _require_played_devices(spec: Spec) -> None:
    device = find_unplayed_device(spec)
    if device:
        raise CannotAsk(f"It asks for {device}, and {NOT_PLAYED}.")


class _Builder:
    """Builds the question of one submission in its project."""

    def __init__(self, project: Project, user: User) -> None:
        self.project = project
        self.user = user
        self.now = timezone.now()
        loaded = _load_state(project.cluster, self.now)
        self.state = loaded.state
        self.is_cut = project.pk in loaded.cut_projects
        self._shapes = _build_shapes(project.cluster)
        self._offers: dict[str, Offer] = {BASE: Offer(BASE, "As it is")}
        self._in_force: PoliciesInForce = policies.load_for_project(project)
        self._may_launch = is_permitted(
            user, Verb.CREATE, Entity.WORKLOADS, project_scope(project.pk)
        )

    def build(self, spec: Spec, gang: Gang, blockers: Sequence[str]) -> Question:
        """Build the question of a gang, with what it waits for by the last forecast."""
        alternatives = [
            Alternative(BASE, gang),
            # Cut after they are judged: what is refused takes no other's place.
            *islice(self._change_spec(spec, gang.key), MOST_CHANGES),
            *self._raise_quota(gang),
            *self._end_work(gang, blockers),
        ]
        home = self.build_place(alternatives)
        return Question([home, *self._go_elsewhere(spec, gang.key)], self._offers, self.now)

    def build_place(self, alternatives: Sequence[Alternative]) -> Place:
        """Build the question of the project's cluster."""
        cluster = self.project.cluster
        lengths = load_run_lengths(cluster.pk, self.now)
        before = load_past_submissions(cluster, lengths, self.now)
        return Place(self.state, {**lengths, **before.lengths}, alternatives, before.past)

    def build_gang(self, judgement: Judgement, key: str = "draft") -> Gang:
        """Build the gang of a submission to the project. Raises TooManyPods."""
        return build_gang(
            key, judgement.spec, self.project, judgement.pools, self._shapes, self.now
        )

    def _change_spec(self, spec: Spec, key: str) -> Iterator[Alternative]:
        """Yield the changes of the spec that policies, project and cluster allow."""
        pools = load_pools(self.project)
        for change in list_spec_changes(spec, pools, has_kai=self.project.cluster.can.has_kai):
            gang = self.judge(change.spec, key)
            if gang is not None:
                project = self.project.pk if self._may_launch else None
                self._offers[change.key] = Offer(change.key, change.title, change.key, project)
                yield Alternative(change.key, gang)

    def judge(self, spec: Spec, key: str) -> Gang | None:
        """Return the gang of a spec; None where it would be refused."""
        judgement = judge_submission(spec, self.project, in_force=self._in_force)
        try:
            judgement.require_acceptable()
            return self.build_gang(judgement, key)
        except (UserError, TooManyPods):
            return None

    def _raise_quota(self, gang: Gang) -> Iterator[Alternative]:
        """Yield the queues with as many more GPUs for the project as the gang wants. One query.

        The queue of a department without a quota of its own rises with its projects' sum. Without
        KAI nothing enforces quotas, so nothing comes of others.
        """
        if not self.project.cluster.can.has_kai:
            return
        wanted = Decimal(math.ceil(_count_devices(gang)))
        projects = cluster_state.load_queue_projects(self.project.cluster)
        own = next((each for each in projects if each.pk == self.project.pk), None)
        if own is None or own.gpu_quota is None or not wanted:
            return
        own.gpu_quota += wanted
        if own.gpu_limit is not None:
            own.gpu_limit = max(own.gpu_limit, own.gpu_quota)
        before = {queue.name: queue for queue in self.state.queues}
        raised = [
            queue
            for queue in cluster_state.build_queues(projects)
            if queue != before.get(queue.name)
        ]
        title = f"If the quota of {self.project.name} had {wanted:f} {_name_gpus(wanted)} more"
        self._offers["quota"] = Offer("quota", title, quota_of=self.project)
        yield Alternative("quota", gang, queues=raised)

    def _end_work(self, gang: Gang, blockers: Sequence[str]) -> Iterator[Alternative]:
        """Yield the end of work that runs: of what it waits for, then of the largest.

        One query.
        """
        chosen = _choose_running(self.state, gang, blockers)
        visible = Workload.objects.visible_to(self.user).filter(pk__in=chosen).order_by()
        rows = visible.values_list("pk", "name", "project__name")
        names = {str(pk): (name, of) for pk, name, of in rows}
        for key in chosen:
            name, of = names.get(key, ("", UNNAMED))
            title = f"If {name} ({of}) ended" if name else f"If work of {of} ended"
            offer = f"ended-{len(self._offers)}"
            self._offers[offer] = Offer(offer, title, ended=uuid.UUID(key) if name else None)
            yield Alternative(offer, gang, ended=key)

    def _go_elsewhere(self, spec: Spec, key: str) -> Iterator[Place]:
        """Yield the same submission in projects on other clusters where the person may launch."""
        projects = (
            list_permitted_projects(self.user, Verb.CREATE, Entity.WORKLOADS)
            .exclude(cluster=self.project.cluster_id)
            .select_related("cluster")
            .order_by("name")
        )
        finished_clusters: set[uuid.UUID] = set()
        place_count = tried = 0
        for project in projects[:MOST_PROJECTS]:
            if place_count == MOST_PLACES or tried == MOST_TRIES:
                return
            if project.cluster_id in finished_clusters:
                continue
            tried += 1
            try:
                place = self._build_place_elsewhere(project, spec, key)
            except CannotAsk:
                finished_clusters.add(project.cluster_id)
                continue
            if place is not None:
                finished_clusters.add(project.cluster_id)
                place_count += 1
                yield place

    def _build_place_elsewhere(self, project: Project, spec: Spec, key: str) -> Place | None:
        """Build the question of another project; None where it would be refused, wait for ever, or
        not be played.

        Raises CannotAsk.
        """
        if not has_named_objects(spec, project):
            return None
        other_spec = replace(
            spec, project=project.name, namespace=project.namespace, queue=project.queue
        )
        builder = _Builder(project, self.user)
        gang = None if builder.is_cut else builder.judge(other_spec, key)
        if gang is None:
            return None
        offer = f"project-{project.pk}"
        title = f"In project {project.name} on cluster {project.cluster.name}"
        self._offers[offer] = Offer(offer, title, project=project.pk, is_elsewhere=True)
        return builder.build_place([Alternative(offer, gang)])


def _load_state(cluster: Cluster, now: datetime) -> LoadedState:
    """Load the state of a cluster as forecasts play it. Raises CannotAsk."""
    if not cluster.is_enabled:
        raise CannotAsk("Its cluster is disabled.")
    seen_at = cluster.last_seen_at
    if cluster.unreachable_since is not None or seen_at is None or now - seen_at > STALE_AFTER:
        raise CannotAsk("Its cluster does not answer.")
    try:
        return load_played_state(cluster, now)
    except cluster_state.TooLarge as error:
        raise CannotAsk(TOO_LARGE) from error


def _build_shapes(cluster: Cluster) -> ShapeBuilder:
    """Build shapes by the nodes that take pods now. One query."""
    return ShapeBuilder(cluster_state.build_capacities(cluster_state.load_open_nodes(cluster)))


def _name_gpus(count: Decimal) -> str:
    return "GPU" if count == 1 else "GPUs"


def _choose_running(state: ClusterState, gang: Gang, blockers: Sequence[str]) -> Sequence[str]:
    """Return the ids of running workloads to end: what it waits for, then the project's largest."""
    running = {
        gang.key: -_count_devices(gang)
        for gang in state.gangs
        if any(pod.node for pod in gang.pods) and _is_id(gang.key)
    }
    own = {each.key for each in state.gangs if each.queue == gang.queue}
    largest = sorted(running, key=lambda key: (key not in own, running[key], key))
    running_blockers = [key for key in blockers if key in running]
    return list(dict.fromkeys([*running_blockers, *largest]))[:MOST_ENDED]


def _is_id(key: str) -> bool:
    """Return whether a gang is a workload's; that of its data workers has a suffix."""
    try:
        return str(uuid.UUID(key)) == key
    except ValueError:
        return False


def _count_devices(gang: Gang) -> Number:
    """Return how many devices the pods of a gang want, or have."""
    return sum(compute_charge(pod.shape, None).get(GPU, 0) for pod in gang.pods)

"""What a person, or `up`, does about clusters. The caller checks the permission; the database is
changed and the rest is queued.

`user` is the acting user for the audit log; None is Muster itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from clusters import connections, seams, tasks
from clusters.kube.access import BadKubeconfig, ClusterAccess
from clusters.metrics.sign_in import SignIn, SignInWay
from clusters.models import Cluster, ConnectionWay, PrometheusSignIn
from clusters.tasks import heartbeat
from console.errors import Clash, UserError
from projects import audit, project_removal
from projects.access import require
from projects.audit import Event
from projects.models import Project, User
from projects.permissions import Entity, Verb
from projects.scopes import cluster_scope, project_scope

CREDENTIAL_FIELDS = {
    ConnectionWay.KUBECONFIG: "kubeconfig",
    ConnectionWay.TOKEN: "server",
    ConnectionWay.INSIDE: "way",
}
"""The field of a form to which unusable credentials belong."""


def register(
    name: str,
    kubeconfig: str = "",
    *,
    way: str = ConnectionWay.KUBECONFIG,
    is_local: bool = False,
    user: User | None = None,
) -> Cluster:
    """Add a cluster. Raises UserError, naming the field, for unusable credentials and for a name
    that is taken.
    """
    access = _validate_access(way, kubeconfig, is_local)
    cluster = Cluster(
        name=name, server=access.server, way=way, kubeconfig=kubeconfig, is_local=is_local
    )
    if Cluster.objects.there().filter(name=name).exists():
        raise _build_name_clash(name)
    try:
        with transaction.atomic():
            cluster.save()
            after = {"server": cluster.server, "way": str(way), "kubeconfig": audit.CHANGED}
            _record(Event.CREATE, cluster, user, after=after)
    except IntegrityError:
        raise _build_name_clash(name) from None
    heartbeat.enqueue(str(cluster.pk))
    return cluster


def reconnect(
    cluster: Cluster,
    kubeconfig: str = "",
    *,
    way: str = ConnectionWay.KUBECONFIG,
    user: User | None = None,
    is_edit: bool = True,
) -> None:
    """Replace the credentials of the cluster.

    Without `is_edit` it is nobody's edit where address and way stay, as when the embedded cluster
    starts. Raises UserError for unusable ones, and NotAllowed for those of the cluster that Muster
    runs in.
    """
    if user is not None:
        require_way(cluster, way, user)
    access = _validate_access(way, kubeconfig, cluster.is_local)
    # All of it was found with the old credentials: steps may try again at once, and the heartbeat
    # probes the cluster anew.
    unknown = {"unreachable_since": None, "trouble": "", "probed_at": None, "permissions_at": None}
    before, after = audit.select_changes(
        {"server": cluster.server, "way": str(cluster.way)},
        {"server": access.server, "way": str(way), "kubeconfig": audit.CHANGED},
    )
    is_edit = is_edit or (access.server, way) != (cluster.server, cluster.way)
    with transaction.atomic():
        _update_cluster(
            cluster,
            is_edit=is_edit,
            server=access.server,
            way=way,
            kubeconfig=kubeconfig,
            **unknown,
        )
        _record(Event.UPDATE, cluster, user, before, after)
    heartbeat.enqueue(str(cluster.pk))


def require_way(cluster: Cluster, way: str, user: User) -> None:
    """Check that a user may connect a cluster in this way. Raises NotAllowed.

    Muster's own service account is no credential of one cluster's administrators: it is given out
    by who may add clusters.
    """
    if way == ConnectionWay.INSIDE and cluster.way != ConnectionWay.INSIDE:
        require(user, Verb.CREATE, Entity.CLUSTERS)


def rename(cluster: Cluster, name: str, *, user: User | None = None) -> None:
    """Rename the cluster in Muster; nothing in the cluster changes. Raises Clash where the name is
    taken.
    """
    before = cluster.name
    try:
        with transaction.atomic():
            _update_cluster(cluster, is_edit=True, name=name)
            _record(Event.UPDATE, cluster, user, {"name": before}, {"name": name})
    except IntegrityError:
        raise _build_name_clash(name) from None


def set_prometheus(
    cluster: Cluster,
    url: str,
    sign_in: SignIn | None,
    *,
    matcher: str = "",
    user: User | None = None,
) -> None:
    """Set the Prometheus of the cluster, and how Muster signs in to it; "" is none.

    All has been checked. None keeps the way of signing in that is stored. The audit log has the
    address, the matcher and the way, and no secret.
    """
    row = PrometheusSignIn.objects.filter(pk=cluster.pk).only("way").first()
    way = row.way if row is not None else SignInWay.NONE.value
    before = {
        "prometheus": cluster.prometheus_url,
        "prometheusMatcher": cluster.prometheus_matcher,
        "prometheusSignIn": way,
    }
    after = {
        "prometheus": url,
        "prometheusMatcher": matcher,
        "prometheusSignIn": way if sign_in is None else sign_in.way.value,
    }
    # Headers and authorities are kept of every way, and their end is a change, too.
    is_changed = sign_in is not None and (row is not None or sign_in != SignIn())
    if before == after and not is_changed:
        return
    with transaction.atomic():
        _update_cluster(cluster, is_edit=True, prometheus_url=url, prometheus_matcher=matcher)
        if sign_in is not None and (secrets := sign_in.to_text()):
            PrometheusSignIn.objects.update_or_create(
                cluster=cluster, defaults={"way": sign_in.way.value, "secrets": secrets}
            )
        elif sign_in is not None:
            PrometheusSignIn.objects.filter(pk=cluster.pk).delete()
        _record(Event.UPDATE, cluster, user, before, after)


def find_sign_in_way(cluster: Cluster) -> str:
    """Return the way of signing in to the cluster's Prometheus that is stored; "" for none."""
    ways = PrometheusSignIn.objects.filter(pk=cluster.pk).values_list("way", flat=True)
    return ways.first() or ""


def request_check(cluster: Cluster) -> None:
    """Queue a check of what the cluster can do and what we may do there. Raises Clash while it is
    disabled.

    `check_requested_at` is set until the check is done.
    """
    if not cluster.is_enabled:
        raise Clash(f"{cluster.name} is disabled: nothing is asked of it. Enable it first.")
    _update_cluster(cluster, check_requested_at=timezone.now())
    tasks.check.enqueue(str(cluster.pk))


def disable(cluster: Cluster, *, user: User | None = None) -> None:
    """Stop launching in, following and asking the cluster until it is enabled. What runs there goes
    on.
    """
    with transaction.atomic():
        _update_cluster(
            cluster, is_enabled=False, disabled_at=timezone.now(), check_requested_at=None
        )
        _record(Event.UPDATE, cluster, user, {"enabled": True}, {"enabled": False})


def enable(cluster: Cluster, *, user: User | None = None) -> None:
    """Use the cluster again; the heartbeat finds out what happened there meanwhile."""
    # Whether it answers is not known any more.
    with transaction.atomic():
        _update_cluster(
            cluster, is_enabled=True, disabled_at=None, unreachable_since=None, trouble=""
        )
        _record(Event.UPDATE, cluster, user, {"enabled": False}, {"enabled": True})
    heartbeat.enqueue(str(cluster.pk))


@dataclass(frozen=True, slots=True)
class ClusterDependents:
    """What depends on a cluster: its projects, the workloads that it has not released, and how many
    of these are at work.
    """

    projects: Sequence[str]
    workloads: int
    at_work: int

    @property
    def is_blocking(self) -> bool:
        """Whether the cluster can only be removed by force."""
        return bool(self.projects or self.workloads)

    @property
    def blocking_reason(self) -> str:
        """Why it cannot be removed without force, and what to do, in a sentence or two; "" where it
        can.
        """
        if not self.is_blocking:
            return ""
        dependents = _count_noun(len(self.projects), "project")
        if self.workloads:
            dependents += (
                f" and {_count_noun(self.workloads, 'workload')}, {self.at_work or 'none'} of them "
                "at work"
            )
        return (
            f"It has {dependents}. Delete its projects first: they then leave nothing behind in "
            "the cluster."
        )

    @property
    def forced_effects(self) -> str:
        """What happens where it is removed by force."""
        effects = []
        if self.projects:
            effects.append(
                f"Deleted here: {_count_noun(len(self.projects), 'project')}, with roles and "
                "service accounts."
            )
        if self.workloads:
            effects.append(
                "Listed under Deleted, with history and the logs that are here: "
                f"{_count_noun(self.workloads, 'workload')}."
            )
        effects.append(
            "What still runs in the cluster goes on there, and nobody here follows or stops it."
        )
        return " ".join(effects)


def load_dependents(cluster: Cluster) -> ClusterDependents:
    """Return what depends on a cluster. A few queries."""
    workloads = seams.CLUSTER_WORKLOADS.get()
    names = (
        Project.objects.filter(cluster=cluster, removed_at=None)
        .order_by("name")
        .values_list("name", flat=True)
    )
    return ClusterDependents(
        list(names),
        workloads.count_unreleased_workloads(cluster.pk),
        workloads.count_active_workloads(cluster.pk),
    )


def remove(cluster: Cluster, user: User, *, force: bool = False) -> None:
    """Remove a cluster and its credentials. Nothing is asked of the cluster.

    Raises Clash while anything depends on it, unless `force`: then that ends here, and goes on in
    the cluster (see `ClusterDependents.forced_effects`). Raises NotAllowed for a user who may not
    delete its projects.
    """
    with transaction.atomic():
        if not Cluster.objects.there().select_for_update().filter(pk=cluster.pk).exists():
            # Another request has removed it meanwhile.
            return
        dependents = load_dependents(cluster)
        if dependents.is_blocking and not force:
            text = (
                f"{cluster.name} cannot be removed. {dependents.blocking_reason} To remove it all "
                f"the same, force it. {dependents.forced_effects}"
            )
            raise Clash(text, field="force")
        # Before anything ends: refused in the midst, it would stay disabled, without its workloads.
        for project in Project.objects.there().filter(cluster=cluster):
            require(user, Verb.DELETE, Entity.PROJECTS, project_scope(project))
        # Disabled and committed first: a new project locks the row and finds it disabled, and
        # nothing is launched there, so nothing is added to what is deleted below.
        Cluster.objects.filter(pk=cluster.pk).update(is_enabled=False, disabled_at=timezone.now())
    why = (
        f"The cluster {cluster.name} was removed from Muster. What still runs there is not "
        "followed any more."
    )
    workloads = seams.CLUSTER_WORKLOADS.get()
    workloads.abandon_workloads(cluster.pk, why, user)
    for project in Project.objects.there().filter(cluster=cluster):
        project_removal.remove_project(project, user)
    with transaction.atomic():
        # An asset that is being written for the cluster holds the row: it comes before, and is
        # deleted, or finds no cluster.
        list(Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).values_list("pk"))
        # Recorded before the row is deleted, and its name with it.
        before = {
            "server": cluster.server,
            "projects": list(dependents.projects),
            "workloads": dependents.workloads,
        }
        _record(Event.DELETE, cluster, user, before=before)
        project_removal.delete_scope_contents(cluster_scope(cluster.pk), user)
        Project.objects.leaving().filter(cluster=cluster).update(
            removed_at=timezone.now(), sync_error=""
        )
        has_projects = Project.objects.filter(cluster=cluster).exists()
        if has_projects or workloads.has_workload_history(cluster.pk):
            cluster.nodes.all().delete()
            PrometheusSignIn.objects.filter(pk=cluster.pk).delete()
            Cluster.objects.filter(pk=cluster.pk).update(
                removed_at=timezone.now(), kubeconfig="", capabilities={}, permissions={}
            )
        else:
            cluster.delete()


def _record(
    event: Event, cluster: Cluster, user: User | None, before: Any = None, after: Any = None
) -> None:
    audit.record(
        event,
        "cluster",
        by=user,
        id=cluster.pk,
        name=cluster.name,
        scope=cluster_scope(cluster.pk),
        before=before,
        after=after,
    )


def _validate_access(way: str, kubeconfig: str, is_local: bool) -> ClusterAccess:
    try:
        access = connections.build_access(way, kubeconfig)
        if way != ConnectionWay.INSIDE:
            connections.address_policy(is_local=is_local).check_server(access.server)
    except BadKubeconfig as error:
        raise UserError(str(error), field=CREDENTIAL_FIELDS[ConnectionWay(way)]) from error
    return access


def _update_cluster(cluster: Cluster, *, is_edit: bool = False, **values: Any) -> None:
    """Write these fields; an edit raises the version. Raises Clash for a cluster that was removed
    meanwhile: it keeps no credentials, and gets none.
    """
    # In the database: two who change it at once raise it twice.
    raised = {"edit_version": F("edit_version") + 1} if is_edit else {}
    if not Cluster.objects.there().filter(pk=cluster.pk).update(**values, **raised):
        raise Clash(
            f"{cluster.name} was removed by somebody else meanwhile. To use it again, add it."
        )
    for name, value in values.items():
        setattr(cluster, name, value)
    if is_edit:
        cluster.refresh_from_db(fields=["edit_version"])


def _build_name_clash(name: str) -> Clash:
    return Clash(
        f"A cluster named {name} is registered already. Choose another name.", field="name"
    )


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

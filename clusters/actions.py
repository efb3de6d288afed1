"""What a person, or `up`, does about clusters. Who may is decided by the caller; the database is
changed and the rest is asked for.

`by` is who does it, as the audit log has it; None is Muster itself.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from clusters import connections, tasks
from clusters.kube.access import BadKubeconfig, ClusterAccess
from clusters.models import Cluster, ConnectionWay
from clusters.tasks import heartbeat
from console.errors import Clash, UserError
from projects import audit, project_removal
from projects.audit import Event
from projects.models import Project, User
from projects.scopes import cluster_scope

CREDENTIAL_FIELDS = {
    ConnectionWay.KUBECONFIG: "kubeconfig",
    ConnectionWay.TOKEN: "server",
    ConnectionWay.INSIDE: "way",
}
"""Which field of a form credentials that cannot be used belong to."""


def register(
    name: str,
    kubeconfig: str = "",
    *,
    way: str = ConnectionWay.KUBECONFIG,
    is_local: bool = False,
    user: User | None = None,
) -> Cluster:
    """A new cluster. Raises UserError, naming the field, for credentials that cannot be used and
    for a name that is taken.
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
) -> None:
    """Reach the cluster with other credentials from now on. Raises UserError for those that cannot
    be used.
    """
    access = _validate_access(way, kubeconfig, cluster.is_local)
    # What was known of it was known through the other ones: steps may try again at once, and what
    # it can do is found out anew.
    unknown = {"unreachable_since": None, "trouble": "", "probed_at": None, "permissions_at": None}
    before, after = audit.select_changes(
        {"server": cluster.server, "way": str(cluster.way)},
        {"server": access.server, "way": str(way), "kubeconfig": audit.CHANGED},
    )
    with transaction.atomic():
        _update_cluster(cluster, server=access.server, way=way, kubeconfig=kubeconfig, **unknown)
        _record(Event.UPDATE, cluster, user, before, after)
    heartbeat.enqueue(str(cluster.pk))


def rename(cluster: Cluster, name: str, *, user: User | None = None) -> None:
    """Show it under another name; nothing in it is called after that. Raises Clash where the name
    is taken.
    """
    before = cluster.name
    try:
        with transaction.atomic():
            _update_cluster(cluster, name=name)
            _record(Event.UPDATE, cluster, user, {"name": before}, {"name": name})
    except IntegrityError:
        raise _build_name_clash(name) from None


def set_prometheus_url(cluster: Cluster, prometheus_url: str, *, user: User | None = None) -> None:
    """Ask this Prometheus how its GPUs are used; "" asks none. The address has been judged."""
    before = cluster.prometheus_url
    with transaction.atomic():
        _update_cluster(cluster, prometheus_url=prometheus_url)
        _record(Event.UPDATE, cluster, user, {"prometheus": before}, {"prometheus": prometheus_url})


def request_check(cluster: Cluster) -> None:
    """Have it found out what the cluster can do and lets us do; `check_asked_at` is set until it
    is. Raises Clash while it is disabled.
    """
    if not cluster.is_enabled:
        raise Clash(f"{cluster.name} is disabled: nothing is asked of it. Enable it first.")
    _update_cluster(cluster, check_asked_at=timezone.now())
    tasks.check.enqueue(str(cluster.pk))


def disable(cluster: Cluster, *, user: User | None = None) -> None:
    """Launch nothing there, and neither follow nor ask it, until it is enabled. What runs there
    goes on.
    """
    with transaction.atomic():
        _update_cluster(cluster, is_enabled=False, disabled_at=timezone.now(), check_asked_at=None)
        _record(Event.UPDATE, cluster, user, {"enabled": True}, {"enabled": False})


def enable(cluster: Cluster, *, user: User | None = None) -> None:
    """Use it again: what happened there meanwhile is found out."""
    # Whether it answers is not known any more.
    with transaction.atomic():
        _update_cluster(
            cluster, is_enabled=True, disabled_at=None, unreachable_since=None, trouble=""
        )
        _record(Event.UPDATE, cluster, user, {"enabled": False}, {"enabled": True})
    heartbeat.enqueue(str(cluster.pk))


@dataclass(frozen=True, slots=True)
class ClusterDependents:
    """What hangs on a cluster: its projects, the workloads that it has not let go of, and those of
    them that are at work.
    """

    projects: Sequence[str]
    workloads: int
    at_work: int

    @property
    def is_blocking(self) -> bool:
        """Whether the cluster is removed by force only."""
        return bool(self.projects or self.workloads)

    @property
    def blocking_reason(self) -> str:
        """Why it is not removed without force, and what to do, in a sentence or two; "" where it
        is.
        """
        if not self.is_blocking:
            return ""
        has = _count_noun(len(self.projects), "project")
        if self.workloads:
            has += (
                f" and {_count_noun(self.workloads, 'workload')}, {self.at_work or 'none'} of them "
                "at work"
            )
        return (
            f"It has {has}. Delete its projects first: they then leave nothing behind in the "
            "cluster."
        )

    @property
    def forced_effects(self) -> str:
        """What happens where it is removed all the same."""
        over = []
        if self.projects:
            over.append(
                f"Deleted here: {_count_noun(len(self.projects), 'project')}, with roles and "
                "service accounts."
            )
        if self.workloads:
            over.append(
                "Listed under Deleted, with history and the logs that are here: "
                f"{_count_noun(self.workloads, 'workload')}."
            )
        over.append(
            "What still runs in the cluster goes on there, and nobody here follows or stops it."
        )
        return " ".join(over)


def load_dependents(cluster: Cluster) -> ClusterDependents:
    """What stands against removing a cluster. A few queries."""
    names = (
        Project.objects.filter(cluster=cluster, removed_at=None)
        .order_by("name")
        .values_list("name", flat=True)
    )
    return ClusterDependents(
        list(names),
        _call_cluster_removal("there", cluster.pk),
        _call_cluster_removal("at_work", cluster.pk),
    )


def remove(cluster: Cluster, user: User, *, force: bool = False) -> None:
    """Forget a cluster and its credentials. Nothing is asked of the cluster.

    Raises Clash while anything hangs on it, unless `force`: then that ends here, and goes on in the
    cluster (see `Hanging.by_force`).
    """
    with transaction.atomic():
        if not Cluster.objects.there().select_for_update().filter(pk=cluster.pk).exists():
            # Somebody else was faster.
            return
        hangs = load_dependents(cluster)
        if hangs.is_blocking and not force:
            told = (
                f"{cluster.name} cannot be removed. {hangs.blocking_reason} To remove it all the "
                f"same, force it. {hangs.forced_effects}"
            )
            raise Clash(told, field="force")
        # First of all: from now on nothing is launched there, and no project is made.
        Cluster.objects.filter(pk=cluster.pk).update(is_enabled=False, disabled_at=timezone.now())
    why = (
        f"The cluster {cluster.name} was removed from Muster. What still runs there is not "
        "followed any more."
    )
    _call_cluster_removal("abandon", cluster.pk, why, user)
    for project in Project.objects.there().filter(cluster=cluster):
        project_removal.remove_project(project, user)
    with transaction.atomic():
        # Before the row goes, and with it its name.
        before = {
            "server": cluster.server,
            "projects": list(hangs.projects),
            "workloads": hangs.workloads,
        }
        _record(Event.DELETE, cluster, user, before=before)
        project_removal.delete_scope_contents(cluster_scope(cluster.pk), user)
        Project.objects.leaving().filter(cluster=cluster).update(
            removed_at=timezone.now(), sync_error=""
        )
        if Project.objects.filter(cluster=cluster).exists() or _call_cluster_removal(
            "is_remembered", cluster.pk
        ):
            cluster.nodes.all().delete()
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


def _call_cluster_removal(what: str, cluster_id: uuid.UUID, *more: Any) -> Any:
    return import_string(f"{settings.ABANDONING}.{what}")(cluster_id, *more)


def _validate_access(way: str, kubeconfig: str, is_local: bool) -> ClusterAccess:
    try:
        access = connections.build_access(way, kubeconfig)
        if way != ConnectionWay.INSIDE:
            connections.address_policy(is_local=is_local).check_server(access.server)
    except BadKubeconfig as error:
        raise UserError(str(error), field=CREDENTIAL_FIELDS[ConnectionWay(way)]) from error
    return access


def _update_cluster(cluster: Cluster, **values: Any) -> None:
    """Write these fields. Raises Clash for a cluster that was removed meanwhile: it keeps no
    credentials, and gets none.
    """
    if not Cluster.objects.there().filter(pk=cluster.pk).update(**values):
        raise Clash(
            f"{cluster.name} was removed by somebody else meanwhile. To use it again, add it."
        )
    for name, value in values.items():
        setattr(cluster, name, value)


def _build_name_clash(name: str) -> Clash:
    return Clash(
        f"A cluster named {name} is registered already. Choose another name.", field="name"
    )


def _count_noun(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

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
from clusters.kube.access import Access, BadKubeconfig
from clusters.models import Cluster, Way
from clusters.tasks import heartbeat
from console.errors import Clash, UserError
from projects import audit, leaving
from projects.audit import Event
from projects.models import Project, User
from projects.scopes import of_cluster

FIELDS = {Way.KUBECONFIG: "kubeconfig", Way.TOKEN: "server", Way.INSIDE: "way"}
"""Which field of a form credentials that cannot be used belong to."""


def register(
    name: str,
    kubeconfig: str = "",
    *,
    way: str = Way.KUBECONFIG,
    is_local: bool = False,
    by: User | None = None,
) -> Cluster:
    """A new cluster. Raises UserError, naming the field, for credentials that cannot be used and
    for a name that is taken.
    """
    access = _access(way, kubeconfig, is_local)
    cluster = Cluster(
        name=name, server=access.server, way=way, kubeconfig=kubeconfig, is_local=is_local
    )
    if Cluster.objects.there().filter(name=name).exists():
        raise _taken(name)
    try:
        with transaction.atomic():
            cluster.save()
            after = {"server": cluster.server, "way": str(way), "kubeconfig": audit.CHANGED}
            _record(Event.CREATE, cluster, by, after=after)
    except IntegrityError:
        raise _taken(name) from None
    heartbeat.soon(str(cluster.pk))
    return cluster


def reconnect(
    cluster: Cluster, kubeconfig: str = "", *, way: str = Way.KUBECONFIG, by: User | None = None
) -> None:
    """Reach the cluster with other credentials from now on. Raises UserError for those that cannot
    be used.
    """
    access = _access(way, kubeconfig, cluster.is_local)
    # What was known of it was known through the other ones: steps may try again at once, and what
    # it can do is found out anew.
    unknown = {"unreachable_since": None, "trouble": "", "probed_at": None, "permissions_at": None}
    before, after = audit.changed(
        {"server": cluster.server, "way": str(cluster.way)},
        {"server": access.server, "way": str(way), "kubeconfig": audit.CHANGED},
    )
    with transaction.atomic():
        _change(cluster, server=access.server, way=way, kubeconfig=kubeconfig, **unknown)
        _record(Event.UPDATE, cluster, by, before, after)
    heartbeat.soon(str(cluster.pk))


def rename(cluster: Cluster, name: str, *, by: User | None = None) -> None:
    """Show it under another name; nothing in it is called after that. Raises Clash where the name
    is taken.
    """
    before = cluster.name
    try:
        with transaction.atomic():
            _change(cluster, name=name)
            _record(Event.UPDATE, cluster, by, {"name": before}, {"name": name})
    except IntegrityError:
        raise _taken(name) from None


def measure(cluster: Cluster, prometheus_url: str, *, by: User | None = None) -> None:
    """Ask this Prometheus how its GPUs are used; "" asks none. The address has been judged."""
    before = cluster.prometheus_url
    with transaction.atomic():
        _change(cluster, prometheus_url=prometheus_url)
        _record(Event.UPDATE, cluster, by, {"prometheus": before}, {"prometheus": prometheus_url})


def check(cluster: Cluster) -> None:
    """Have it found out what the cluster can do and lets us do; `check_asked_at` is set until it
    is. Raises Clash while it is disabled.
    """
    if not cluster.is_enabled:
        raise Clash(f"{cluster.name} is disabled: nothing is asked of it. Enable it first.")
    _change(cluster, check_asked_at=timezone.now())
    tasks.check.soon(str(cluster.pk))


def disable(cluster: Cluster, *, by: User | None = None) -> None:
    """Launch nothing there, and neither follow nor ask it, until it is enabled. What runs there
    goes on.
    """
    with transaction.atomic():
        _change(cluster, is_enabled=False, disabled_at=timezone.now(), check_asked_at=None)
        _record(Event.UPDATE, cluster, by, {"enabled": True}, {"enabled": False})


def enable(cluster: Cluster, *, by: User | None = None) -> None:
    """Use it again: what happened there meanwhile is found out."""
    # Whether it answers is not known any more.
    with transaction.atomic():
        _change(cluster, is_enabled=True, disabled_at=None, unreachable_since=None, trouble="")
        _record(Event.UPDATE, cluster, by, {"enabled": False}, {"enabled": True})
    heartbeat.soon(str(cluster.pk))


@dataclass(frozen=True, slots=True)
class Hanging:
    """What hangs on a cluster: its projects, the workloads that it has not let go of, and those of
    them that are at work.
    """

    projects: Sequence[str]
    workloads: int
    at_work: int

    @property
    def is_in_the_way(self) -> bool:
        """Whether the cluster is removed by force only."""
        return bool(self.projects or self.workloads)

    @property
    def why(self) -> str:
        """Why it is not removed without force, and what to do, in a sentence or two; "" where it
        is.
        """
        if not self.is_in_the_way:
            return ""
        has = _counted(len(self.projects), "project")
        if self.workloads:
            has += (
                f" and {_counted(self.workloads, 'workload')}, {self.at_work or 'none'} of them at "
                "work"
            )
        return (
            f"It has {has}. Delete its projects first: they then leave nothing behind in the "
            "cluster."
        )

    @property
    def by_force(self) -> str:
        """What happens where it is removed all the same."""
        over = []
        if self.projects:
            over.append(
                f"Deleted here: {_counted(len(self.projects), 'project')}, with roles and "
                "service accounts."
            )
        if self.workloads:
            over.append(
                "Listed under Deleted, with history and the logs that are here: "
                f"{_counted(self.workloads, 'workload')}."
            )
        over.append(
            "What still runs in the cluster goes on there, and nobody here follows or stops it."
        )
        return " ".join(over)


def hanging(cluster: Cluster) -> Hanging:
    """What stands against removing a cluster. A few queries."""
    names = (
        Project.objects.filter(cluster=cluster, removed_at=None)
        .order_by("name")
        .values_list("name", flat=True)
    )
    return Hanging(list(names), _above("there", cluster.pk), _above("at_work", cluster.pk))


def remove(cluster: Cluster, by: User, *, force: bool = False) -> None:
    """Forget a cluster and its credentials. Nothing is asked of the cluster.

    Raises Clash while anything hangs on it, unless `force`: then that ends here, and goes on in the
    cluster (see `Hanging.by_force`).
    """
    with transaction.atomic():
        if not Cluster.objects.there().select_for_update().filter(pk=cluster.pk).exists():
            # Somebody else was faster.
            return
        hangs = hanging(cluster)
        if hangs.is_in_the_way and not force:
            told = (
                f"{cluster.name} cannot be removed. {hangs.why} To remove it all the same, force "
                f"it. {hangs.by_force}"
            )
            raise Clash(told, field="force")
        # First of all: from now on nothing is launched there, and no project is made.
        Cluster.objects.filter(pk=cluster.pk).update(is_enabled=False, disabled_at=timezone.now())
    why = (
        f"The cluster {cluster.name} was removed from Muster. What still runs there is not "
        "followed any more."
    )
    _above("abandon", cluster.pk, why, by)
    for project in Project.objects.there().filter(cluster=cluster):
        leaving.leave(project, by)
    with transaction.atomic():
        # Before the row goes, and with it its name.
        before = {
            "server": cluster.server,
            "projects": list(hangs.projects),
            "workloads": hangs.workloads,
        }
        _record(Event.DELETE, cluster, by, before=before)
        leaving.end_at(of_cluster(cluster.pk), by)
        Project.objects.leaving().filter(cluster=cluster).update(
            removed_at=timezone.now(), sync_error=""
        )
        if Project.objects.filter(cluster=cluster).exists() or _above("is_remembered", cluster.pk):
            cluster.nodes.all().delete()
            Cluster.objects.filter(pk=cluster.pk).update(
                removed_at=timezone.now(), kubeconfig="", capabilities={}, permissions={}
            )
        else:
            cluster.delete()


def _record(
    event: Event, cluster: Cluster, by: User | None, before: Any = None, after: Any = None
) -> None:
    audit.record(
        event,
        "cluster",
        by=by,
        id=cluster.pk,
        name=cluster.name,
        scope=of_cluster(cluster.pk),
        before=before,
        after=after,
    )


def _above(what: str, cluster_id: uuid.UUID, *more: Any) -> Any:
    return import_string(f"{settings.ABANDONING}.{what}")(cluster_id, *more)


def _access(way: str, kubeconfig: str, is_local: bool) -> Access:
    try:
        access = connections.access_of(way, kubeconfig)
        if way != Way.INSIDE:
            connections.reach(is_local=is_local).check(access.server)
    except BadKubeconfig as error:
        raise UserError(str(error), field=FIELDS[Way(way)]) from error
    return access


def _change(cluster: Cluster, **values: Any) -> None:
    """Write these fields. Raises Clash for a cluster that was removed meanwhile: it keeps no
    credentials, and gets none.
    """
    if not Cluster.objects.there().filter(pk=cluster.pk).update(**values):
        raise Clash(
            f"{cluster.name} was removed by somebody else meanwhile. To use it again, add it."
        )
    for name, value in values.items():
        setattr(cluster, name, value)


def _taken(name: str) -> Clash:
    return Clash(
        f"A cluster named {name} is registered already. Choose another name.", field="name"
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

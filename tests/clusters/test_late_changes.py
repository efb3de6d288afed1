"""Changes that come too late, or are refused in part: nothing is changed, and it is said."""

import threading
import time
from typing import Any

import pytest
from django.db import connection, connections
from django.http import Http404
from django.test import Client
from django.utils import timezone

from clusters import actions as cluster_actions
from clusters import node_pools
from clusters.forms import ProjectChangeForm, ProjectForm
from clusters.models import Cluster, NodePool
from clusters.node_pools import NewNodePoolForm, NodePoolForm
from console.errors import Clash, NotAllowed
from projects import actions, departments, project_removal
from projects.models import AuditEntry, Department, Project, ServiceAccount
from projects.quotas import DepartmentForm
from tests.api.calling import Caller
from tests.cast import NOWHERE, Cast
from tests.projects.editing import edit

pytestmark = pytest.mark.django_db

MOST_SECONDS = 60


def wait_until_blocked(thread: threading.Thread) -> None:
    """Wait until a thread waits for this connection's transaction, or ends without."""
    deadline = time.monotonic() + MOST_SECONDS
    # Other databases of the server have waiters, too. pg_stat_activity would tell them apart, but
    # it keeps, until the transaction ends, the connections that it has shown once.
    waiters = "SELECT 1 FROM pg_locks WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
    with connection.cursor() as cursor:
        while thread.is_alive():
            assert time.monotonic() < deadline, "The thread neither waits nor ends."
            cursor.execute(waiters)
            if cursor.fetchone():
                return


def add_pool(cluster: Cluster) -> NodePool:
    return NodePool.objects.create(name="big", cluster=cluster, label_key="a", label_value="b")


def change_project(cast: Cast, **values: Any) -> ProjectChangeForm:
    """Return the valid form of a change of a project."""
    team = cast.team_b
    form = ProjectChangeForm(ProjectChangeForm.values(team) | values, user=cast.alice, row=team)
    assert form.is_valid(), form.errors
    return form


def test_a_deleted_department_is_neither_changed_nor_deleted_again(cast: Cast) -> None:
    stale = Department.objects.create(name="other")
    form = DepartmentForm(DepartmentForm.values(stale), row=stale)
    assert form.is_valid()
    departments.delete(Department.objects.get(pk=stale.pk), cast.alice)
    with pytest.raises(Http404):
        departments.change(stale, form, cast.alice)
    with pytest.raises(Http404):
        departments.delete(stale, cast.alice)


def test_a_deleted_node_pool_is_neither_changed_nor_deleted_again(cast: Cast) -> None:
    stale = add_pool(cast.cluster)
    form = NodePoolForm(NodePoolForm.values(stale), row=stale)
    assert form.is_valid()
    node_pools.delete(NodePool.objects.get(pk=stale.pk), cast.alice)
    with pytest.raises(Http404):
        node_pools.change(stale, form, cast.alice)
    with pytest.raises(Http404):
        node_pools.delete(stale, cast.alice)


def test_a_deleted_project_is_not_changed(cast: Cast) -> None:
    form = change_project(cast)
    project_removal.remove_project(Project.objects.get(pk=cast.team_b.pk), cast.alice)
    with pytest.raises(Http404):
        form.save()


@pytest.mark.parametrize("is_new", [False, True])
def test_a_project_gets_no_pool_that_was_deleted_meanwhile(cast: Cast, is_new: bool) -> None:
    pool = add_pool(cast.cluster)
    chosen = {"node_pools": [str(pool.pk)]}
    form: ProjectChangeForm = change_project(cast, **chosen)
    if is_new:
        place = {"name": "new", "department": "research", "cluster": str(cast.cluster.pk)}
        form = ProjectForm(place | {"gpu_quota": "1"} | chosen, user=cast.alice)
        assert form.is_valid(), form.errors
    node_pools.delete(pool, cast.alice)
    with pytest.raises(Clash, match="One of the node pools was deleted") as refusal:
        form.save()
    assert refusal.value.field == "node_pools"
    assert not Project.objects.filter(name="new").exists()


def test_a_cluster_that_was_removed_meanwhile_gets_no_pool(cast: Cast) -> None:
    there = Cluster.objects.create(name="there", server="https://127.0.0.1:1", kubeconfig=NOWHERE)
    label = {"label_key": "a", "label_value": "b"}
    form = NewNodePoolForm({"name": "big", "cluster": str(there.pk)} | label, user=cast.alice)
    assert form.is_valid(), form.errors
    cluster_actions.remove(Cluster.objects.get(pk=there.pk), cast.alice)
    with pytest.raises(Clash, match="The cluster was removed meanwhile"):
        node_pools.create(form, cast.alice)


def test_a_deleted_service_account_gets_no_secret_and_is_deleted_once(cast: Cast) -> None:
    made, _ = actions.create_service_account(cast.team_a, "program", by=cast.alice)
    first, second = (
        ServiceAccount.objects.select_related("user").get(pk=made.pk) for _ in range(2)
    )
    actions.delete_service_account(made, cast.alice)
    with pytest.raises(Http404):
        actions.rotate_secret(first, cast.alice)
    for enabled in (True, False):
        with pytest.raises(Http404, match="not there any more"):
            actions.set_enabled(first, enabled, cast.alice)
    actions.delete_service_account(second, cast.alice)
    entries = AuditEntry.objects.filter(entity="service-account", event="delete")
    assert entries.count() == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_no_project_goes_to_a_department_while_that_is_deleted(cast: Cast) -> None:
    other = Department.objects.create(name="other")
    # For its history the department keeps its row.
    Project.objects.create(
        name="past",
        department=other,
        cluster=cast.cluster,
        namespace="past",
        queue="past",
        deleted_at=timezone.now(),
        removed_at=timezone.now(),
    )
    form = change_project(cast, department="other")

    def move() -> None:
        try:
            form.save()
        finally:
            connections.close_all()

    moving = threading.Thread(target=move)

    def start_move(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('INSERT INTO "projects_auditentry"') and not moving.ident:
            moving.start()
            wait_until_blocked(moving)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(start_move):
        departments.delete(other, cast.alice)
    moving.join(MOST_SECONDS)
    assert not moving.is_alive()
    department = Project.objects.get(pk=cast.team_b.pk).department
    assert (department.name, department.deleted_at) == ("other", None)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_new", [False, True])
def test_two_who_make_the_same_department_at_once_are_told_so(cast: Cast, is_new: bool) -> None:
    first: ProjectChangeForm = change_project(cast, department="new")
    place = {"name": "second", "department": "new", "cluster": str(cast.cluster.pk)}
    second: ProjectChangeForm = ProjectForm(place | {"gpu_quota": "1"}, user=cast.alice)
    assert second.is_valid(), second.errors
    if not is_new:
        team = cast.team_a
        values = ProjectChangeForm.values(team) | {"department": "new"}
        second = ProjectChangeForm(values, user=cast.alice, row=team)
        assert second.is_valid(), second.errors
    refusals: list[Clash] = []

    def save_second() -> None:
        try:
            second.save()
        except Clash as refusal:
            refusals.append(refusal)
        finally:
            connections.close_all()

    saving = threading.Thread(target=save_second)

    def start_second(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('INSERT INTO "projects_auditentry"') and not saving.ident:
            saving.start()
            wait_until_blocked(saving)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(start_second):
        first.save()
    saving.join(MOST_SECONDS)
    assert not saving.is_alive()
    [refusal] = refusals
    assert refusal.field == "department"
    assert "Save again to put the project there" in refusal.text
    assert Department.objects.filter(name="new").count() == 1
    second.save()
    assert Department.objects.get(name="new").projects.count() == 2


@pytest.mark.parametrize("is_page", [False, True])
def test_a_change_of_a_cluster_that_is_refused_in_part_changes_nothing(
    cast: Cast, client: Client, monkeypatch: pytest.MonkeyPatch, is_page: bool
) -> None:
    def refuse(*_: object) -> None:
        raise NotAllowed("Another way is for others to give.")

    monkeypatch.setattr(cluster_actions, "require_way", refuse)
    change = {"name": "renamed", "server": "https://203.0.113.7:6443", "token": "secret"}
    if is_page:
        client.force_login(cast.alice)
        answer = edit(client, f"/clusters/{cast.cluster.pk}/edit", change | {"way": "token"})
        assert answer.status_code == 422
    else:
        Caller(cast.alice)("PATCH", f"/clusters/{cast.cluster.pk}", change, status=403)
    assert Cluster.objects.get().name == "here"
    assert not AuditEntry.objects.filter(entity="cluster", event="update").exists()

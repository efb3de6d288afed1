"""Changes over REST that keep what a body does not say, while somebody else changes the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import connection

from clusters.models import NodePool
from projects.api.merging import MAX_TRIES
from projects.models import AuditEntry
from tests.api.calling import Caller, a_body
from tests.cast import Cast

Body = dict[str, Any]
QUOTA = {"nodePool": {"name": "default"}, "gpu": {"deserved": 3}}
POLICY = "/api/v2/policy/distributed"


@contextmanager
def before_each_lock(table: str, act: Callable[[], object], times: int) -> Iterator[None]:
    """Act, so many times, after a table was read and before the next transaction begins."""
    was_read, is_acting, left = False, False, times

    def watch(execute: Callable[..., Any], sql: str, *more: Any) -> Any:
        nonlocal was_read, is_acting, left
        if not is_acting and was_read and left and sql.startswith("SAVEPOINT"):
            is_acting, was_read, left = True, False, left - 1
            act()
            is_acting = False
        elif not is_acting:
            was_read |= f'FROM "{table}"' in sql
        return execute(sql, *more)

    with connection.execute_wrapper(watch):
        yield
    assert not left, "there was no such transaction"


@dataclass(frozen=True)
class Changed:
    """Something that two change at once: its address, its table, and what each of them sends."""

    address: str
    table: str
    first: Body
    second: Body
    second_method: str = "PATCH"
    second_address: str = ""


def make_department(cast: Cast) -> Changed:
    at = f"/org-unit/departments/{cast.research.pk}"
    return Changed(at, "projects_department", {"description": "x"}, {"resources": [QUOTA]})


def make_project(cast: Cast) -> Changed:
    at = f"/org-unit/projects/{cast.team_a.pk}"
    return Changed(at, "projects_project", {"description": "x"}, {"resources": [QUOTA]})


def make_project_and_its_quota(cast: Cast) -> Changed:
    at = f"/org-unit/projects/{cast.team_a.pk}"
    first = {"description": "x"}
    return Changed(at, "projects_project", first, {"resources": [QUOTA]}, "PUT", f"{at}/resources")


def make_node_pool(cast: Cast) -> Changed:
    pool = NodePool.objects.create(cluster=cast.cluster, name="fast", label_key="gpu")
    first, second = {"description": "x"}, {"labelValue": "h200"}
    return Changed(f"/node-pools/{pool.pk}", "clusters_nodepool", first, second)


def make_asset(cast: Cast) -> Changed:
    body = {"meta": {"name": "small", "scope": "tenant"}, "spec": {"gpuDevicesRequest": 1}}
    key = Caller(cast.alice)("POST", "/asset/compute", body, 202)["meta"]["id"]
    first, second = {"meta": {"description": "x"}}, {"spec": {"gpuDevicesRequest": 4}}
    return Changed(f"/asset/compute/{key}", "environments_computeresource", first, second)


def make_template(cast: Cast) -> Changed:
    spec = a_body(cast)["spec"]
    body = {"meta": {"name": "mine", "scope": "tenant"}, "spec": spec}
    key = Caller(cast.alice)("POST", "/workload-templates/distributed", body, 202)["meta"]["id"]
    first, second = {"spec": {"command": "true"}}, {"spec": {"image": "muster/other"}}
    return Changed(f"/workload-templates/{key}", "environments_template", first, second)


def make_policy(cast: Cast) -> Changed:
    body = {"meta": {"scope": "tenant"}, "policy": {"rules": {"numWorkers": {"min": 1}}}}
    Caller(cast.alice)("PUT", POLICY, body)
    first, second = (
        {"policy": {"rules": {"numWorkers": {name: value}}}}
        for name, value in (("max", 8), ("min", 2))
    )
    at = f"{POLICY}?scope=tenant"
    return Changed(at, "environments_policy", first, second)


MAKERS = (
    make_department,
    make_project,
    make_project_and_its_quota,
    make_node_pool,
    make_asset,
    make_template,
    make_policy,
)


def includes(value: Any, part: Any) -> bool:
    """Return whether an answer has what a body says, in its place."""
    if isinstance(part, dict):
        return all(includes(value.get(name), inner) for name, inner in part.items())
    if isinstance(part, list):
        return all(includes(*pair) for pair in zip(value, part, strict=True))
    return bool(value == part)


@pytest.mark.parametrize("make", MAKERS)
def test_what_somebody_else_changes_meanwhile_stays(
    cast: Cast, make: Callable[[Cast], Changed]
) -> None:
    alice, changed = Caller(cast.alice), make(cast)

    def change_too() -> None:
        address = changed.second_address or changed.address
        alice(changed.second_method, address, changed.second, alice_status)

    alice_status = 202 if changed.address.startswith(("/asset", "/workload-templates")) else 200
    with before_each_lock(changed.table, change_too, times=1):
        alice("PATCH", changed.address, changed.first, alice_status)
    answer = alice("GET", changed.address)
    assert includes(answer, changed.first)
    assert includes(answer, changed.second)


def test_two_changes_of_a_cluster_s_prometheus_at_once_both_stay(cast: Cast) -> None:
    """Its answer has none of them: it is not among the others."""
    alice, at = Caller(cast.alice), f"/clusters/{cast.cluster.pk}"
    alice("PATCH", at, {"prometheusUrl": "https://prometheus.example.com"})

    def move() -> None:
        alice("PATCH", at, {"prometheusUrl": "https://mimir.example.com", "enabled": False})

    with before_each_lock("clusters_cluster", move, times=1):
        alice("PATCH", at, {"prometheusMatcher": 'cluster="prod-1"', "enabled": False})
    cast.cluster.refresh_from_db()
    assert cast.cluster.prometheus_url == "https://mimir.example.com"
    assert cast.cluster.prometheus_matcher == 'cluster="prod-1"'
    # Who disables what is disabled changes nothing.
    entries = AuditEntry.objects.filter(entity="cluster", before={"enabled": True})
    assert entries.count() == 1


def test_a_change_of_nothing_of_a_cluster_leaves_no_trace(cast: Cast) -> None:
    alice, at = Caller(cast.alice), f"/clusters/{cast.cluster.pk}"
    for body in ({}, {"name": "here"}, {"prometheusUrl": ""}, {"enabled": True}):
        alice("PATCH", at, body)
    cast.cluster.refresh_from_db()
    assert cast.cluster.edit_version == 1
    assert not AuditEntry.objects.filter(entity="cluster").exists()


def test_a_version_that_is_named_is_not_followed(cast: Cast) -> None:
    alice, changed = Caller(cast.alice), make_department(cast)
    body = changed.first | {"version": cast.research.version}

    def change_too() -> None:
        alice("PATCH", changed.address, changed.second)

    with before_each_lock(changed.table, change_too, times=1):
        refused = alice("PATCH", changed.address, body, 409)
    assert "changed meanwhile" in refused["message"]
    assert alice("GET", changed.address)["description"] == ""


def test_a_change_that_never_comes_first_is_given_up_with_what_to_do(cast: Cast) -> None:
    alice, changed = Caller(cast.alice), make_asset(cast)
    numbers = iter(range(2, MAX_TRIES + 2))

    def change_too() -> None:
        body = {"spec": {"gpuDevicesRequest": next(numbers)}}
        alice("PATCH", changed.address, body, 202)

    with before_each_lock(changed.table, change_too, times=MAX_TRIES):
        refused = alice("PATCH", changed.address, changed.first, 409)
    assert "repeat your change" in refused["message"]


@pytest.mark.parametrize("make", MAKERS)
def test_a_change_of_nothing_leaves_no_trace(cast: Cast, make: Callable[[Cast], Changed]) -> None:
    alice, changed = Caller(cast.alice), make(cast)
    status = 202 if changed.address.startswith(("/asset", "/workload-templates")) else 200
    alice("PATCH", changed.address, changed.first, status)
    before, entries = alice("GET", changed.address), AuditEntry.objects.count()
    for body in ({}, changed.first):
        if body or not changed.address.startswith(POLICY):
            assert alice("PATCH", changed.address, body, status) == before
    assert alice("GET", changed.address) == before
    assert AuditEntry.objects.count() == entries
    alice("PATCH", changed.address, changed.second, status)
    assert alice("GET", changed.address) != before
    assert AuditEntry.objects.count() == entries + 1

"""What Muster asks of a cluster, as a table."""

import re
from pathlib import Path

from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube.resources import EVENTS, PODS
from clusters.permissions import NEEDED, Need

VERBS = {"get", "list", "watch", "create", "patch", "delete", "deletecollection"}
ROOT = Path(__file__).resolve().parents[2]


def test_each_verb_is_needed_once_and_for_a_reason() -> None:
    keys = [(need.verb, need.kind) for need in NEEDED]
    assert len(keys) == len(set(keys))
    assert {verb for verb, _ in keys} <= VERBS
    assert all(need.why for need in NEEDED)


def test_kinds_are_spelled_as_roles_spell_them() -> None:
    kinds = {need.kind for need in NEEDED}
    assert {"pods", "pods/log", "jobs.batch", "pytorchjobs.kubeflow.org", "nodes"} <= kinds


def test_what_is_followed_may_be_listed_and_watched() -> None:
    have = {(need.verb, need.resource) for need in NEEDED}
    for resource in (PODS, EVENTS, JOBS, PYTORCHJOBS):
        assert {("list", resource), ("watch", resource)} <= have


def test_no_secret_of_the_cluster_is_watched() -> None:
    assert (
        Need("watch", next(each.resource for each in NEEDED if each.kind == "secrets"), "", "")
        not in NEEDED
    )
    assert ("watch", "secrets") not in {(each.verb, each.kind) for each in NEEDED}


def test_every_verb_that_is_sent_is_in_the_table() -> None:
    """Every `calls.VERB(client, KIND` in the code whose kind is named there."""
    needed = {(need.verb, need.resource.plural) for need in NEEDED}
    verbs = {
        "create": {"create"},
        "get": {"get"},
        "list_all": {"list"},
        "list_page": {"list"},
        "apply": {"patch"},
        "delete": {"delete"},
        "delete_collection": {"deletecollection"},
    }
    sent = []
    for room in ("clusters", "workloads"):
        for file in (ROOT / room).rglob("*.py"):
            for verb, kind in re.findall(
                r"calls\.([a-z_]+)\(\s*(?:self\._)?client,\s*([A-Z_]+)\b", file.read_text()
            ):
                sent += [(file.name, each, kind.lower()) for each in verbs.get(verb, set())]
    assert sent
    missing = [(name, verb, kind) for name, verb, kind in sent if (verb, kind) not in needed]
    assert missing == []

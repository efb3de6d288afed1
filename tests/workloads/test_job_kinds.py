"""Which kinds of jobs are looked for in a cluster."""

from clusters.capabilities import UNKNOWN, Capabilities
from clusters.job_kinds import JOB_KINDS, list_served_kinds
from clusters.job_kinds.mpi import MPIJOBS, MPIJOBS_V2
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube.resources import PODGROUPS


def test_in_a_cluster_that_was_never_asked_all_kinds_are_looked_for() -> None:
    assert list(list_served_kinds(UNKNOWN)) == list(JOB_KINDS.values())
    assert UNKNOWN.serves(PODGROUPS.key)


def test_only_kinds_that_are_served_are_looked_for() -> None:
    can = Capabilities(served=frozenset(("kubeflow.org/v1/pytorchjobs", "v1/pods")))
    assert list_served_kinds(can) == [PYTORCHJOBS]
    assert not can.serves(PODGROUPS.key)


def test_a_kind_in_two_versions_is_looked_for_once() -> None:
    both, old = (
        ("kubeflow.org/v1/mpijobs", "kubeflow.org/v2beta1/mpijobs"),
        ("kubeflow.org/v1/mpijobs",),
    )
    assert list_served_kinds(Capabilities(served=frozenset(both))) == [MPIJOBS_V2]
    assert list_served_kinds(Capabilities(served=frozenset(old))) == [MPIJOBS]

"""Which kinds of jobs are looked for in a cluster."""

from clusters.capabilities import UNKNOWN, Capabilities
from clusters.kube.resources import MPIJOBS, MPIJOBS_V2, PODGROUPS, PYTORCHJOBS
from workloads.job_kinds import JOB_KINDS, is_served, list_job_resources


def test_in_a_cluster_that_was_never_asked_all_kinds_are_looked_for() -> None:
    assert [resource for _, resource in list_job_resources(UNKNOWN)] == list(JOB_KINDS.values())
    assert is_served(UNKNOWN, PODGROUPS)


def test_only_kinds_that_are_served_are_looked_for() -> None:
    can = Capabilities(served=frozenset(("kubeflow.org/v1/pytorchjobs", "v1/pods")))
    assert list_job_resources(can) == [("PyTorchJob", PYTORCHJOBS)]
    assert not is_served(can, PODGROUPS)


def test_a_kind_in_two_versions_is_looked_for_once() -> None:
    both, old = (
        ("kubeflow.org/v1/mpijobs", "kubeflow.org/v2beta1/mpijobs"),
        ("kubeflow.org/v1/mpijobs",),
    )
    assert list_job_resources(Capabilities(served=frozenset(both))) == [("MPIJob", MPIJOBS_V2)]
    assert list_job_resources(Capabilities(served=frozenset(old))) == [("MPIJob", MPIJOBS)]

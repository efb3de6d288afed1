"""What was asked for, in words: each framework with its own, and every kind of volume."""

import pytest

from tests.workloads.submissions import train1
from workloads.specs import (
    S3,
    ClaimAccess,
    Configuration,
    ElasticSettings,
    Environment,
    Framework,
    Git,
    GitAccess,
    LauncherCreation,
    MasterChanges,
    MpiSettings,
    NewClaim,
    Setup,
    Spec,
    Topology,
    VolumeAccess,
)
from workloads.views.describing import describe_spec


def describe_as_facts(spec: Spec) -> dict[str, str]:
    """The facts of all sections by name."""
    return {
        fact.name: "; ".join(fact.values)
        for section in describe_spec(spec)
        for fact in section.facts
    }


CASES: list[tuple[Spec, dict[str, str]]] = [
    (
        train1(framework=Framework.TENSORFLOW, parameter_servers=2),
        {"Framework": "TensorFlow", "Configuration": "Workers & chief", "Parameter servers": "2"},
    ),
    (
        train1(
            framework=Framework.MPI,
            mpi=MpiSettings(4, LauncherCreation.WAIT_FOR_WORKERS, "/home/mpi/.ssh"),
        ),
        {
            "Configuration": "Workers & launcher",
            "Slots per worker": "4",
            "The launcher is made": "once all workers run",
            "SSH path": "/home/mpi/.ssh",
        },
    ),
    (
        train1(framework=Framework.JAX, configuration=Configuration.WORKERS_ONLY),
        {"Configuration": "Workers only"},
    ),
    (
        train1(elastic=ElasticSettings(1, 4, 9)),
        {
            "Pods while it runs": "1 to 4 pods, the master among them",
            "Restarts while pods come and go": "at most 9",
        },
    ),
    (
        train1(
            setup=Setup(
                Environment("x"),
                node_pools=("fast", "slow"),
                topology=Topology("rack", required=True),
            )
        ),
        {
            "Node pools, in order": "fast; slow",
            "Together on nodes with the same": "rack (required)",
        },
    ),
]


@pytest.mark.parametrize(("spec", "facts"), CASES, ids=range(len(CASES)))
def test_what_was_chosen_is_told(spec: Spec, facts: dict[str, str]) -> None:
    found = describe_as_facts(spec)
    assert {name: found.get(name) for name in facts} == facts


@pytest.mark.parametrize(
    ("framework", "word"),
    [(Framework.PYTORCH, "master"), (Framework.TENSORFLOW, "chief"), (Framework.MPI, "launcher")],
)
def test_the_master_is_called_as_the_framework_calls_it(framework: Framework, word: str) -> None:
    titles = [
        section.title
        for section in describe_spec(
            train1(framework=framework, master=MasterChanges(cpu_request="2"))
        )
    ]
    assert f"Where the {word} differs from the workers" in titles


VOLUMES = [
    (
        NewClaim(
            path="/a",
            size="1Gi",
            modes=(ClaimAccess.MANY_WRITE,),
            access=VolumeAccess.RANK_0_WRITES,
        ),
        "/a: a new PVC of 1Gi (ReadWriteMany), writable by rank 0 only",
    ),
    (
        NewClaim(path="/a", size="1Gi", storage_class="fast", ephemeral=True),
        "/a: a new PVC for each pod of 1Gi of class fast (ReadWriteOnce)",
    ),
    (
        Git(path="/a", repository="https://h/x"),
        "/a: its default branch of the Git repository https://h/x",
    ),
    (
        Git(
            path="/a",
            repository="git@h:x",
            revision="v1",
            secret="key",
            credential=GitAccess.SSH_KEY,
            access=VolumeAccess.READ_ONLY,
        ),
        "/a: v1 of the Git repository git@h:x, opened by the Secret key, read only",
    ),
    (
        S3(path="/a", bucket="b", prefix="p", url="https://s3", secret="keys"),
        "/a: a copy of the S3 bucket b below p at https://s3, opened by the Secret keys, read only",
    ),
]


@pytest.mark.parametrize(("volume", "words"), VOLUMES, ids=range(len(VOLUMES)))
def test_a_volume_in_words(volume: NewClaim | Git | S3, words: str) -> None:
    assert (
        describe_as_facts(train1(setup=Setup(Environment("x"), volumes=(volume,))))["Volumes"]
        == words
    )

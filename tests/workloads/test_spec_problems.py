"""What is wrong with a Spec is said in words, at its field."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.workloads.submissions import one_pod, train1
from workloads import specs
from workloads.specs import (
    S3,
    CleanPodPolicy,
    Compute,
    ConfigMap,
    Configuration,
    ElasticSettings,
    EmptyDir,
    Environment,
    ExtendedResource,
    Framework,
    Git,
    GitAccess,
    Gpus,
    HostPath,
    Lifecycle,
    MasterChanges,
    MpiSettings,
    NewClaim,
    Nfs,
    Pair,
    RestartPolicy,
    Security,
    Setup,
    Spec,
    Toleration,
    TolerationOperator,
    Topology,
    Variable,
    VariableSource,
    VolumeAccess,
    find_problems,
)

IMAGE = Environment("x")
CODE = "https://git.example.com/team/code.git"


def setup(**changes: Any) -> Spec:
    return train1(setup=Setup(**{"environment": IMAGE} | changes))


def environment(**changes: Any) -> Spec:
    return setup(environment=replace(IMAGE, **changes))


def compute(**changes: Any) -> Spec:
    return setup(compute=Compute(**changes))


def life(**changes: Any) -> Spec:
    return train1(lifecycle=Lifecycle(**changes))


def problems_of(field: str, spec: Spec) -> list[str]:
    return [problem.text for problem in find_problems(spec) if problem.field == field]


def test_the_workload_of_the_walk_has_no_problems() -> None:
    assert find_problems(train1()) == ()
    assert find_problems(one_pod()) == ()


NAMES = {
    "": "must be given",
    "Train": "lower-case",
    "1train": "start with a letter",
    "train_1": "lower-case",
    "train-": "end with a letter or digit",
    "a.b": "lower-case",
    "träin": "lower-case",
    "a" * 51: "at most 50 characters; it has 51",
    "a\n": "lower-case",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_dns_label_that_starts_with_a_letter(name: str) -> None:
    (text,) = problems_of("name", train1(name=name))
    assert text.startswith("The name must")
    assert NAMES[name] in text


@pytest.mark.parametrize("name", ["a", "a" * 50, "train-1", "t0"])
def test_good_names_pass(name: str) -> None:
    assert find_problems(train1(name=name)) == ()


def test_the_longest_name_leaves_room_for_what_operators_append() -> None:
    assert {
        specs.max_name_length(framework, workers)
        for framework in [None, *Framework]
        for workers in (1, 10, 1000, 10_000)
    } == {50}
    assert specs.max_name_length(Framework.PYTORCH, 10**6) == 63 - len("-worker-999999")


REFUSED = [
    (train1(framework=None), "framework", "must be chosen"),
    (
        train1(framework=Framework.JAX),
        "configuration",
        "must be Workers only for JAX: its workers are all alike",
    ),
    (
        train1(framework=Framework.XGBOOST, configuration=Configuration.WORKERS_ONLY),
        "configuration",
        "must be Workers & master for XGBoost: it cannot do without a master",
    ),
    (train1(parameter_servers=1), "parameter_servers", "is for TensorFlow"),
    (
        train1(framework=Framework.TENSORFLOW, parameter_servers=-1),
        "parameter_servers",
        "from 0 to 10,000",
    ),
    (
        train1(framework=Framework.TENSORFLOW, elastic=ElasticSettings(1, 3)),
        "elastic",
        "is for distributed PyTorch workloads",
    ),
    (train1(elastic=ElasticSettings(1, 3, -1)), "elastic.max_restarts", "from 0 to 100,000"),
    (
        train1(
            elastic=ElasticSettings(1, 3),
            setup=Setup(Environment("x", variables=(Variable("PET_MAX_RESTARTS", "3"),))),
        ),
        "setup.environment.variables.0.name",
        "is set by the training operator",
    ),
    (
        train1(
            framework=Framework.PADDLE,
            setup=Setup(Environment("x", variables=(Variable("PADDLE_MASTER", "a:1"),))),
        ),
        "setup.environment.variables.0.name",
        "is set by the training operator",
    ),
    (train1(framework=Framework.PADDLE, elastic=ElasticSettings(1, 3)), "elastic", "PyTorch"),
    (train1(mpi=MpiSettings(slots=2)), "mpi", "is for MPI"),
    (one_pod(mpi=MpiSettings(slots=2)), "mpi", "is for MPI"),
    (train1(framework=Framework.MPI, mpi=MpiSettings(slots=0)), "mpi.slots", "from 1 to 1,000"),
    (
        train1(framework=Framework.MPI, mpi=MpiSettings(ssh_path="keys")),
        "mpi.ssh_path",
        "must start with /",
    ),
    (
        train1(
            framework=Framework.MPI, lifecycle=Lifecycle(restart_policy=RestartPolicy.EXIT_CODE)
        ),
        "lifecycle.restart_policy",
        "must be OnFailure or Never for MPI",
    ),
    (
        one_pod(setup=Setup(IMAGE, topology=Topology("rack"))),
        "setup.topology",
        "several pods at once",
    ),
    (setup(node_pools=("a", "a")), "setup.node_pools.1", "must be given once only"),
    (setup(node_pools=("",)), "setup.node_pools.0", "must be given"),
    (setup(topology=Topology("a b")), "setup.topology.key", "letters"),
    (
        setup(volumes=(Git(path="/src", repository=""),)),
        "setup.volumes.0.repository",
        "must be given",
    ),
    (
        setup(volumes=(Git(path="/src", repository="code.git"),)),
        "setup.volumes.0.repository",
        "must be a URL such as",
    ),
    (
        setup(volumes=(Git(path="/src", repository="https://x.example/a?token=t"),)),
        "setup.volumes.0.repository",
        "a query or a fragment",
    ),
    (
        setup(volumes=(Git(path="/src", repository="ssh://-oProxyCommand=x/a"),)),
        "setup.volumes.0.repository",
        "begin with a dash",
    ),
    (
        setup(volumes=(Git(path="/src", repository="ann@x.example:--upload-pack=x"),)),
        "setup.volumes.0.repository",
        "must be a URL such as",
    ),
    (
        setup(volumes=(Git(path="/src", repository="https://ann:pass@x.example/a"),)),
        "setup.volumes.0.repository",
        "put them into a Secret",
    ),
    (
        setup(volumes=(Git(path="/src", repository=CODE, branch="--upload-pack=x"),)),
        "setup.volumes.0.branch",
        "a branch, a tag or a commit",
    ),
    (
        setup(volumes=(Git(path="/src", repository=CODE, secret="s"),)),
        "setup.volumes.0.secret",
        "a password or an SSH key",
    ),
    (
        setup(
            volumes=(Git(path="/src", repository=CODE, secret="s", credential=GitAccess.SSH_KEY),)
        ),
        "setup.volumes.0.repository",
        "must be an SSH address",
    ),
    (setup(volumes=(S3(path="/d", bucket="A"),)), "setup.volumes.0.bucket", "3 to 63 lower-case"),
    (
        setup(volumes=(S3(path="/d", bucket="data", url="s3://x"),)),
        "setup.volumes.0.url",
        "must be a URL such as",
    ),
    (
        setup(volumes=(S3(path="/d", bucket="data", url="https://k:s@x.example"),)),
        "setup.volumes.0.url",
        "without user, password",
    ),
    (
        setup(volumes=(S3(path="/d", bucket="data", prefix="../x"),)),
        "setup.volumes.0.prefix",
        "must not have ..",
    ),
    (
        setup(volumes=(S3(path="/d", bucket="data", access=VolumeAccess.READ_WRITE),)),
        "setup.volumes.0.access",
        "must be read-only",
    ),
    (setup(volumes=(NewClaim(path="/d", size=""),)), "setup.volumes.0.size", "must be given"),
    (
        setup(volumes=(NewClaim(path="/d", size="1Gi", modes=()),)),
        "setup.volumes.0.modes",
        "at least one",
    ),
    (
        setup(
            volumes=(
                NewClaim(path="/d", size="1Gi", ephemeral=True, access=VolumeAccess.RANK_0_WRITES),
            )
        ),
        "setup.volumes.0.access",
        "each pod has one of its own",
    ),
    (
        train1(workers=0),
        "workers",
        "The number of workers must be a whole number from 1 to 10,000.",
    ),
    (train1(workers=10_001), "workers", "10,000"),
    (train1(namespace="a.b"), "namespace", "no dots"),
    (train1(queue=""), "queue", "must be given"),
    (train1(runs=2), "runs", "standard"),
    (
        train1(configuration=Configuration.WORKERS_ONLY, master=MasterChanges(image="x")),
        "master",
        "has no master",
    ),
    (
        train1(elastic=ElasticSettings(4, 5)),
        "elastic.min_pods",
        "from 1 to the number of pods, 3 (the workers and the master)",
    ),
    (
        train1(elastic=ElasticSettings(1, 1)),
        "elastic.max_pods",
        "from the number of pods, 3 (the workers and the master), to 10,001",
    ),
    (
        train1(configuration=Configuration.WORKERS_ONLY, elastic=ElasticSettings(1, 1)),
        "elastic.max_pods",
        "from the number of pods, 2, to 10,000",
    ),
    (one_pod(framework=Framework.PYTORCH), "framework", "is for distributed workloads"),
    (one_pod(workers=2), "workers", "is for distributed workloads"),
    (one_pod(runs=0), "runs", "from 1 to 10,000"),
    (
        one_pod(lifecycle=Lifecycle(restart_policy=RestartPolicy.ALWAYS)),
        "lifecycle.restart_policy",
        "OnFailure or Never",
    ),
    (
        one_pod(lifecycle=Lifecycle(clean_pod_policy=CleanPodPolicy.ALL)),
        "lifecycle.clean_pod_policy",
        "distributed",
    ),
    (life(backoff_limit=101), "lifecycle.backoff_limit", "from 0 to 100"),
    (life(grace_seconds=-1), "lifecycle.grace_seconds", "grace period in seconds"),
    (life(auto_delete_seconds=10**9), "lifecycle.auto_delete_seconds", "auto-deletion"),
    (environment(image=""), "setup.environment.image", "The image must be given."),
    (environment(image="a b"), "setup.environment.image", "without spaces"),
    (environment(image="team/Train"), "setup.environment.image", "lower case"),
    (environment(working_dir="tmp"), "setup.environment.working_dir", "must start with /"),
    (environment(args=("a\x00",)), "setup.environment.args", "null character"),
    (environment(args=("\ud800",)), "setup.environment.args", "surrogate"),
    (environment(pull_secrets=("Ä",)), "setup.environment.pull_secrets.0", "Pull secret 1"),
    (
        environment(pull_secrets=("a", "a")),
        "setup.environment.pull_secrets",
        "The pull secret a must be given once only.",
    ),
    (
        environment(variables=(Variable("1A"),)),
        "setup.environment.variables.0.name",
        "The name of environment variable 1 must start",
    ),
    (
        environment(variables=(Variable("A"), Variable("A"))),
        "setup.environment.variables.1.name",
        "The environment variable A must be given once",
    ),
    (
        environment(variables=(Variable("RANK"),)),
        "setup.environment.variables.0.name",
        "is set by the training operator",
    ),
    (
        environment(variables=(Variable("MUSTER_PROGRESS_PATTERN", "(?P<step>"),)),
        "setup.environment.variables.0.value",
        "The value of environment variable MUSTER_PROGRESS_PATTERN must be an expression of RE2",
    ),
    (
        environment(variables=(Variable("A", source=VariableSource.SECRET, key="k"),)),
        "setup.environment.variables.0.object_name",
        "The Secret of",
    ),
    (
        environment(variables=(Variable("A", source=VariableSource.CONFIG_MAP, object_name="c"),)),
        "setup.environment.variables.0.key",
        "key of",
    ),
    (
        environment(variables=(Variable("A", source=VariableSource.POD_FIELD, key="spec.x"),)),
        "setup.environment.variables.0.key",
        "pod field",
    ),
    (
        environment(
            variables=(
                Variable("A", source=VariableSource.POD_FIELD, key="metadata.labels['a/b/c']"),
            )
        ),
        "setup.environment.variables.0.key",
        "a domain in lower case before the slash",
    ),
    (environment(args=("a",) * 257), "setup.environment.args", "at most 256"),
    (environment(args=("a" * 30_000,) * 9), "setup.environment.variables", "together"),
    (environment(args=("界" * 30_000,) * 3), "setup.environment.variables", "262,144 bytes"),
    (compute(cpu_request="100MB"), "setup.compute.cpu_request", "such as 500m"),
    (compute(memory_request="100MB"), "setup.compute.memory_request", "without the B"),
    (compute(memory_request="1K"), "setup.compute.memory_request", "such as"),
    (compute(cpu_request="0.0001"), "setup.compute.cpu_request", "from 1m to 4096"),
    (compute(cpu_request="1.0001"), "setup.compute.cpu_request", "multiple of 0.001"),
    (compute(cpu_request="-1"), "setup.compute.cpu_request", "must be a number"),
    (
        compute(cpu_request="2", cpu_limit="1500m"),
        "setup.compute.cpu_limit",
        "The CPU limit must not be below the request, 2.",
    ),
    (
        compute(memory_request="1.1Gi"),
        "setup.compute.memory_request",
        "a whole number, and 1.1Gi is 1181116006.4: write it in a smaller unit, such as 1127Mi.",
    ),
    (compute(memory_limit="65Ti"), "setup.compute.memory_limit", "from 1Mi to 64Ti"),
    (compute(gpus=Gpus(-1)), "setup.compute.gpus.devices", "GPU devices per pod"),
    (
        compute(gpus=Gpus(1, Decimal("0.5"), "1Gi")),
        "setup.compute.gpus.memory",
        "cannot be given together with a GPU portion",
    ),
    (compute(gpus=Gpus(portion=Decimal(0))), "setup.compute.gpus.portion", "above 0 and at most 1"),
    (
        compute(gpus=Gpus(portion=Decimal("1.1"))),
        "setup.compute.gpus.portion",
        "above 0 and at most 1",
    ),
    (
        compute(gpus=Gpus(portion=Decimal("nan"))),
        "setup.compute.gpus.portion",
        "above 0 and at most 1",
    ),
    (compute(gpus=Gpus(memory="10")), "setup.compute.gpus.memory", "from 1Mi to 1Ti"),
    (
        compute(extended=(ExtendedResource("nvidia.com/gpu", "1"),)),
        "setup.compute.extended.0.resource",
        "GPU devices are asked for above",
    ),
    (
        compute(extended=(ExtendedResource("cpu", "1"),)),
        "setup.compute.extended.0.resource",
        "domain",
    ),
    (
        compute(extended=(ExtendedResource("a/b", "1.5"),)),
        "setup.compute.extended.0.quantity",
        "The quantity of extended resource 1 must be a whole number.",
    ),
    (
        setup(volumes=(EmptyDir(path="a"),)),
        "setup.volumes.0.path",
        "The container path of volume 1 (empty directory) must start with /.",
    ),
    (setup(volumes=(EmptyDir(path="/"),)), "setup.volumes.0.path", "root"),
    (setup(volumes=(EmptyDir(path="//."),)), "setup.volumes.0.path", "root"),
    (
        setup(volumes=(EmptyDir(path="/a"), EmptyDir(path="/./a//"))),
        "setup.volumes.1.path",
        "The container path /a must be given once only.",
    ),
    (setup(volumes=(EmptyDir(path="/a/../b"),)), "setup.volumes.0.path", ".."),
    (setup(volumes=(EmptyDir(path="/a"), EmptyDir(path="/a/"))), "setup.volumes.1.path", "once"),
    (
        setup(volumes=(EmptyDir(path="/dev/shm"),), compute=Compute(large_shm=True)),
        "setup.volumes.0.path",
        "shared memory",
    ),
    (
        setup(volumes=(HostPath(path="/a", source="b"),)),
        "setup.volumes.0.source",
        "host path of volume 1",
    ),
    (setup(volumes=(ConfigMap(path="/a", name="A"),)), "setup.volumes.0.name", "(ConfigMap)"),
    (
        setup(volumes=(ConfigMap(path="/a", name="a", access=VolumeAccess.READ_WRITE),)),
        "setup.volumes.0.access",
        "read-only",
    ),
    (
        setup(volumes=(ConfigMap(path="/a", name="a", sub_path="/b"),)),
        "setup.volumes.0.sub_path",
        "must not start with /",
    ),
    (setup(volumes=(ConfigMap(path="/a", name="a", mode=0o1000),)), "setup.volumes.0.mode", "0777"),
    (
        setup(volumes=(Nfs(path="/a", server="a b", export="/x"),)),
        "setup.volumes.0.server",
        "server",
    ),
    (setup(tolerations=(Toleration(),)), "setup.tolerations.0.key", "Exists"),
    (
        setup(tolerations=(Toleration("a", TolerationOperator.EXISTS, "v"),)),
        "setup.tolerations.0.value",
        "must be empty",
    ),
    (setup(tolerations=(Toleration("a", seconds=5),)), "setup.tolerations.0.seconds", "NoExecute"),
    (setup(node_type="a b"), "setup.node_type", "The node type"),
    (setup(labels=(Pair("a", "b c"),)), "setup.labels.0.value", "The value of label 1"),
    (
        setup(labels=(Pair("kai.scheduler/queue", "b"),)),
        "setup.labels.0.key",
        "is set by Muster or the cluster",
    ),
    (
        setup(labels=(Pair("kai.scheduler/node-pool", "b"),)),
        "setup.labels.0.key",
        "is set by Muster or the cluster",
    ),
    (
        setup(labels=(Pair("jobset.sigs.k8s.io/replicatedjob-name", "b"),)),
        "setup.labels.0.key",
        "is set by Muster or the cluster",
    ),
    (
        setup(labels=(Pair("kueue.x-k8s.io/queue-name", "b"),)),
        "setup.labels.0.key",
        "is set by Muster or the cluster",
    ),
    (
        setup(annotations=(Pair("run.ai/priority", "b"),)),
        "setup.annotations.0.key",
        "is set by Muster or the cluster",
    ),
    (
        setup(annotations=(Pair("localkube.muster.dev/hold", "true"),)),
        "setup.annotations.0.key",
        "is set by Muster",
    ),
    (setup(annotations=(Pair("gpu-memory", "1"),)), "setup.annotations.0.key", "is set by Muster"),
    (setup(annotations=(Pair("a/b/c", ""),)), "setup.annotations.0.key", "domain"),
    (setup(security=Security(uid=-1)), "setup.security.uid", "The user ID"),
    (setup(security=Security(uid=0, non_root=True)), "setup.security.uid", "root"),
    (
        setup(security=Security(capabilities=("ROOT",))),
        "setup.security.capabilities",
        "The capability ROOT",
    ),
    (
        train1(master=MasterChanges(image="A")),
        "master.environment.image",
        "For the master: the image must",
    ),
]


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    REFUSED,
    ids=[f"{field}-{index}" for index, (_, field, _) in enumerate(REFUSED)],
)
def test_what_is_wrong_is_said_in_words_with_its_field(spec: Spec, field: str, words: str) -> None:
    texts = problems_of(field, spec)
    assert any(words in text for text in texts), find_problems(spec)
    assert all(
        text.endswith(".") and not text.endswith("..") and text[0].isupper() for text in texts
    )


def test_rank_0_writes_needs_a_master_or_a_single_pod() -> None:
    shared = Setup(IMAGE, volumes=(EmptyDir(path="/a", access=VolumeAccess.RANK_0_WRITES),))
    assert find_problems(train1(setup=shared)) == find_problems(one_pod(setup=shared)) == ()
    alike = train1(setup=shared, configuration=Configuration.WORKERS_ONLY)
    # Of workers alone the first gets a template of its own where the framework has a second kind of
    # pod.
    assert (
        find_problems(alike) == find_problems(replace(alike, framework=Framework.TENSORFLOW)) == ()
    )
    for spec in (
        replace(alike, framework=Framework.JAX),
        replace(alike, elastic=ElasticSettings(1, 3)),
    ):
        assert (
            "cannot be for rank 0 only without a master"
            in problems_of("setup.volumes.0.access", spec)[0]
        )
    mpi = train1(setup=shared, framework=Framework.MPI)
    assert "whose ranks all run in the workers" in problems_of("setup.volumes.0.access", mpi)[0]


def test_a_problem_that_the_master_inherits_is_told_once() -> None:
    spec = train1(setup=Setup(Environment("A")), master=MasterChanges(args=("x",)))
    assert [problem.field for problem in find_problems(spec)] == ["setup.environment.image"]

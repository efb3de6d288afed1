"""Any valid Spec, for tests at random."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from workloads.specs import (
    S3,
    UNCHANGED,
    Architecture,
    Claim,
    ClaimAccess,
    CleanPodPolicy,
    Compute,
    ConfigMap,
    Configuration,
    DataDelivery,
    ElasticSettings,
    EmptyDir,
    Environment,
    ExtendedResource,
    Framework,
    Git,
    GitAccess,
    Gpus,
    HostPath,
    LauncherCreation,
    Lifecycle,
    MasterChanges,
    MpiSettings,
    NewClaim,
    Nfs,
    Pair,
    Preemptibility,
    Priority,
    PullPolicy,
    Radar,
    RestartPolicy,
    SeccompProfile,
    Secret,
    Security,
    Setup,
    Spec,
    Toleration,
    TolerationEffect,
    TolerationOperator,
    Topology,
    Variable,
    VariableSource,
    Volume,
    VolumeAccess,
)

NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
PATHS = st.from_regex(r"(/[a-z0-9_]{1,8}){1,3}", fullmatch=True)
VALUES = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,10}[A-Za-z0-9])?)?", fullmatch=True)
QUANTITIES = st.sampled_from(["1", "2", "0.5", "250m", "3e1"])
MEMORY = st.sampled_from(["100M", "1Gi", "1.5Gi", "200Mi", "1e9"])
OPTIONAL = st.none() | st.booleans()


def draw_tuples(
    items: st.SearchStrategy[Any], unique_by: Any = None
) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=3, unique_by=unique_by).map(tuple)


def pairs(values: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[Pair, ...]]:
    return draw_tuples(
        st.builds(Pair, st.builds("example.com/{}".format, NAMES) | NAMES, values),
        lambda pair: pair.key,
    )


VARIABLES = draw_tuples(
    st.builds(Variable, st.from_regex(r"U_[A-Z0-9_]{0,10}", fullmatch=True), TEXTS)
    | st.builds(
        Variable,
        NAMES,
        source=st.sampled_from([VariableSource.SECRET, VariableSource.CONFIG_MAP]),
        object_name=NAMES,
        key=NAMES,
    )
    | st.builds(
        Variable,
        NAMES,
        source=st.just(VariableSource.POD_FIELD),
        key=st.sampled_from(["metadata.name", "status.podIP", "metadata.labels['a']"]),
    ),
    lambda variable: variable.name,
)

WORDS = draw_tuples(TEXTS)
PULL_SECRETS = draw_tuples(NAMES, str)

IMAGES = st.sampled_from(
    [
        "/kubeflow/x:latest",
        "python",
        "Registry.example.com:5000/a/b_c:v1.2",
        "a/b@sha256:" + "0" * 64,
    ]
)

ENVIRONMENTS = st.builds(
    Environment,
    IMAGES,
    st.none() | st.sampled_from(PullPolicy),
    PULL_SECRETS,
    WORDS,
    WORDS,
    VARIABLES,
    st.just("") | PATHS,
)

PORTIONS = st.integers(1, 10_000).map(lambda parts: Decimal(parts) / 10_000)

GPUS = (
    st.builds(Gpus, st.integers(0, 8))
    | st.builds(Gpus, st.integers(0, 3), PORTIONS)
    | st.builds(Gpus, st.integers(0, 3), memory=MEMORY)
)

EXTENDED = draw_tuples(
    st.builds(
        ExtendedResource,
        st.sampled_from(["rdma/hca", "example.com/x"]),
        st.sampled_from(["1", "4"]),
    ),
    lambda each: each.resource,
)

COMPUTES = st.builds(
    Compute,
    GPUS,
    st.just("") | QUANTITIES,
    st.sampled_from(["", "64"]),
    st.just("") | MEMORY,
    st.sampled_from(["", "1Ti"]),
    st.booleans(),
    EXTENDED,
)

DATA_DELIVERIES = st.none() | st.builds(
    DataDelivery,
    st.integers(1, 8),
    st.integers(0, 1_000_000_000),
    st.builds(
        Compute,
        cpu_request=st.just("") | QUANTITIES,
        cpu_limit=st.sampled_from(["", "64"]),
        memory_request=st.just("") | MEMORY,
        memory_limit=st.sampled_from(["", "1Ti"]),
    ),
    st.just("") | IMAGES,
)

CHANGEABLE = st.sampled_from([VolumeAccess.READ_WRITE, VolumeAccess.READ_ONLY])
MODES = st.none() | st.integers(0, 0o777)


def volumes(access: st.SearchStrategy[VolumeAccess]) -> st.SearchStrategy[tuple[Volume, ...]]:
    return draw_tuples(
        st.builds(
            EmptyDir, path=PATHS, access=access, memory=st.booleans(), size=st.just("") | MEMORY
        )
        | st.builds(HostPath, path=PATHS, access=access, source=PATHS, propagate=st.booleans())
        | st.builds(ConfigMap, path=PATHS, name=NAMES, sub_path=st.just("") | NAMES, mode=MODES)
        | st.builds(Secret, path=PATHS, name=NAMES, mode=MODES)
        | st.builds(Claim, path=PATHS, access=access, claim=NAMES)
        | st.builds(Nfs, path=PATHS, access=access, server=NAMES, export=PATHS)
        | st.builds(
            NewClaim,
            path=PATHS,
            access=CHANGEABLE,
            size=st.sampled_from(["1Gi", "500M"]),
            storage_class=st.just("") | NAMES,
            modes=st.lists(st.sampled_from(ClaimAccess), min_size=1, unique=True).map(tuple),
            ephemeral=st.booleans(),
        )
        | st.builds(
            Git,
            path=PATHS,
            access=access,
            repository=st.just("https://git.example.com/a/b.git"),
            branch=st.just("") | NAMES,
        )
        | st.builds(
            Git,
            path=PATHS,
            access=access,
            repository=st.sampled_from(
                ["git@git.example.com:a/b.git", "ssh://git@git.example.com/a"]
            ),
            revision=st.just("") | NAMES,
            secret=NAMES,
            credential=st.sampled_from(GitAccess),
        )
        | st.builds(
            S3,
            path=PATHS,
            bucket=st.just("data.set-1"),
            prefix=st.just("") | NAMES,
            url=st.sampled_from(["", "https://s3.example.com"]),
            secret=st.just("") | NAMES,
        ),
        lambda volume: volume.path,
    )


TOLERATIONS = draw_tuples(
    st.builds(
        Toleration,
        NAMES,
        st.just(TolerationOperator.EQUAL),
        VALUES,
        st.sampled_from(TolerationEffect),
    )
    | st.builds(
        Toleration,
        st.just("") | NAMES,
        st.just(TolerationOperator.EXISTS),
        effect=st.sampled_from(TolerationEffect),
    )
    | st.builds(
        Toleration, NAMES, effect=st.just(TolerationEffect.NO_EXECUTE), seconds=st.integers(1, 1000)
    )
)

SECURITIES = st.builds(
    Security,
    st.none() | st.integers(1, 2**31 - 1),
    st.none() | st.integers(0, 2**31 - 1),
    draw_tuples(st.integers(0, 2**31 - 1)),
    OPTIONAL,
    st.booleans(),
    OPTIONAL,
    st.sampled_from([(), ("NET_ADMIN", "SYS_PTRACE")]),
    st.booleans(),
    st.booleans(),
    st.none() | st.sampled_from(SeccompProfile),
)

POOLS = draw_tuples(NAMES, str)

TOPOLOGIES = st.none() | st.builds(
    Topology, st.sampled_from(["topology.kubernetes.io/zone", "rack"]), st.booleans()
)


def setups(
    access: st.SearchStrategy[VolumeAccess] = CHANGEABLE, *, alone: bool = False
) -> st.SearchStrategy[Setup]:
    return st.builds(
        Setup,
        ENVIRONMENTS,
        COMPUTES,
        volumes(access),
        TOLERATIONS,
        VALUES,
        pairs(TEXTS),
        pairs(VALUES),
        SECURITIES,
        POOLS,
        st.none() if alone else TOPOLOGIES,
    )


def _build_changes() -> st.SearchStrategy[MasterChanges]:
    values: dict[str, st.SearchStrategy[Any]] = {
        "image": IMAGES,
        "command": WORDS,
        "variables": VARIABLES,
        "pull_policy": st.none() | st.sampled_from(PullPolicy),
        "gpus": GPUS,
        "memory_request": st.just("") | MEMORY,
        "volumes": volumes(CHANGEABLE),
        "labels": pairs(VALUES),
        "security": SECURITIES,
        "node_pools": POOLS,
        "topology": TOPOLOGIES,
    }
    return st.fixed_dictionaries({}, optional=values).map(lambda each: MasterChanges(**each))


CHANGES = st.just(UNCHANGED) | _build_changes()
NO_OPERATOR = st.sampled_from([None, RestartPolicy.NEVER, RestartPolicy.ON_FAILURE])


def lifecycles(restarts: Any, cleaning: Any) -> st.SearchStrategy[Lifecycle]:
    times = st.none() | st.integers(0, 3600)
    return st.builds(
        Lifecycle,
        st.none() | st.sampled_from(Priority),
        st.none() | st.sampled_from(Preemptibility),
        st.integers(0, 100),
        restarts,
        cleaning,
        times,
        times,
    )


RADARS = st.just(Radar()) | st.builds(
    Radar,
    st.booleans(),
    st.none() | st.integers(30, 86_400),
    st.none() | st.integers(110, 1000),
    st.none() | st.integers(60, 30 * 86_400),
    st.booleans(),
)


def _project(**parts: Any) -> st.SearchStrategy[Spec]:
    names = dict.fromkeys(("name", "project", "namespace", "queue"), NAMES)
    return st.builds(Spec, **names, radar=RADARS, **parts).map(_share_claims)


def _share_claims(spec: Spec) -> Spec:
    """Return the spec with claims that data workers can mount beside the training."""
    if spec.data_delivery is None:
        return spec
    volumes = tuple(
        replace(each, modes=(ClaimAccess.MANY_WRITE,))
        if isinstance(each, NewClaim) and each.modes == (ClaimAccess.ONE_NODE,)
        else each
        for each in spec.setup.volumes
    )
    return replace(spec, setup=replace(spec.setup, volumes=volumes))


STANDARD = _project(
    setup=setups(st.sampled_from(VolumeAccess), alone=True),
    runs=st.integers(1, 10_000),
    parallelism=st.integers(1, 10_000),
    lifecycle=lifecycles(NO_OPERATOR, st.none()),
)

_DISTRIBUTED: dict[str, Any] = {
    "architecture": st.just(Architecture.DISTRIBUTED),
    "framework": st.just(Framework.PYTORCH),
    "lifecycle": lifecycles(
        st.none() | st.sampled_from(RestartPolicy), st.none() | st.sampled_from(CleanPodPolicy)
    ),
    "workers": st.integers(1, 10_000),
}

WITH_MASTER = _project(
    setup=setups(st.sampled_from(VolumeAccess)),
    master=CHANGES,
    data_delivery=DATA_DELIVERIES,
    **_DISTRIBUTED,
)

WORKERS_ONLY = _project(
    setup=setups(), configuration=st.just(Configuration.WORKERS_ONLY), **_DISTRIBUTED
)

ELASTIC = _project(
    setup=setups(),
    configuration=st.sampled_from(Configuration),
    elastic=st.builds(
        ElasticSettings, st.integers(1, 4), st.integers(5, 100), st.none() | st.integers(0, 100)
    ),
    data_delivery=DATA_DELIVERIES,
    **_DISTRIBUTED | {"workers": st.just(4)},
)


def _make_total_whole(spec: Spec) -> Spec:
    """Return the spec with a number of GPUs for each pod that its total is a multiple of."""
    devices = max(1, spec.setup.compute.gpus.devices)
    compute = replace(spec.setup.compute, gpus=Gpus(devices))
    total = devices * (1 + (spec.total_gpus or 1))
    return replace(spec, setup=replace(spec.setup, compute=compute), total_gpus=total)


TOTAL = _project(
    setup=setups(),
    configuration=st.sampled_from(Configuration),
    total_gpus=st.integers(1, 9_000),
    **_DISTRIBUTED | {"workers": st.just(1)},
).map(_make_total_whole)
"""As it is asked for: the number of workers is not worked out yet."""

TENSORFLOW = _project(
    setup=setups(),
    configuration=st.sampled_from(Configuration),
    parameter_servers=st.integers(0, 4),
    **_DISTRIBUTED | {"framework": st.just(Framework.TENSORFLOW)},
)

FIRST_APART = _project(
    setup=setups(st.sampled_from(VolumeAccess)),
    configuration=st.just(Configuration.WORKERS_ONLY),
    **_DISTRIBUTED | {"framework": st.sampled_from([Framework.PYTORCH, Framework.TENSORFLOW])},
)

XGBOOST = _project(
    setup=setups(st.sampled_from(VolumeAccess)),
    master=CHANGES,
    **_DISTRIBUTED | {"framework": st.just(Framework.XGBOOST)},
)

JAX = _project(
    setup=setups(),
    configuration=st.just(Configuration.WORKERS_ONLY),
    **_DISTRIBUTED | {"framework": st.just(Framework.JAX)},
)

PADDLE = _project(
    setup=setups(),
    configuration=st.sampled_from(Configuration),
    **_DISTRIBUTED | {"framework": st.just(Framework.PADDLE)},
)


MPI = _project(
    setup=setups(),
    master=CHANGES,
    mpi=st.builds(MpiSettings, st.integers(1, 8), st.sampled_from(LauncherCreation), PATHS),
    data_delivery=DATA_DELIVERIES,
    **_DISTRIBUTED
    | {
        "framework": st.just(Framework.MPI),
        "lifecycle": lifecycles(NO_OPERATOR, st.none() | st.sampled_from(CleanPodPolicy)),
    },
)

ANY_SPEC = (
    STANDARD
    | WITH_MASTER
    | WORKERS_ONLY
    | FIRST_APART
    | ELASTIC
    | TOTAL
    | TENSORFLOW
    | XGBOOST
    | JAX
    | PADDLE
    | MPI
)

SIMPLE_ENVIRONMENTS = st.builds(
    Environment, IMAGES, pull_secrets=PULL_SECRETS, command=WORDS, args=WORDS, variables=VARIABLES
)

TRAINJOBS = _project(
    setup=st.builds(
        Setup,
        SIMPLE_ENVIRONMENTS,
        COMPUTES,
        draw_tuples(
            st.builds(EmptyDir, path=PATHS, access=CHANGEABLE)
            | st.builds(Claim, path=PATHS, claim=NAMES),
            lambda volume: volume.path,
        ),
        TOLERATIONS,
        VALUES,
        pairs(TEXTS),
        pairs(VALUES),
        st.builds(Security, st.none() | st.integers(1, 1000), read_only_root=st.booleans()),
        POOLS,
        TOPOLOGIES,
    ),
    framework=st.sampled_from([Framework.PYTORCH, Framework.XGBOOST]),
    lifecycle=st.builds(
        Lifecycle,
        st.none() | st.sampled_from(Priority),
        grace_seconds=st.none() | st.integers(0, 60),
    ),
    **{name: each for name, each in _DISTRIBUTED.items() if name in ("architecture", "workers")},
)
"""What a TrainJob can say, too."""

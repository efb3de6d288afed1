"""What is wrong with the setup of one kind of pod."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from workloads import quantities
from workloads.specs import rules
from workloads.specs.choices import (
    CAPABILITIES,
    Access,
    GitAccess,
    Source,
    TolerationEffect,
    TolerationOperator,
)
from workloads.specs.parts import (
    S3,
    Claim,
    Compute,
    ConfigMap,
    EmptyDir,
    Environment,
    Extended,
    Git,
    Gpus,
    HostPath,
    NewClaim,
    Nfs,
    Pair,
    Secret,
    Security,
    Setup,
    Toleration,
    Variable,
    Volume,
)

MOST_LISTED = 256
"""Variables, arguments, labels and so on, of each."""
MOST_VOLUMES = 64
MOST_DEVICES = 128
MOST_TEXT = 256 * 1024
"""Characters of command, arguments and variables together: more cannot be given to a process."""
MOST_ANNOTATIONS = 128 * 1024
MOST_ID = 2**31 - 1
CPU = ("1m", "4096")
MEMORY = ("1Mi", "64Ti")
FINEST_PORTION = Decimal("0.0001")
DEFAULT_POOL = "default"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a mount path

Wrong = tuple[str, str, str]
"""The field's path, its name in words at the start of a sentence, and what is wrong with it ("must
...").
"""


def of_setup(setup: Setup) -> Iterator[Wrong]:
    yield from _prefixed("environment.", _environment(setup.environment))
    yield from _prefixed("compute.", _compute(setup.compute))
    yield from _volumes(setup)
    yield from _many("tolerations", "tolerations", setup.tolerations)
    for index, toleration in enumerate(setup.tolerations):
        yield from _prefixed(f"tolerations.{index}.", _toleration(index + 1, toleration))
    yield from _one("node_type", "The node type", rules.label_value(setup.node_type))
    yield from _many("node_pools", "node pools", setup.node_pools)
    yield from _twice("node_pools", "node pool", setup.node_pools)
    for index, pool in enumerate(setup.node_pools):
        yield from _one(f"node_pools.{index}", f"Node pool {index + 1}", _node_pool(pool))
    if setup.topology is not None:
        yield from _one("topology.key", "The key of the topology", rules.key(setup.topology.key))
    yield from _pairs("labels", "label", setup.labels)
    yield from _pairs("annotations", "annotation", setup.annotations)
    yield from _prefixed("security.", _security(setup.security))


def _node_pool(pool: str) -> str:
    if pool == DEFAULT_POOL:
        return (
            f"must not be {DEFAULT_POOL}: nodes that are in no pool have no label. Name no pool, "
            "and any node will do"
        )
    return rules.label_value(pool) if pool else "must be given"


def _environment(environment: Environment) -> Iterator[Wrong]:
    yield from _one("image", "The image", rules.image(environment.image))
    for field, words in (
        ("pull_secrets", "pull secrets"),
        ("command", "words of the command"),
        ("args", "arguments"),
    ):
        yield from _many(field, words, getattr(environment, field))
    for index, secret in enumerate(environment.pull_secrets):
        yield from _one(
            f"pull_secrets.{index}", f"Pull secret {index + 1}", rules.object_name(secret)
        )
    repeated = sorted(
        {
            secret
            for secret in environment.pull_secrets
            if environment.pull_secrets.count(secret) > 1
        }
    )
    if repeated:
        yield "pull_secrets", f"The pull secret {repeated[0][:80]}", "must be given once only"
    for field, words in (("command", "The command"), ("args", "The arguments")):
        wrong = next(filter(None, map(rules.text, getattr(environment, field))), "")
        yield from _one(field, words, wrong)
    if environment.working_dir:
        yield from _one("working_dir", "The working directory", rules.path(environment.working_dir))
    yield from _many("variables", "environment variables", environment.variables)
    yield from _twice(
        "variables",
        "environment variable",
        [variable.name for variable in environment.variables],
        "name",
    )
    for index, variable in enumerate(environment.variables):
        yield from _prefixed(f"variables.{index}.", _variable(index + 1, variable))
    texts = [
        *environment.command,
        *environment.args,
        *(variable.name + variable.value for variable in environment.variables),
    ]
    if sum(map(len, texts)) > MOST_TEXT:
        yield (
            "variables",
            "Command, arguments and environment variables",
            f"must have at most {MOST_TEXT:,} characters together",
        )


def _variable(number: int, variable: Variable) -> Iterator[Wrong]:
    words = (
        f"environment variable {number}"
        if rules.variable_name(variable.name)
        else f"environment variable {variable.name}"
    )
    yield from _one("name", f"The name of {words}", rules.variable_name(variable.name))
    match variable.source:
        case Source.CUSTOM:
            yield from _one("value", f"The value of {words}", rules.text(variable.value))
        case Source.POD_FIELD:
            yield from _one("key", f"The pod field of {words}", rules.pod_field(variable.key))
        case Source.SECRET | Source.CONFIG_MAP:
            noun = "Secret" if variable.source is Source.SECRET else "ConfigMap"
            yield from _one(
                "object_name", f"The {noun} of {words}", rules.object_name(variable.object_name)
            )
            yield from _one("key", f"The key of {words}", rules.config_key(variable.key))


def _compute(compute: Compute) -> Iterator[Wrong]:
    yield from _prefixed("gpus.", _gpus(compute.gpus))
    asked = (
        ("cpu", "CPU", CPU, Decimal("0.001"), compute.cpu_request, compute.cpu_limit),
        ("memory", "CPU memory", MEMORY, Decimal(1), compute.memory_request, compute.memory_limit),
    )
    for field, words, (least, most), step, request, limit in asked:
        wrong = [
            rules.quantity(value, least=least, most=most, step=step) if value else ""
            for value in (request, limit)
        ]
        yield from _one(f"{field}_request", f"The {words} request", wrong[0])
        yield from _one(f"{field}_limit", f"The {words} limit", wrong[1])
        if (
            request
            and limit
            and not any(wrong)
            and quantities.parse(request) > quantities.parse(limit)
        ):
            yield (
                f"{field}_limit",
                f"The {words} limit",
                f"must not be below the request, {request}",
            )
    yield from _many("extended", "extended resources", compute.extended)
    yield from _twice(
        "extended", "extended resource", [each.resource for each in compute.extended], "resource"
    )
    for index, each in enumerate(compute.extended):
        yield from _prefixed(f"extended.{index}.", _extended(index + 1, each))


def _extended(number: int, asked: Extended) -> Iterator[Wrong]:
    wrong = rules.key(asked.resource)
    if not wrong and "/" not in asked.resource:
        wrong = "must have a domain, as in rdma/hca"
    elif "kubernetes.io/" in asked.resource or asked.resource.startswith("requests."):
        wrong = "must not be one of Kubernetes' own"
    elif asked.resource == "nvidia.com/gpu":
        wrong = "must not be nvidia.com/gpu: GPU devices are asked for above"
    yield from _one("resource", f"The name of extended resource {number}", wrong)
    amount = rules.quantity(asked.quantity, least="1", most="1M", step=Decimal(1))
    yield from _one("quantity", f"The quantity of extended resource {number}", amount)


def _gpus(gpus: Gpus) -> Iterator[Wrong]:
    yield from _one("devices", "GPU devices per pod", rules.count(gpus.devices, 0, MOST_DEVICES))
    if gpus.portion is not None and gpus.memory:
        yield (
            "memory",
            "GPU memory",
            "cannot be given together with a GPU portion: choose one of them",
        )
    portion = gpus.portion
    if portion is not None and not (
        portion.is_finite() and FINEST_PORTION <= portion <= 1 and not portion % FINEST_PORTION
    ):
        yield (
            "portion",
            "The GPU portion",
            f"must be above 0 and at most 1, in steps of {FINEST_PORTION}",
        )
    if gpus.memory:
        yield from _one(
            "memory", "GPU memory", rules.quantity(gpus.memory, least="1Mi", most="1Ti")
        )


def _volumes(setup: Setup) -> Iterator[Wrong]:
    yield from _many("volumes", "volumes", setup.volumes, MOST_VOLUMES)
    paths = [volume.path.rstrip("/") for volume in setup.volumes]
    yield from _twice("volumes", "container path", paths, "path")
    for index, volume in enumerate(setup.volumes):
        where = f"volume {index + 1} ({volume.noun})"
        wrong = rules.mount_path(volume.path)
        if not wrong and setup.compute.large_shm and paths[index] == SHARED_MEMORY:
            wrong = f"must not be {SHARED_MEMORY}, which the larger shared memory takes"
        yield from _one(f"volumes.{index}.path", f"The container path of {where}", wrong)
        yield from _prefixed(f"volumes.{index}.", _source(where, volume))


def _source(where: str, volume: Volume) -> Iterator[Wrong]:
    match volume:
        case EmptyDir():
            if volume.size:
                yield from _one(
                    "size",
                    f"The size of {where}",
                    rules.quantity(volume.size, least="1", most="1Pi", step=Decimal(1)),
                )
        case HostPath():
            yield from _one("source", f"The host path of {where}", rules.path(volume.source))
        case ConfigMap() | Secret():
            yield from _one("name", f"The name of {where}", rules.object_name(volume.name))
            if volume.mode is not None and not 0 <= volume.mode <= 0o777:
                yield "mode", f"The file mode of {where}", "must be from 0000 to 0777"
            if isinstance(volume, ConfigMap) and volume.sub_path:
                yield from _one("sub_path", f"The file of {where}", rules.sub_path(volume.sub_path))
            if volume.access is not Access.READ_ONLY:
                yield (
                    "access",
                    f"The access of {where}",
                    "must be read-only: the cluster writes its files",
                )
        case Claim():
            yield from _one("claim", f"The claim of {where}", rules.object_name(volume.claim))
        case NewClaim():
            yield from _new_claim(where, volume)
        case Git():
            yield from _git(where, volume)
        case S3():
            yield from _s3(where, volume)
        case Nfs():
            yield from _one("server", f"The server of {where}", rules.host(volume.server))
            yield from _one("export", f"The exported path of {where}", rules.path(volume.export))


def _new_claim(where: str, volume: NewClaim) -> Iterator[Wrong]:
    wrong = (
        rules.quantity(volume.size, least="1Mi", most="64Ti", step=Decimal(1))
        if volume.size
        else "must be given"
    )
    yield from _one("size", f"The size of {where}", wrong)
    if volume.storage_class:
        yield from _one(
            "storage_class",
            f"The storage class of {where}",
            rules.object_name(volume.storage_class),
        )
    if not volume.modes:
        yield "modes", f"The access modes of {where}", "must be at least one"
    if volume.ephemeral and volume.access is Access.RANK_0_WRITES:
        yield (
            "access",
            f"The access of {where}",
            "cannot be for rank 0 only: each pod has one of its own",
        )


def _git(where: str, volume: Git) -> Iterator[Wrong]:
    yield from _one("repository", f"The repository of {where}", rules.repository(volume.repository))
    for field, words, value in (
        ("branch", "branch", volume.branch),
        ("revision", "revision", volume.revision),
    ):
        if value:
            yield from _one(field, f"The {words} of {where}", rules.revision(value))
    if volume.secret:
        yield from _one("secret", f"The Secret of {where}", rules.object_name(volume.secret))
    if bool(volume.secret) != (volume.credential is not None):
        yield (
            "secret",
            f"The Secret of {where}",
            "must be named together with what it holds: a password or an SSH key",
        )
    if volume.credential is GitAccess.SSH_KEY and volume.repository.startswith(
        ("https://", "http://")
    ):
        yield (
            "repository",
            f"The repository of {where}",
            "must be an SSH address where an SSH key opens it",
        )


def _s3(where: str, volume: S3) -> Iterator[Wrong]:
    yield from _one("bucket", f"The bucket of {where}", rules.bucket(volume.bucket))
    if volume.prefix:
        yield from _one("prefix", f"The prefix of {where}", rules.sub_path(volume.prefix))
    if volume.url:
        yield from _one("url", f"The service of {where}", rules.url(volume.url))
    if volume.secret:
        yield from _one("secret", f"The Secret of {where}", rules.object_name(volume.secret))
    if volume.access is not Access.READ_ONLY:
        yield (
            "access",
            f"The access of {where}",
            "must be read-only: it is a copy, and nothing written goes back to the bucket",
        )


def _toleration(number: int, toleration: Toleration) -> Iterator[Wrong]:
    where = f"toleration {number}"
    if toleration.key:
        yield from _one("key", f"The key of {where}", rules.key(toleration.key))
    elif toleration.operator is TolerationOperator.EQUAL:
        yield (
            "key",
            f"The key of {where}",
            "must be given, or the operator be Exists, which then means every taint",
        )
    if toleration.operator is TolerationOperator.EXISTS and toleration.value:
        yield "value", f"The value of {where}", "must be empty with the operator Exists"
    yield from _one("value", f"The value of {where}", rules.label_value(toleration.value))
    if toleration.seconds is not None:
        if toleration.effect is not TolerationEffect.NO_EXECUTE:
            yield (
                "seconds",
                f"The seconds of {where}",
                "can be given with the effect NoExecute only",
            )
        yield from _one(
            "seconds", f"The seconds of {where}", rules.count(toleration.seconds, 1, MOST_ID)
        )


def _pairs(field: str, noun: str, pairs: Sequence[Pair]) -> Iterator[Wrong]:
    yield from _many(field, f"{noun}s", pairs)
    yield from _twice(field, noun, [pair.key for pair in pairs], "key")
    for index, pair in enumerate(pairs):
        yield from _one(
            f"{field}.{index}.key", f"The name of {noun} {index + 1}", rules.own_key(pair.key)
        )
        wrong = rules.label_value(pair.value) if noun == "label" else rules.text(pair.value)
        yield from _one(f"{field}.{index}.value", f"The value of {noun} {index + 1}", wrong)
    if (
        sum(len(pair.key) + len(pair.value.encode(errors="replace")) for pair in pairs)
        > MOST_ANNOTATIONS
    ):
        yield field, f"All {noun}s", f"must have at most {MOST_ANNOTATIONS:,} bytes together"


def _security(security: Security) -> Iterator[Wrong]:
    for field, words, value in (
        ("uid", "The user ID", security.uid),
        ("gid", "The group ID", security.gid),
    ):
        if value is not None:
            yield from _one(field, words, rules.count(value, 0, MOST_ID))
    if security.non_root and security.uid == 0:
        yield "uid", "The user ID", "must not be 0 when running as root is forbidden"
    yield from _many("supplemental_groups", "supplemental groups", security.supplemental_groups, 64)
    wrong = next(
        filter(None, (rules.count(group, 0, MOST_ID) for group in security.supplemental_groups)), ""
    )
    yield from _one("supplemental_groups", "Each supplemental group", wrong)
    for capability in security.capabilities:
        if capability not in CAPABILITIES:
            yield (
                "capabilities",
                f"The capability {capability[:40]}",
                "is none of the Linux capabilities",
            )


def _one(field: str, words: str, wrong: str) -> Iterator[Wrong]:
    if wrong:
        yield field, words, wrong


def _many(
    field: str, words: str, listed: Sequence[object], most: int = MOST_LISTED
) -> Iterator[Wrong]:
    if len(listed) > most:
        yield field, f"The number of {words}", f"must be at most {most}"


def _twice(field: str, noun: str, values: Sequence[str], part: str = "") -> Iterator[Wrong]:
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield (
                f"{field}.{index}.{part}".rstrip("."),
                f"The {noun} {value[:80]}",
                "must be given once only",
            )
        seen.add(value)


def _prefixed(prefix: str, wrong: Iterable[Wrong]) -> Iterator[Wrong]:
    return ((prefix + field, words, text) for field, words, text in wrong)

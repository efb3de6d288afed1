"""Validation of the setup of one kind of pod."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from workloads import quantities
from workloads.specs import value_rules
from workloads.specs.choices import (
    CAPABILITIES,
    GitAccess,
    TolerationEffect,
    TolerationOperator,
    VariableSource,
    VolumeAccess,
)
from workloads.specs.fields import FIELDS, get_value
from workloads.specs.fields.types import Number, Pairs
from workloads.specs.pod_setup import (
    S3,
    Claim,
    Compute,
    ConfigMap,
    EmptyDir,
    Environment,
    ExtendedResource,
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

MAX_LIST_ITEMS = 256
"""The most variables, arguments, labels and so on, of each kind."""
MAX_VOLUMES = 64
MAX_GPU_DEVICES = 128
MAX_COMMAND_CHARACTERS = 256 * 1024
"""The most characters of command, arguments and variables together: a process cannot be given more.
"""
MAX_PAIRS_BYTES = 128 * 1024
MAX_INT32 = 2**31 - 1
CPU_RANGE = ("1m", "4096")
MEMORY_RANGE = ("1Mi", "64Ti")
PORTION_STEP = Decimal("0.0001")
DEFAULT_NODE_POOL = "default"
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108 - a mount path

FieldProblem = tuple[str, str, str]
"""A field's path, its title, and what is wrong with it.

The title begins a sentence that the problem ends ("must ...").
"""


def find_setup_problems(setup: Setup) -> Iterator[FieldProblem]:
    """Yield everything that is wrong with the setup of one kind of pod."""
    yield from _prefix_fields("environment.", _check_environment(setup.environment))
    yield from _prefix_fields("compute.", _check_compute(setup.compute))
    yield from _check_volumes(setup)
    yield from _check_length("tolerations", "tolerations", setup.tolerations)
    for index, toleration in enumerate(setup.tolerations):
        yield from _prefix_fields(f"tolerations.{index}.", _check_toleration(index + 1, toleration))
    yield from _report_problem(
        "node_type", "The node type", value_rules.check_label_value(setup.node_type)
    )
    yield from _check_length("node_pools", "node pools", setup.node_pools)
    yield from _check_unique("node_pools", "node pool", setup.node_pools)
    for index, pool in enumerate(setup.node_pools):
        yield from _report_problem(
            f"node_pools.{index}", f"Node pool {index + 1}", _check_node_pool(pool)
        )
    if setup.topology is not None:
        yield from _report_problem(
            "topology.key", "The key of the topology", value_rules.check_key(setup.topology.key)
        )
    for field in FIELDS.values():
        if isinstance(field.type, Pairs):
            yield from _check_pairs(field.pod_path, field.type, get_value(setup, field.pod_path))
    yield from _prefix_fields("security.", _check_security(setup.security))


def _check_node_pool(pool: str) -> str:
    if pool == DEFAULT_NODE_POOL:
        return (
            f"must not be {DEFAULT_NODE_POOL}: nodes that are in no pool have no label. Name no "
            "pool, and any node will do"
        )
    return value_rules.check_label_value(pool) if pool else "must be given"


def _check_environment(environment: Environment) -> Iterator[FieldProblem]:
    yield from _report_problem("image", "The image", value_rules.check_image(environment.image))
    for field, title in (
        ("pull_secrets", "pull secrets"),
        ("command", "words of the command"),
        ("args", "arguments"),
    ):
        yield from _check_length(field, title, getattr(environment, field))
    for index, secret in enumerate(environment.pull_secrets):
        yield from _report_problem(
            f"pull_secrets.{index}",
            f"Pull secret {index + 1}",
            value_rules.check_object_name(secret),
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
    for field, title in (("command", "The command"), ("args", "The arguments")):
        problem = next(filter(None, map(value_rules.check_text, getattr(environment, field))), "")
        yield from _report_problem(field, title, problem)
    if environment.working_dir:
        yield from _report_problem(
            "working_dir", "The working directory", value_rules.check_path(environment.working_dir)
        )
    yield from _check_length("variables", "environment variables", environment.variables)
    yield from _check_unique(
        "variables",
        "environment variable",
        [variable.name for variable in environment.variables],
        "name",
    )
    for index, variable in enumerate(environment.variables):
        yield from _prefix_fields(f"variables.{index}.", _check_variable(index + 1, variable))
    texts = [
        *environment.command,
        *environment.args,
        *(variable.name + variable.value for variable in environment.variables),
    ]
    if sum(map(len, texts)) > MAX_COMMAND_CHARACTERS:
        yield (
            "variables",
            "Command, arguments and environment variables",
            f"must have at most {MAX_COMMAND_CHARACTERS:,} characters together",
        )


def _check_variable(number: int, variable: Variable) -> Iterator[FieldProblem]:
    title = (
        f"environment variable {number}"
        if value_rules.check_variable_name(variable.name)
        else f"environment variable {variable.name}"
    )
    yield from _report_problem(
        "name", f"The name of {title}", value_rules.check_variable_name(variable.name)
    )
    match variable.source:
        case VariableSource.CUSTOM:
            yield from _report_problem(
                "value", f"The value of {title}", value_rules.check_text(variable.value)
            )
        case VariableSource.POD_FIELD:
            yield from _report_problem(
                "key", f"The pod field of {title}", value_rules.check_pod_field(variable.key)
            )
        case VariableSource.SECRET | VariableSource.CONFIG_MAP:
            noun = "Secret" if variable.source is VariableSource.SECRET else "ConfigMap"
            yield from _report_problem(
                "object_name",
                f"The {noun} of {title}",
                value_rules.check_object_name(variable.object_name),
            )
            yield from _report_problem(
                "key", f"The key of {title}", value_rules.check_config_key(variable.key)
            )


def _check_compute(compute: Compute) -> Iterator[FieldProblem]:
    yield from _prefix_fields("gpus.", _check_gpus(compute.gpus))
    resources = (
        ("cpu", "CPU", CPU_RANGE, Decimal("0.001"), compute.cpu_request, compute.cpu_limit),
        (
            "memory",
            "CPU memory",
            MEMORY_RANGE,
            Decimal(1),
            compute.memory_request,
            compute.memory_limit,
        ),
    )
    for field, title, (minimum, maximum), step, request, limit in resources:
        problems = [
            value_rules.check_quantity(value, minimum=minimum, maximum=maximum, step=step)
            if value
            else ""
            for value in (request, limit)
        ]
        yield from _report_problem(f"{field}_request", f"The {title} request", problems[0])
        yield from _report_problem(f"{field}_limit", f"The {title} limit", problems[1])
        if (
            request
            and limit
            and not any(problems)
            and quantities.parse_quantity(request) > quantities.parse_quantity(limit)
        ):
            yield (
                f"{field}_limit",
                f"The {title} limit",
                f"must not be below the request, {request}",
            )
    yield from _check_length("extended", "extended resources", compute.extended)
    yield from _check_unique(
        "extended", "extended resource", [each.resource for each in compute.extended], "resource"
    )
    for index, each in enumerate(compute.extended):
        yield from _prefix_fields(f"extended.{index}.", _check_extended_resource(index + 1, each))


def _check_extended_resource(number: int, extended: ExtendedResource) -> Iterator[FieldProblem]:
    problem = value_rules.check_key(extended.resource)
    if not problem and "/" not in extended.resource:
        problem = "must have a domain, as in rdma/hca"
    elif "kubernetes.io/" in extended.resource or extended.resource.startswith("requests."):
        problem = "must not be one of Kubernetes' own"
    elif extended.resource == "nvidia.com/gpu":
        problem = "must not be nvidia.com/gpu: GPU devices are asked for above"
    yield from _report_problem("resource", f"The name of extended resource {number}", problem)
    amount = value_rules.check_quantity(
        extended.quantity, minimum="1", maximum="1M", step=Decimal(1)
    )
    yield from _report_problem("quantity", f"The quantity of extended resource {number}", amount)


def _check_gpus(gpus: Gpus) -> Iterator[FieldProblem]:
    yield from _report_problem(
        "devices", "GPU devices per pod", value_rules.check_count(gpus.devices, 0, MAX_GPU_DEVICES)
    )
    if gpus.portion is not None and gpus.memory:
        yield (
            "memory",
            "GPU memory",
            "cannot be given together with a GPU portion: choose one of them",
        )
    portion = gpus.portion
    if portion is not None and not (
        portion.is_finite() and PORTION_STEP <= portion <= 1 and not portion % PORTION_STEP
    ):
        yield (
            "portion",
            "The GPU portion",
            f"must be above 0 and at most 1, in steps of {PORTION_STEP}",
        )
    if gpus.memory:
        yield from _report_problem(
            "memory",
            "GPU memory",
            value_rules.check_quantity(gpus.memory, minimum="1Mi", maximum="1Ti"),
        )


def _check_volumes(setup: Setup) -> Iterator[FieldProblem]:
    yield from _check_length("volumes", "volumes", setup.volumes, MAX_VOLUMES)
    paths = [volume.path.rstrip("/") for volume in setup.volumes]
    yield from _check_unique("volumes", "container path", paths, "path")
    for index, volume in enumerate(setup.volumes):
        title = f"volume {index + 1} ({volume.noun})"
        problem = value_rules.check_mount_path(volume.path)
        if not problem and setup.compute.large_shm and paths[index] == SHARED_MEMORY_PATH:
            problem = f"must not be {SHARED_MEMORY_PATH}, which the larger shared memory takes"
        yield from _report_problem(
            f"volumes.{index}.path", f"The container path of {title}", problem
        )
        yield from _prefix_fields(f"volumes.{index}.", _check_volume_source(title, volume))


def _check_volume_source(title: str, volume: Volume) -> Iterator[FieldProblem]:
    match volume:
        case EmptyDir():
            if volume.size:
                yield from _report_problem(
                    "size",
                    f"The size of {title}",
                    value_rules.check_quantity(
                        volume.size, minimum="1", maximum="1Pi", step=Decimal(1)
                    ),
                )
        case HostPath():
            yield from _report_problem(
                "source", f"The host path of {title}", value_rules.check_path(volume.source)
            )
        case ConfigMap() | Secret():
            yield from _report_problem(
                "name", f"The name of {title}", value_rules.check_object_name(volume.name)
            )
            if volume.mode is not None and not 0 <= volume.mode <= 0o777:
                yield "mode", f"The file mode of {title}", "must be from 0000 to 0777"
            if isinstance(volume, ConfigMap) and volume.sub_path:
                yield from _report_problem(
                    "sub_path", f"The file of {title}", value_rules.check_sub_path(volume.sub_path)
                )
            if volume.access is not VolumeAccess.READ_ONLY:
                yield (
                    "access",
                    f"The access of {title}",
                    "must be read-only: the cluster writes its files",
                )
        case Claim():
            yield from _report_problem(
                "claim", f"The claim of {title}", value_rules.check_object_name(volume.claim)
            )
        case NewClaim():
            yield from _check_new_claim(title, volume)
        case Git():
            yield from _check_git(title, volume)
        case S3():
            yield from _check_s3(title, volume)
        case Nfs():
            yield from _report_problem(
                "server", f"The server of {title}", value_rules.check_host(volume.server)
            )
            yield from _report_problem(
                "export", f"The exported path of {title}", value_rules.check_path(volume.export)
            )


def _check_new_claim(title: str, volume: NewClaim) -> Iterator[FieldProblem]:
    problem = (
        value_rules.check_quantity(volume.size, minimum="1Mi", maximum="64Ti", step=Decimal(1))
        if volume.size
        else "must be given"
    )
    yield from _report_problem("size", f"The size of {title}", problem)
    if volume.storage_class:
        yield from _report_problem(
            "storage_class",
            f"The storage class of {title}",
            value_rules.check_object_name(volume.storage_class),
        )
    if not volume.modes:
        yield "modes", f"The access modes of {title}", "must be at least one"
    if volume.ephemeral and volume.access is VolumeAccess.RANK_0_WRITES:
        yield (
            "access",
            f"The access of {title}",
            "cannot be for rank 0 only: each pod has one of its own",
        )


def _check_git(title: str, volume: Git) -> Iterator[FieldProblem]:
    yield from _report_problem(
        "repository", f"The repository of {title}", value_rules.check_repository(volume.repository)
    )
    for field, noun, value in (
        ("branch", "branch", volume.branch),
        ("revision", "revision", volume.revision),
    ):
        if value:
            yield from _report_problem(
                field, f"The {noun} of {title}", value_rules.check_revision(value)
            )
    if volume.secret:
        yield from _report_problem(
            "secret", f"The Secret of {title}", value_rules.check_object_name(volume.secret)
        )
    if bool(volume.secret) != (volume.credential is not None):
        yield (
            "secret",
            f"The Secret of {title}",
            "must be named together with what it holds: a password or an SSH key",
        )
    if volume.credential is GitAccess.SSH_KEY and volume.repository.startswith(
        ("https://", "http://")
    ):
        yield (
            "repository",
            f"The repository of {title}",
            "must be an SSH address where an SSH key opens it",
        )


def _check_s3(title: str, volume: S3) -> Iterator[FieldProblem]:
    yield from _report_problem(
        "bucket", f"The bucket of {title}", value_rules.check_bucket(volume.bucket)
    )
    if volume.prefix:
        yield from _report_problem(
            "prefix", f"The prefix of {title}", value_rules.check_sub_path(volume.prefix)
        )
    if volume.url:
        yield from _report_problem(
            "url", f"The service of {title}", value_rules.check_url(volume.url)
        )
    if volume.secret:
        yield from _report_problem(
            "secret", f"The Secret of {title}", value_rules.check_object_name(volume.secret)
        )
    if volume.access is not VolumeAccess.READ_ONLY:
        yield (
            "access",
            f"The access of {title}",
            "must be read-only: it is a copy, and nothing written goes back to the bucket",
        )


def _check_toleration(number: int, toleration: Toleration) -> Iterator[FieldProblem]:
    title = f"toleration {number}"
    if toleration.key:
        yield from _report_problem(
            "key", f"The key of {title}", value_rules.check_key(toleration.key)
        )
    elif toleration.operator is TolerationOperator.EQUAL:
        yield (
            "key",
            f"The key of {title}",
            "must be given, or the operator be Exists, which then means every taint",
        )
    if toleration.operator is TolerationOperator.EXISTS and toleration.value:
        yield "value", f"The value of {title}", "must be empty with the operator Exists"
    yield from _report_problem(
        "value", f"The value of {title}", value_rules.check_label_value(toleration.value)
    )
    if toleration.seconds is not None:
        if toleration.effect is not TolerationEffect.NO_EXECUTE:
            yield (
                "seconds",
                f"The seconds of {title}",
                "can be given with the effect NoExecute only",
            )
        yield from _report_problem(
            "seconds",
            f"The seconds of {title}",
            value_rules.check_count(toleration.seconds, 1, MAX_INT32),
        )


def _check_pairs(field: str, kind: Pairs, pairs: Sequence[Pair]) -> Iterator[FieldProblem]:
    noun = kind.noun
    check_key = (
        value_rules.check_selector_key if kind.are_of_nodes else value_rules.check_settable_key
    )
    yield from _check_length(field, f"{noun}s", pairs)
    yield from _check_unique(field, noun, [pair.key for pair in pairs], "key")
    for index, pair in enumerate(pairs):
        yield from _report_problem(
            f"{field}.{index}.key",
            f"The name of {noun} {index + 1}",
            check_key(pair.key),
        )
        check_value = value_rules.check_text if kind.has_any_text else value_rules.check_label_value
        yield from _report_problem(
            f"{field}.{index}.value",
            f"The value of {noun} {index + 1}",
            check_value(pair.value),
        )
    if (
        sum(len(pair.key) + len(pair.value.encode(errors="replace")) for pair in pairs)
        > MAX_PAIRS_BYTES
    ):
        yield field, f"All {noun}s", f"must have at most {MAX_PAIRS_BYTES:,} bytes together"


def _check_security(security: Security) -> Iterator[FieldProblem]:
    for field in FIELDS.values():
        below = field.path.removeprefix("setup.security.")
        value = get_value(security, below) if below != field.path else None
        if value is not None and isinstance(field.type, Number):
            yield from _report_problem(
                below,
                field.subject,
                value_rules.check_count(value, field.type.least, field.type.most),
            )
    if security.non_root and security.uid == 0:
        yield "uid", "The user ID", "must not be 0 when running as root is forbidden"
    yield from _check_length(
        "supplemental_groups", "supplemental groups", security.supplemental_groups, 64
    )
    problem = next(
        filter(
            None,
            (
                value_rules.check_count(group, 0, MAX_INT32)
                for group in security.supplemental_groups
            ),
        ),
        "",
    )
    yield from _report_problem("supplemental_groups", "Each supplemental group", problem)
    for capability in security.capabilities:
        if capability not in CAPABILITIES:
            yield (
                "capabilities",
                f"The capability {capability[:40]}",
                "is none of the Linux capabilities",
            )


def _report_problem(field: str, title: str, problem: str) -> Iterator[FieldProblem]:
    """Yield a problem of a field, unless the rule returned ""."""
    if problem:
        yield field, title, problem


def _check_length(
    field: str, noun: str, items: Sequence[object], maximum: int = MAX_LIST_ITEMS
) -> Iterator[FieldProblem]:
    """Yield a problem where a list has more items than the maximum."""
    if len(items) > maximum:
        yield field, f"The number of {noun}", f"must be at most {maximum}"


def _check_unique(
    field: str, noun: str, values: Sequence[str], part: str = ""
) -> Iterator[FieldProblem]:
    """Yield a problem for each value that is given more than once."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        if value in seen:
            yield (
                f"{field}.{index}.{part}".rstrip("."),
                f"The {noun} {value[:80]}",
                "must be given once only",
            )
        seen.add(value)


def _prefix_fields(prefix: str, problems: Iterable[FieldProblem]) -> Iterator[FieldProblem]:
    """Yield the problems with a prefix before each field's path."""
    return ((prefix + field, title, text) for field, title, text in problems)

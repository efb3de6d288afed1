"""Validation of the setup of one kind of pod."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from workloads import quantities
from workloads.specs import value_rules
from workloads.specs.choices import (
    CAPABILITIES,
    TolerationEffect,
    TolerationOperator,
    VariableSource,
)
from workloads.specs.fields import FIELDS, get_value
from workloads.specs.fields.compute import MAX_GPU_DEVICES
from workloads.specs.fields.types import Number, Pairs
from workloads.specs.pod_setup import (
    Compute,
    Environment,
    ExtendedResource,
    Gpus,
    Pair,
    Security,
    Setup,
    Toleration,
    Variable,
)
from workloads.specs.problem_reports import (
    FieldProblem,
    check_length,
    check_unique,
    prefix_fields,
    report_problem,
)
from workloads.specs.volume_problems import find_volume_problems
from workloads.training_progress import VARIABLE as PROGRESS_PATTERN
from workloads.training_progress import check_own_pattern

MAX_COMMAND_BYTES = 256 * 1024
"""The most bytes of command, arguments and variables together.

A job has them up to three times, and a cluster takes no object of 1.5 MiB.
"""
MAX_PAIRS_BYTES = 128 * 1024
MAX_INT32 = 2**31 - 1
CPU_RANGE = ("1m", "4096")
MEMORY_RANGE = ("1Mi", "64Ti")
PORTION_STEP = Decimal("0.0001")
DEFAULT_NODE_POOL = "default"


def find_setup_problems(setup: Setup) -> Iterator[FieldProblem]:
    """Yield everything that is wrong with the setup of one kind of pod."""
    yield from prefix_fields("environment.", _check_environment(setup.environment))
    yield from prefix_fields("compute.", check_compute(setup.compute))
    yield from find_volume_problems(setup)
    yield from check_length("tolerations", "tolerations", setup.tolerations)
    for index, toleration in enumerate(setup.tolerations):
        yield from prefix_fields(f"tolerations.{index}.", _check_toleration(index + 1, toleration))
    yield from report_problem(
        "node_type", "The node type", value_rules.check_label_value(setup.node_type)
    )
    yield from check_length("node_pools", "node pools", setup.node_pools)
    yield from check_unique("node_pools", "node pool", setup.node_pools)
    for index, pool in enumerate(setup.node_pools):
        yield from report_problem(
            f"node_pools.{index}", f"Node pool {index + 1}", _check_node_pool(pool)
        )
    if setup.topology is not None:
        yield from report_problem(
            "topology.key", "The key of the topology", value_rules.check_key(setup.topology.key)
        )
    for field in FIELDS.values():
        if isinstance(field.type, Pairs):
            yield from _check_pairs(field.pod_path, field.type, get_value(setup, field.pod_path))
    yield from prefix_fields("security.", _check_security(setup.security))


def _check_node_pool(pool: str) -> str:
    if pool == DEFAULT_NODE_POOL:
        return (
            f"must not be {DEFAULT_NODE_POOL}: nodes that are in no pool have no label. Name no "
            "pool, and any node will do"
        )
    return value_rules.check_label_value(pool) if pool else "must be given"


def _check_environment(environment: Environment) -> Iterator[FieldProblem]:
    yield from report_problem("image", "The image", value_rules.check_image(environment.image))
    for field, title in (
        ("pull_secrets", "pull secrets"),
        ("command", "words of the command"),
        ("args", "arguments"),
    ):
        yield from check_length(field, title, getattr(environment, field))
    for index, secret in enumerate(environment.pull_secrets):
        yield from report_problem(
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
        yield from report_problem(field, title, problem)
    if environment.working_dir:
        yield from report_problem(
            "working_dir", "The working directory", value_rules.check_path(environment.working_dir)
        )
    yield from check_length("variables", "environment variables", environment.variables)
    yield from check_unique(
        "variables",
        "environment variable",
        [variable.name for variable in environment.variables],
        "name",
    )
    for index, variable in enumerate(environment.variables):
        yield from prefix_fields(f"variables.{index}.", _check_variable(index + 1, variable))
    texts = [
        *environment.command,
        *environment.args,
        *(variable.name + variable.value for variable in environment.variables),
    ]
    if sum(len(text.encode(errors="replace")) for text in texts) > MAX_COMMAND_BYTES:
        yield (
            "variables",
            "Command, arguments and environment variables",
            f"must have at most {MAX_COMMAND_BYTES:,} bytes together",
        )


def _check_variable(number: int, variable: Variable) -> Iterator[FieldProblem]:
    title = (
        f"environment variable {number}"
        if value_rules.check_variable_name(variable.name)
        else f"environment variable {variable.name}"
    )
    yield from report_problem(
        "name", f"The name of {title}", value_rules.check_variable_name(variable.name)
    )
    match variable.source:
        case VariableSource.CUSTOM:
            complaint = value_rules.check_text(variable.value)
            if variable.name == PROGRESS_PATTERN and variable.value and not complaint:
                complaint = check_own_pattern(variable.value)
            yield from report_problem("value", f"The value of {title}", complaint)
        case VariableSource.POD_FIELD:
            yield from report_problem(
                "key", f"The pod field of {title}", value_rules.check_pod_field(variable.key)
            )
        case VariableSource.SECRET | VariableSource.CONFIG_MAP:
            noun = "Secret" if variable.source is VariableSource.SECRET else "ConfigMap"
            yield from report_problem(
                "object_name",
                f"The {noun} of {title}",
                value_rules.check_object_name(variable.object_name),
            )
            yield from report_problem(
                "key", f"The key of {title}", value_rules.check_config_key(variable.key)
            )


def check_compute(compute: Compute) -> Iterator[FieldProblem]:
    """Yield everything that is wrong with what each pod gets."""
    yield from prefix_fields("gpus.", _check_gpus(compute.gpus))
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
        yield from report_problem(f"{field}_request", f"The {title} request", problems[0])
        yield from report_problem(f"{field}_limit", f"The {title} limit", problems[1])
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
    yield from check_length("extended", "extended resources", compute.extended)
    yield from check_unique(
        "extended", "extended resource", [each.resource for each in compute.extended], "resource"
    )
    for index, each in enumerate(compute.extended):
        yield from prefix_fields(f"extended.{index}.", _check_extended_resource(index + 1, each))


def _check_extended_resource(number: int, extended: ExtendedResource) -> Iterator[FieldProblem]:
    problem = value_rules.check_key(extended.resource)
    if not problem and "/" not in extended.resource:
        problem = "must have a domain, as in rdma/hca"
    elif "kubernetes.io/" in extended.resource or extended.resource.startswith("requests."):
        problem = "must not be one of Kubernetes' own"
    elif extended.resource == "nvidia.com/gpu":
        problem = "must not be nvidia.com/gpu: GPU devices are asked for above"
    yield from report_problem("resource", f"The name of extended resource {number}", problem)
    amount = value_rules.check_quantity(
        extended.quantity, minimum="1", maximum="1M", step=Decimal(1)
    )
    yield from report_problem("quantity", f"The quantity of extended resource {number}", amount)


def _check_gpus(gpus: Gpus) -> Iterator[FieldProblem]:
    yield from report_problem(
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
        yield from report_problem(
            "memory",
            "GPU memory",
            value_rules.check_quantity(gpus.memory, minimum="1Mi", maximum="1Ti"),
        )


def _check_toleration(number: int, toleration: Toleration) -> Iterator[FieldProblem]:
    title = f"toleration {number}"
    if toleration.key:
        yield from report_problem(
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
    yield from report_problem(
        "value", f"The value of {title}", value_rules.check_label_value(toleration.value)
    )
    if toleration.seconds is not None:
        if toleration.effect is not TolerationEffect.NO_EXECUTE:
            yield (
                "seconds",
                f"The seconds of {title}",
                "can be given with the effect NoExecute only",
            )
        yield from report_problem(
            "seconds",
            f"The seconds of {title}",
            value_rules.check_count(toleration.seconds, 1, MAX_INT32),
        )


def _check_pairs(field: str, kind: Pairs, pairs: Sequence[Pair]) -> Iterator[FieldProblem]:
    noun = kind.noun
    check_key = (
        value_rules.check_selector_key if kind.are_of_nodes else value_rules.check_settable_key
    )
    yield from check_length(field, f"{noun}s", pairs)
    yield from check_unique(field, noun, [pair.key for pair in pairs], "key")
    for index, pair in enumerate(pairs):
        yield from report_problem(
            f"{field}.{index}.key",
            f"The name of {noun} {index + 1}",
            check_key(pair.key),
        )
        check_value = value_rules.check_text if kind.has_any_text else value_rules.check_label_value
        yield from report_problem(
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
            yield from report_problem(
                below,
                field.subject,
                value_rules.check_count(value, field.type.least, field.type.most),
            )
    if security.non_root and security.uid == 0:
        yield "uid", "The user ID", "must not be 0 when running as root is forbidden"
    yield from check_length(
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
    yield from report_problem("supplemental_groups", "Each supplemental group", problem)
    for capability in security.capabilities:
        if capability not in CAPABILITIES:
            yield (
                "capabilities",
                f"The capability {capability[:40]}",
                "is none of the Linux capabilities",
            )

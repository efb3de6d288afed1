"""Validation of the volumes of one kind of pod."""

from collections.abc import Iterator
from decimal import Decimal

from workloads.specs import value_rules
from workloads.specs.choices import (
    GitAccess,
    VolumeAccess,
)
from workloads.specs.pod_setup import (
    S3,
    Claim,
    ConfigMap,
    EmptyDir,
    Git,
    HostPath,
    NewClaim,
    Nfs,
    Secret,
    Setup,
    Volume,
)
from workloads.specs.problem_reports import (
    FieldProblem,
    check_length,
    check_unique,
    prefix_fields,
    report_problem,
)

MAX_VOLUMES = 64
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108 - a mount path


def find_volume_problems(setup: Setup) -> Iterator[FieldProblem]:
    yield from check_length("volumes", "volumes", setup.volumes, MAX_VOLUMES)
    paths = [value_rules.normalize_path(volume.path) for volume in setup.volumes]
    yield from check_unique("volumes", "container path", paths, "path")
    for index, volume in enumerate(setup.volumes):
        title = f"volume {index + 1} ({volume.noun})"
        problem = value_rules.check_mount_path(volume.path)
        if not problem and setup.compute.large_shm and paths[index] == SHARED_MEMORY_PATH:
            problem = f"must not be {SHARED_MEMORY_PATH}, which the larger shared memory takes"
        yield from report_problem(
            f"volumes.{index}.path", f"The container path of {title}", problem
        )
        yield from prefix_fields(f"volumes.{index}.", _check_volume_source(title, volume))


def _check_volume_source(title: str, volume: Volume) -> Iterator[FieldProblem]:
    match volume:
        case EmptyDir():
            if volume.size:
                yield from report_problem(
                    "size",
                    f"The size of {title}",
                    value_rules.check_quantity(
                        volume.size, minimum="1", maximum="1Pi", step=Decimal(1)
                    ),
                )
        case HostPath():
            yield from report_problem(
                "source", f"The host path of {title}", value_rules.check_path(volume.source)
            )
        case ConfigMap() | Secret():
            yield from report_problem(
                "name", f"The name of {title}", value_rules.check_object_name(volume.name)
            )
            if volume.mode is not None and not 0 <= volume.mode <= 0o777:
                yield "mode", f"The file mode of {title}", "must be from 0000 to 0777"
            if isinstance(volume, ConfigMap) and volume.sub_path:
                yield from report_problem(
                    "sub_path", f"The file of {title}", value_rules.check_sub_path(volume.sub_path)
                )
            if volume.access is not VolumeAccess.READ_ONLY:
                yield (
                    "access",
                    f"The access of {title}",
                    "must be read-only: the cluster writes its files",
                )
        case Claim():
            yield from report_problem(
                "claim", f"The claim of {title}", value_rules.check_object_name(volume.claim)
            )
        case NewClaim():
            yield from _check_new_claim(title, volume)
        case Git():
            yield from _check_git(title, volume)
        case S3():
            yield from _check_s3(title, volume)
        case Nfs():
            yield from report_problem(
                "server", f"The server of {title}", value_rules.check_host(volume.server)
            )
            yield from report_problem(
                "export", f"The exported path of {title}", value_rules.check_path(volume.export)
            )


def _check_new_claim(title: str, volume: NewClaim) -> Iterator[FieldProblem]:
    problem = (
        value_rules.check_quantity(volume.size, minimum="1Mi", maximum="64Ti", step=Decimal(1))
        if volume.size
        else "must be given"
    )
    yield from report_problem("size", f"The size of {title}", problem)
    if volume.storage_class:
        yield from report_problem(
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
    yield from report_problem(
        "repository", f"The repository of {title}", value_rules.check_repository(volume.repository)
    )
    for field, noun, value in (
        ("branch", "branch", volume.branch),
        ("revision", "revision", volume.revision),
    ):
        if value:
            yield from report_problem(
                field, f"The {noun} of {title}", value_rules.check_revision(value)
            )
    if volume.secret:
        yield from report_problem(
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
    yield from report_problem(
        "bucket", f"The bucket of {title}", value_rules.check_bucket(volume.bucket)
    )
    if volume.prefix:
        yield from report_problem(
            "prefix", f"The prefix of {title}", value_rules.check_sub_path(volume.prefix)
        )
    if volume.url:
        yield from report_problem(
            "url", f"The service of {title}", value_rules.check_url(volume.url)
        )
    if volume.secret:
        yield from report_problem(
            "secret", f"The Secret of {title}", value_rules.check_object_name(volume.secret)
        )
    if volume.access is not VolumeAccess.READ_ONLY:
        yield (
            "access",
            f"The access of {title}",
            "must be read-only: it is a copy, and nothing written goes back to the bucket",
        )

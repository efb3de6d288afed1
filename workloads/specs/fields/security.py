"""As whom a container runs, and what it may do."""

from collections.abc import Iterator
from typing import Any

from workloads.specs.choices import CAPABILITIES, SeccompProfile
from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Choice, FieldType, Flag, Ids, Names, Number, YesNo


def list_security_fields() -> Iterator[Field]:
    def build(name: str, label: str, type_: FieldType, rest: str, fact: str, **more: Any) -> Field:
        return Field(
            path=f"setup.security.{name}",
            label=label,
            type=type_,
            place=Place.SECURITY,
            rest=f"security.{rest}",
            lock="security",
            fact=fact,
            fact_section=FactSection.SECURITY,
            **more,
        )

    limited = PolicyData(section=PolicySection.SECURITY, is_open=True)
    flag = PolicyData(section=PolicySection.SECURITY)
    implied = PolicyData(section=PolicySection.SECURITY, is_implied=True)
    yield build(
        "uid",
        "User ID",
        Number(),
        "runAsUid",
        "User ID",
        title="Security",
        subject="The user ID",
        policy=limited,
    )
    yield build(
        "gid", "Group ID", Number(), "runAsGid", "Group ID", subject="The group ID", policy=limited
    )
    yield build(
        "supplemental_groups",
        "Supplementary groups",
        Ids(),
        "supplementalGroups",
        "Supplemental groups",
        help="Group IDs, separated by spaces.",
        rest_help="Numbers with commas between them.",
    )
    yield build(
        "non_root",
        "Refuse to run as root",
        YesNo(),
        "runAsNonRoot",
        "Must not be root",
        policy=flag,
    )
    yield build(
        "privilege_escalation",
        "Privilege escalation allowed",
        YesNo(),
        "allowPrivilegeEscalation",
        "Privilege escalation",
        policy=flag,
    )
    yield build(
        "seccomp",
        "Seccomp profile",
        Choice(SeccompProfile, "The cluster's default"),
        "seccompProfileType",
        "Seccomp profile",
    )
    yield build(
        "capabilities",
        "Linux capabilities",
        Names(is_upper=True),
        "capabilities",
        "Capabilities",
        help="As SYS_PTRACE IPC_LOCK, separated by spaces.",
        policy=PolicyData(
            section=PolicySection.SECURITY,
            attributes=frozenset(("default", "options", "locked")),
            choices=tuple((each, each) for each in sorted(CAPABILITIES)),
        ),
    )
    yield build(
        "read_only_root",
        "Read-only root file system",
        Flag(),
        "readOnlyRootFilesystem",
        "Root file system read only",
        policy=implied,
    )
    yield build("host_ipc", "Use the host's IPC", Flag(), "hostIpc", "Host's IPC", policy=implied)
    yield build(
        "host_network",
        "Use the host's network",
        Flag(),
        "hostNetwork",
        "Host's network",
        policy=implied,
    )

"""As whom a container runs, and what it may do."""

from typing import Any

from workloads.specs.choices import CAPABILITIES, SeccompProfile
from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Choice, FieldType, Flag, Ids, Names, Number, YesNo

_LIMITED = PolicyData(section=PolicySection.SECURITY, is_open=True)
_FLAG = PolicyData(section=PolicySection.SECURITY)
_IMPLIED = PolicyData(section=PolicySection.SECURITY, is_implied=True)


def _build(name: str, label: str, type_: FieldType, rest: str, fact: str, **more: Any) -> Field:
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


SECURITY_FIELDS = (
    _build(
        "uid",
        "User ID",
        Number(),
        "runAsUid",
        "User ID",
        title="Security",
        subject="The user ID",
        policy=_LIMITED,
    ),
    _build(
        "gid", "Group ID", Number(), "runAsGid", "Group ID", subject="The group ID", policy=_LIMITED
    ),
    _build(
        "supplemental_groups",
        "Supplementary groups",
        Ids(),
        "supplementalGroups",
        "Supplemental groups",
        help="Group IDs, separated by spaces.",
        rest_help="Numbers with commas between them.",
    ),
    _build(
        "non_root",
        "Refuse to run as root",
        YesNo(),
        "runAsNonRoot",
        "Must not be root",
        policy=_FLAG,
    ),
    _build(
        "privilege_escalation",
        "Privilege escalation allowed",
        YesNo(),
        "allowPrivilegeEscalation",
        "Privilege escalation",
        policy=_FLAG,
    ),
    _build(
        "seccomp",
        "Seccomp profile",
        Choice(SeccompProfile, "The cluster's default"),
        "seccompProfileType",
        "Seccomp profile",
    ),
    _build(
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
    ),
    _build(
        "read_only_root",
        "Read-only root file system",
        Flag(),
        "readOnlyRootFilesystem",
        "Root file system read only",
        policy=_IMPLIED,
    ),
    _build("host_ipc", "Use the host's IPC", Flag(), "hostIpc", "Host's IPC", policy=_IMPLIED),
    _build(
        "host_network",
        "Use the host's network",
        Flag(),
        "hostNetwork",
        "Host's network",
        policy=_IMPLIED,
    ),
)

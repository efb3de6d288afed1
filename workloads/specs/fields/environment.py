"""What runs in a pod."""

from typing import Any

from workloads.specs.choices import PullPolicy
from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Choice, CommandLine, FieldType, Names, Rows, Text
from workloads.specs.pod_setup import Variable

_PREFIXES = PolicyData(
    section=PolicySection.ENVIRONMENT,
    about="Texts, or their beginnings with a star at the end, as registry.example.com/team/*",
)


def _build(name: str, label: str, type_: FieldType, rest: str, **more: Any) -> Field:
    values = {"policy": PolicyData(section=PolicySection.ENVIRONMENT)} | more
    return Field(
        path=f"setup.environment.{name}",
        label=label,
        type=type_,
        place=Place.ENVIRONMENT,
        rest=rest,
        fact_section=FactSection.ENVIRONMENT,
        **values,
    )


ENVIRONMENT_FIELDS = (
    _build(
        "image",
        "Image",
        Text(),
        "image",
        help="As registry.example.com/team/train:1.2",
        rest_help="A leading slash is dropped when it is pulled.",
        policy=_PREFIXES,
    ),
    _build(
        "pull_policy",
        "Image pull policy",
        Choice(PullPolicy, "The cluster's default"),
        "imagePullPolicy",
        help=(
            "The cluster's default: always for the tag latest, else when the image is not there "
            "yet."
        ),
        policy=PolicyData(
            section=PolicySection.ENVIRONMENT, value="environment.effective_pull_policy"
        ),
    ),
    _build(
        "command",
        "Command",
        CommandLine(),
        "command",
        help="Words are split at spaces, quotes keep them together.",
        rest_help="Split at spaces as a shell does.",
    ),
    _build(
        "args",
        "Arguments",
        CommandLine(),
        "args",
        help="Split likewise.",
        rest_help="Split at spaces as a shell does.",
    ),
    _build(
        "working_dir",
        "Working directory",
        Text(),
        "workingDir",
        help="An absolute path in the container.",
        policy=_PREFIXES,
    ),
    _build(
        "pull_secrets",
        "Pull secrets",
        Names(are_objects=True),
        "imagePullSecrets",
        help="Names of Secrets in the project's namespace, separated by spaces.",
        policy=None,
    ),
    _build(
        "variables",
        "Environment variables",
        Rows(Variable, "Add variable"),
        "environmentVariables",
        help="They join the environment's own; one of the same name takes its place.",
    ),
)

"""The flags of a submission's fields, made of the catalogue, and the body out of what was typed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from muster_cli.actions import submissions
from muster_cli.fields import Catalogue, Framework, SubmissionField, VolumeField

MASTER = "--master-"
DEVICES = "compute.gpuDevicesRequest"
_REPEATED = frozenset({"names", "objects", "pairs", "variables", "resources", "tolerations"})
_METAVARS = {
    "pairs": "NAME=VALUE",
    "variables": "NAME=VALUE",
    "resources": "NAME=QUANTITY",
    "tolerations": "KEY[=VALUE][:EFFECT]",
    "topology": "KEY[:preferred]",
    "names": "NAME",
    "objects": "NAME",
}


class WholeNumber(click.IntRange):
    """A whole number within bounds, called so where it is none."""

    name = "whole number"


class DeviceCount(WholeNumber):
    """A number of GPUs; its refusal of a part of one names the flag for that."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as problem:
            if "." not in str(value):
                raise
            is_of_master = param is not None and param.opts[0].startswith(MASTER)
            flag = f"{MASTER if is_of_master else '--'}gpu-portion"
            self.fail(f"{problem.message} A part of a GPU is asked for by {flag}.", param, ctx)


class Number(click.types.FloatParamType):
    """A number, called so where it is none."""

    name = "number"


def list_fields(
    catalogue: Catalogue, framework: Framework | None, *, distributed: bool | None
) -> list[SubmissionField]:
    """Return the fields that a kind of workload has; all, where `distributed` is None."""
    if distributed is None:
        return list(catalogue.fields)
    architecture = "Distributed" if distributed else "Standard"
    return [
        field
        for field in catalogue.fields
        if field.architecture in ("", architecture)
        and (not field.frameworks or framework is None or framework.value in field.frameworks)
    ]


def build_options(
    fields: Sequence[SubmissionField], volumes: Sequence[VolumeField], *, has_master: bool
) -> Iterator[click.Option]:
    """Yield an option for each field and volume, and those of the master, which help hides."""
    for number, field in enumerate(fields):
        yield _build_option(field, f"field{number}")
        if has_master and field.is_of_pods:
            yield _build_option(field, f"master{number}", is_master=True)
    for number, volume in enumerate(volumes):
        yield _build_volume_option(volume, f"volume{number}")
        if has_master:
            yield _build_volume_option(volume, f"master_volume{number}", is_master=True)


def _build_option(field: SubmissionField, name: str, *, is_master: bool = False) -> click.Option:
    long_flag = field.flags[0]
    flag = f"{MASTER}{long_flag[2:]}" if is_master else long_flag
    flags = [flag] if is_master else list(field.flags)
    if field.kind == "flag":
        flags = [f"{flag}/{MASTER if is_master else '--'}no-{long_flag[2:]}"]
    help_text = f"{field.label}. {field.help}".strip()
    return click.Option(
        [name, *flags],
        type=None if field.kind == "flag" else _get_type(field),
        multiple=field.kind in _REPEATED,
        default=None,
        metavar=_METAVARS.get(field.kind),
        help=f"{help_text} Repeatable." if field.kind in _REPEATED else help_text,
        hidden=is_master,
    )


def is_field_option(option: click.Option) -> bool:
    """Tell whether an option is that of a field or a volume."""
    return (option.name or "").rstrip("0123456789") in (
        "field",
        "volume",
        "master",
        "master_volume",
    )


def _get_type(field: SubmissionField) -> "click.ParamType[Any]":
    if field.place == DEVICES:
        return DeviceCount(field.minimum, field.maximum)
    if field.kind == "integer":
        return WholeNumber(field.minimum, field.maximum)
    if field.kind == "number":
        return Number()
    if field.kind == "choice":
        return click.Choice(field.choices, case_sensitive=False)
    return click.STRING


def _build_volume_option(
    volume: VolumeField, name: str, *, is_master: bool = False
) -> click.Option:
    keys = ", ".join(volume.keys)
    return click.Option(
        [name, f"{MASTER}{volume.flag[2:]}" if is_master else volume.flag],
        multiple=True,
        metavar="KEY=VALUE,...",
        help=f"A volume. Keys: {keys}. Repeatable.",
        hidden=is_master,
    )


def build_spec(
    fields: Sequence[SubmissionField],
    volumes: Sequence[VolumeField],
    typed: Mapping[str, Any],
    *,
    of_master: bool = False,
) -> dict[str, Any]:
    """Return what was typed of `spec`, or of the master. Raises UsageProblem."""
    prefix, volume_prefix = ("master", "master_volume") if of_master else ("field", "volume")
    spec: dict[str, Any] = {}
    for number, field in enumerate(fields):
        value = typed.get(f"{prefix}{number}")
        if value is not None and value != ():
            submissions.set_value(spec, field.place, submissions.build_value(field, value))
    for number, volume in enumerate(volumes):
        texts = typed.get(f"{volume_prefix}{number}") or ()
        if texts:
            built = [submissions.build_volume(volume, text) for text in texts]
            submissions.set_value(spec, volume.place, built)
    return spec

"""What pods mount, and what is written on them."""

from collections.abc import Iterator

from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Pairs, Rows
from workloads.specs.pod_setup import VOLUME_TYPES, Pair, Volume


def list_data_fields() -> Iterator[Field]:
    yield Field(
        path="setup.volumes",
        label="Volumes",
        type=Rows(Volume, "Add volume"),
        place=Place.DATA,
        rest="storage",
        title="Data & storage",
        fact_section=FactSection.STORAGE,
        policy=PolicyData(
            section=PolicySection.DATA,
            attributes=frozenset(("options",)),
            is_preset=False,
            choices=tuple((each.kind, each.noun) for each in VOLUME_TYPES),
            nothing="no volumes",
            about="The kinds that there may be.",
            is_in_rest=False,
        ),
    )


def list_metadata_fields() -> Iterator[Field]:
    for name, label, noun, has_any_text in (
        ("annotations", "Annotations", "annotation", True),
        ("labels", "Labels", "label", False),
    ):
        yield Field(
            path=f"setup.{name}",
            label=label,
            type=Pairs(Pair, f"Add {noun}", noun, has_any_text),
            place=Place.GENERAL,
            rest=name,
            fact_section=FactSection.PLACEMENT,
            policy=PolicyData(section=PolicySection.DATA),
        )

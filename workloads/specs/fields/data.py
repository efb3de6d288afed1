"""What pods mount, and what is written on them."""

from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Pairs, Rows
from workloads.specs.pod_setup import VOLUME_TYPES, Pair, Volume

DATA_FIELDS = (
    Field(
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
    ),
)
METADATA_FIELDS = (
    Field(
        path="setup.annotations",
        label="Annotations",
        type=Pairs(Pair, "Add annotation", "annotation", has_any_text=True),
        place=Place.GENERAL,
        rest="annotations",
        fact_section=FactSection.PLACEMENT,
        policy=PolicyData(section=PolicySection.DATA),
    ),
    Field(
        path="setup.labels",
        label="Labels",
        type=Pairs(Pair, "Add label", "label"),
        place=Place.GENERAL,
        rest="labels",
        fact_section=FactSection.PLACEMENT,
        policy=PolicyData(section=PolicySection.DATA),
    ),
)

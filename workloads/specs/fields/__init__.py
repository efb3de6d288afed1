"""The catalogue of a workload's fields: one entry each, as plain data.

The wizard, the REST API with its description, policies, templates, copies and Details read it, so a
new field is an entry here, an attribute of the Spec and its place in the manifest.
"""

from collections.abc import Mapping

from workloads.specs.fields.compute import COMPUTE_FIELDS
from workloads.specs.fields.data import DATA_FIELDS, METADATA_FIELDS
from workloads.specs.fields.delivery import DELIVERY_FIELDS
from workloads.specs.fields.environment import ENVIRONMENT_FIELDS
from workloads.specs.fields.field import (
    FactSection,
    Field,
    Place,
    PolicyData,
    PolicySection,
    get_value,
)
from workloads.specs.fields.general import GENERAL_FIELDS
from workloads.specs.fields.nodes import NODE_FIELDS
from workloads.specs.fields.numbers import NUMBER_FIELDS
from workloads.specs.fields.radar import RADAR_FIELDS
from workloads.specs.fields.security import SECURITY_FIELDS
from workloads.specs.fields.start import START_FIELDS

__all__ = [
    "FIELDS",
    "FactSection",
    "Field",
    "Place",
    "PolicyData",
    "PolicySection",
    "get_value",
]

FIELDS: Mapping[str, Field] = {
    each.path: each
    for each in (
        *START_FIELDS,
        *ENVIRONMENT_FIELDS,
        *SECURITY_FIELDS,
        *COMPUTE_FIELDS,
        *NODE_FIELDS,
        *NUMBER_FIELDS,
        *DELIVERY_FIELDS,
        *DATA_FIELDS,
        *GENERAL_FIELDS,
        *METADATA_FIELDS,
        *RADAR_FIELDS,
    )
}
"""Every field by its path, in the order of the wizard."""

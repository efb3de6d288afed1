"""The catalogue of a workload's fields: one entry each, as plain data.

The wizard, the REST API with its description, policies, templates, copies and Details read it, so a
new field is an entry here, an attribute of the Spec and its place in the manifest.
"""

from collections.abc import Mapping

from workloads.specs.fields.compute import list_compute_fields
from workloads.specs.fields.data import list_data_fields, list_metadata_fields
from workloads.specs.fields.environment import list_environment_fields
from workloads.specs.fields.field import (
    FactSection,
    Field,
    Place,
    PolicyData,
    PolicySection,
    get_value,
)
from workloads.specs.fields.general import list_general_fields
from workloads.specs.fields.nodes import list_node_fields
from workloads.specs.fields.numbers import list_number_fields
from workloads.specs.fields.security import list_security_fields
from workloads.specs.fields.start import list_start_fields

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
        *list_start_fields(),
        *list_environment_fields(),
        *list_security_fields(),
        *list_compute_fields(),
        *list_node_fields(),
        *list_number_fields(),
        *list_data_fields(),
        *list_general_fields(),
        *list_metadata_fields(),
    )
}
"""Every field by its path, in the order of the wizard."""

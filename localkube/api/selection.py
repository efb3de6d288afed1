"""The objects that a list, watch or deletecollection selects: its namespace and its selectors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from localkube import selectors
from localkube.api.http_messages import QueryParameters
from localkube.resources.resource import Resource
from localkube.selectors import FieldSelector, LabelSelector
from localkube.store import Record

COMMON_FIELDS = ("metadata.name", "metadata.namespace")
"""Fields by which every kind can be selected; a kind of the cluster's scope by its name only."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A namespace (None: all) with label and field conditions."""

    namespace: str | None
    labels: LabelSelector
    fields: FieldSelector

    @property
    def is_selective(self) -> bool:
        return not (self.labels.is_empty and self.fields.is_empty)

    def matches(self, record: Record) -> bool:
        if self.namespace is not None and record.namespace != self.namespace:
            return False
        if not self.labels.is_empty and not self.labels.matches(record.labels):
            return False
        return self.fields.is_empty or self.fields.matches(_collect_fields(record))

    def filter_records(self, records: Iterable[Record]) -> Iterator[Record]:
        return (record for record in records if self.matches(record))


def parse_selection(resource: Resource, namespace: str | None, query: QueryParameters) -> Selection:
    """Parse the selectors of a query.

    Raises ApiError 400 for a selector that does not parse or a field that this kind does not offer.
    """
    common = COMMON_FIELDS if resource.namespaced else COMMON_FIELDS[:1]
    supported = {*resource.field_selectors, *common}
    return Selection(
        namespace,
        selectors.parse_label_selector(query.text("labelSelector")),
        selectors.parse_field_selector(query.text("fieldSelector"), supported),
    )


def _collect_fields(record: Record) -> dict[str, str]:
    return {**record.fields, "metadata.name": record.name, "metadata.namespace": record.namespace}

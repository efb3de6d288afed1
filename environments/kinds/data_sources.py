"""Data sources: what pods read, and where it is in their containers."""

from typing import Any

from console.tables import Column
from environments.credentials import secret_name
from environments.forms.data_sources import DATA_SOURCE_FORMS
from environments.kinds.columns import field, of_choices
from environments.kinds.recipe import Kind
from environments.models import DataSource


def kubernetes_name(row: Any) -> str:
    """What the data is in its cluster, where it is an object with a name."""
    if row.kind == DataSource.Kind.SECRET and row.credential:
        return secret_name(row.credential)
    return str(row.origin.get("claim") or row.origin.get("configmap") or "")


DATA_SOURCE = Kind(
    key="data-source",
    model=DataSource,
    forms=DATA_SOURCE_FORMS,
    path="data-sources",
    name="data-sources",
    url="data-source",
    noun="data source",
    icon="database",
    about="Files that workloads read: repositories, volumes, buckets, and what the cluster has.",
    fields=("kind", "origin", "path", "access", "credential"),
    columns=(
        field("kind", "Type", sorts=True),
        field("path", "Container path"),
        Column("kubernetes", "Kubernetes name", kubernetes_name, is_extra=True),
    ),
    filters=(of_choices("kind", "Type", DataSource.Kind.choices),),
    held_by=("template",),
)

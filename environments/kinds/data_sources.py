"""Data sources: data that pods read, and its path in their containers."""

from typing import Any

from console.tables import Column
from environments.credentials import secret_name
from environments.forms.data_sources import DATA_SOURCE_FORMS
from environments.kinds.asset_kind import AssetKind
from environments.kinds.columns import build_choice_filter, build_field_column
from environments.models import DataSource


def get_kubernetes_name(row: Any) -> str:
    """Return the name of the Kubernetes object with the data; "" without one."""
    if row.kind == DataSource.Kind.SECRET and row.credential:
        return secret_name(row.credential)
    return str(row.origin.get("claim") or row.origin.get("configmap") or "")


DATA_SOURCE = AssetKind(
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
        build_field_column("kind", "Type", is_sortable=True),
        build_field_column("path", "Container path"),
        Column("kubernetes", "Kubernetes name", get_kubernetes_name, is_extra=True),
    ),
    filters=(build_choice_filter("kind", "Type", DataSource.Kind.choices),),
    blocked_by=("template",),
)

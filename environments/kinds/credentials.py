"""Credentials: the logins of pods."""

from console.tables import Column
from environments.credentials import secret_name
from environments.forms.credentials import CREDENTIAL_FORMS
from environments.kinds.asset_kind import AssetKind
from environments.kinds.columns import build_choice_filter, build_count_column, build_field_column
from environments.models import Credential

CREDENTIAL = AssetKind(
    key="credential",
    model=Credential,
    forms=CREDENTIAL_FORMS,
    path="credentials",
    name="credentials",
    url="credential",
    noun="credential",
    icon="key",
    about=(
        "What workloads log in with. A secret can be written here and is never shown again; the "
        "clusters have it as a Secret."
    ),
    fields=("kind", "public"),
    columns=(
        build_field_column("kind", "Type", is_sortable=True),
        Column("kubernetes", "Kubernetes name", secret_name, is_extra=True),
        build_count_column("data_sources", "Data sources", lambda row: row.sources),
    ),
    filters=(build_choice_filter("kind", "Type", Credential.Kind.choices),),
    blocked_by=("data-source", "workload", "template"),
    deferred=("secret",),
)

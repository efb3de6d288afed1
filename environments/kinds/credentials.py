"""Credentials: what pods log in with."""

from console.tables import Column
from environments.credentials import secret_name
from environments.forms.credentials import CREDENTIAL_FORMS
from environments.kinds.columns import field, of_choices, used
from environments.kinds.recipe import Kind
from environments.models import Credential

CREDENTIAL = Kind(
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
        field("kind", "Type", sorts=True),
        Column("kubernetes", "Kubernetes name", secret_name, is_extra=True),
        used("data_sources", "Data sources", lambda row: row.sources),
    ),
    filters=(of_choices("kind", "Type", Credential.Kind.choices),),
    held_by=("data-source", "workload", "template"),
    deferred=("secret",),
)

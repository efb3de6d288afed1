"""Secrets of credentials, reduced to what is compared of them.

One may have a MiB, and anybody who may write in a namespace can mark many as ours: a digest stands
for the data of each.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from clusters.ownership import (
    CREDENTIAL_LABEL,
    INSTALLATION_LABEL,
    MANAGED_BY,
    PROJECT_LABEL,
    REGISTRY_LABEL,
    get_labels,
    has_wanted_fields,
)

Object = dict[str, Any]

COMPARED_LABELS = (MANAGED_BY, PROJECT_LABEL, INSTALLATION_LABEL, CREDENTIAL_LABEL, REGISTRY_LABEL)


@dataclass(frozen=True, slots=True)
class SecretSummary:
    """What is compared of a Secret: its type, a digest of its data, and our labels.

    `reference` is the object without anything but its uid and these labels.
    """

    reference: Object
    type: str
    digest: bytes

    def matches(self, wanted: "SecretSummary") -> bool:
        """Return whether the Secret is as wanted."""
        return (self.type, self.digest) == (wanted.type, wanted.digest) and has_wanted_fields(
            get_labels(self.reference), get_labels(wanted.reference)
        )


def summarize_secret(secret: Object) -> SecretSummary:
    """Reduce a Secret to what is compared of it."""
    labels = get_labels(secret)
    return SecretSummary(
        {
            "metadata": {
                "uid": (secret.get("metadata") or {}).get("uid"),
                "labels": {name: labels[name] for name in COMPARED_LABELS if name in labels},
            }
        },
        str(secret.get("type")),
        hashlib.sha256(json.dumps(secret.get("data"), sort_keys=True).encode()).digest(),
    )


def summarize_credential_secret(secret: Object) -> SecretSummary | None:
    """Reduce the Secret of a credential; return None for other Secrets."""
    is_of_credential = get_labels(secret).keys() & {CREDENTIAL_LABEL, REGISTRY_LABEL}
    return summarize_secret(secret) if is_of_credential else None

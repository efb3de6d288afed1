"""Who owns an object in a cluster: the labels that Muster puts on what it makes, and what the
labels of an existing object say. Pure.
"""

from dataclasses import dataclass
from typing import Any

from clusters.kube.errors import limit_text

Object = dict[str, Any]

MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
PROJECT_LABEL = "muster.dev/project"
DEPARTMENT_LABEL = "muster.dev/department"
INSTALLATION_LABEL = "muster.dev/installation"
"""Tells two Musters on one cluster apart. Objects of an older release have none: the first Muster
that finds such an object takes it for its own.
"""
CREDENTIAL_LABEL = "muster.dev/credential"
"""The label on the Secret of a credential: its id."""
REGISTRY_LABEL = "muster.dev/registry"
"""The label that the Secrets of image registries had instead in earlier releases. A Secret with it
is superseded.
"""
ORIGIN_ANNOTATION = "muster.dev/origin"
"""An annotation of a namespace: MADE where Muster made it, and may delete it."""
MADE = "made"


class NotOurs(Exception):
    """An object of the name exists, and belongs to somebody else; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A project, or a department, of one installation. `label_key` is the label that names it,
    `label_value` that label's value.
    """

    label_key: str
    label_value: str
    installation: str

    @property
    def labels(self) -> dict[str, str]:
        """The labels that mark its objects."""
        return {
            MANAGED_BY: MUSTER,
            self.label_key: self.label_value,
            INSTALLATION_LABEL: self.installation,
        }

    def owns(self, obj: Object) -> bool:
        """Return whether an existing object is marked as this owner's."""
        labels = get_labels(obj)
        # Departments come by other names; their Queue is found by its own.
        is_named = (
            labels.get(self.label_key) == self.label_value
            if self.label_key == PROJECT_LABEL
            else self.label_key in labels
        )
        return is_named and labels.get(INSTALLATION_LABEL, self.installation) == self.installation

    def check_ownership(self, obj: Object, description: str, adopt_hint: str = "") -> None:
        """Raise NotOurs for an object that somebody else made, or that serves another project.

        `adopt_hint` says how to give the object to Muster.
        """
        labels = get_labels(obj)
        if self.owns(obj):
            return
        for role in (PROJECT_LABEL, DEPARTMENT_LABEL):
            if role in labels:
                suffix = (
                    ""
                    if labels.get(INSTALLATION_LABEL, self.installation) == self.installation
                    else " of another Muster"
                )
                raise NotOurs(
                    limit_text(
                        f"{_capitalize(description)} is in use already, for "
                        f"{labels[role]}{suffix}. Choose another name."
                    )
                )
        if labels.get(MANAGED_BY) != MUSTER:
            advice = (
                f" To let Muster use it: {adopt_hint}. Otherwise choose another name."
                if adopt_hint
                else " Choose another name."
            )
            raise NotOurs(
                limit_text(
                    f"{_capitalize(description)} is in the cluster already, and Muster did not "
                    f"make it.{advice}"
                )
            )


def get_labels(obj: Object) -> dict[str, str]:
    """Return the labels of an object, {} for malformed ones."""
    labels = (obj.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def is_made_by_muster(namespace: Object) -> bool:
    """Return whether Muster made a namespace. One of an older release does not say so, and is kept
    like an adopted one.
    """
    annotations = (namespace.get("metadata") or {}).get("annotations")
    return isinstance(annotations, dict) and annotations.get(ORIGIN_ANNOTATION) == MADE


def is_being_deleted(obj: Object) -> bool:
    """Return whether the object's deletion has begun."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def has_wanted_fields(actual: Any, wanted: Any) -> bool:
    """Return whether the existing object has all wanted fields; fields of others are ignored."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            name in actual and has_wanted_fields(actual[name], value)
            for name, value in wanted.items()
        )
    return bool(actual == wanted)


def _capitalize(text: str) -> str:
    return text[0].upper() + text[1:]

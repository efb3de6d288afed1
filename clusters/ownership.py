"""Whose an object in a cluster is: the labels that Muster puts on what it makes, and what they say
of what is found there. Pure.
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
"""Tells two Musters on one cluster apart. What an older release made has none: the first one that
finds it takes it for its own.
"""
CREDENTIAL_LABEL = "muster.dev/credential"
"""On the Secret of a credential: its id."""
REGISTRY_LABEL = "muster.dev/registry"
"""What the Secrets of image registries had instead in earlier releases: where it is found, the
Secret is superseded.
"""
ORIGIN_ANNOTATION = "muster.dev/origin"
"""An annotation of a namespace: MADE where Muster made it, and then it is Muster's to delete."""
MADE = "made"


class NotOurs(Exception):
    """An object of the name is there, and it is not this project's; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A project, or a department, of one installation. `role` is the label that names it, `title`
    that label's value.
    """

    label_key: str
    label_value: str
    installation: str

    @property
    def labels(self) -> dict[str, str]:
        """What its objects are known by."""
        return {
            MANAGED_BY: MUSTER,
            self.label_key: self.label_value,
            INSTALLATION_LABEL: self.installation,
        }

    def owns(self, obj: Object) -> bool:
        """Whether an object that was found is marked as this one's."""
        labels = get_labels(obj)
        # Departments come by other names; their Queue is found by its own.
        named = (
            labels.get(self.label_key) == self.label_value
            if self.label_key == PROJECT_LABEL
            else self.label_key in labels
        )
        return named and labels.get(INSTALLATION_LABEL, self.installation) == self.installation

    def check_ownership(self, obj: Object, description: str, adopt_hint: str = "") -> None:
        """Raises NotOurs for an object that somebody else made, or that serves another project;
        `adopt` is how to give it to Muster.
        """
        labels = get_labels(obj)
        if self.owns(obj):
            return
        for role in (PROJECT_LABEL, DEPARTMENT_LABEL):
            if role in labels:
                other = (
                    ""
                    if labels.get(INSTALLATION_LABEL, self.installation) == self.installation
                    else " of another Muster"
                )
                raise NotOurs(
                    limit_text(
                        f"{_capitalize(description)} is in use already, for {labels[role]}{other}. "
                        "Choose another name."
                    )
                )
        if labels.get(MANAGED_BY) != MUSTER:
            way = (
                f" To let Muster use it: {adopt_hint}. Otherwise choose another name."
                if adopt_hint
                else " Choose another name."
            )
            raise NotOurs(
                limit_text(
                    f"{_capitalize(description)} is in the cluster already, and Muster did not "
                    f"make it.{way}"
                )
            )


def get_labels(obj: Object) -> dict[str, str]:
    """The labels of an object, however it came."""
    labels = (obj.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def is_made_by_muster(namespace: Object) -> bool:
    """Whether Muster made a namespace. One that an older release made does not say so, and is kept
    like one that was adopted.
    """
    annotations = (namespace.get("metadata") or {}).get("annotations")
    return isinstance(annotations, dict) and annotations.get(ORIGIN_ANNOTATION) == MADE


def is_being_deleted(obj: Object) -> bool:
    """Whether its deletion has begun."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def has_wanted_fields(found: Any, wanted: Any) -> bool:
    """Whether what was found has everything that is wanted; what it has beside that is others'
    business.
    """
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            name in found and has_wanted_fields(found[name], value)
            for name, value in wanted.items()
        )
    return bool(found == wanted)


def _capitalize(what: str) -> str:
    return what[0].upper() + what[1:]

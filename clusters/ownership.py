"""Whose an object in a cluster is: the labels that Muster puts on what it makes, and what they say
of what is found there. Pure.
"""

from dataclasses import dataclass
from typing import Any

from clusters.kube.errors import bounded

Object = dict[str, Any]

MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
PROJECT = "muster.dev/project"
DEPARTMENT = "muster.dev/department"
INSTALLATION = "muster.dev/installation"
"""Tells two Musters on one cluster apart. What an older release made has none: the first one that
finds it takes it for its own.
"""
CREDENTIAL = "muster.dev/credential"
"""On the Secret of a credential: its id."""
REGISTRY = "muster.dev/registry"
"""What the Secrets of image registries had instead in earlier releases: where it is found, the
Secret is superseded.
"""
ORIGIN = "muster.dev/origin"
"""An annotation of a namespace: MADE where Muster made it, and then it is Muster's to delete."""
MADE = "made"


class NotOurs(Exception):
    """An object of the name is there, and it is not this project's; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A project, or a department, of one installation. `role` is the label that names it, `title`
    that label's value.
    """

    role: str
    title: str
    installation: str

    @property
    def labels(self) -> dict[str, str]:
        """What its objects are known by."""
        return {MANAGED_BY: MUSTER, self.role: self.title, INSTALLATION: self.installation}

    def owns(self, obj: Object) -> bool:
        """Whether an object that was found is marked as this one's."""
        labels = labels_of(obj)
        # Departments come by other names; their Queue is found by its own.
        named = labels.get(self.role) == self.title if self.role == PROJECT else self.role in labels
        return named and labels.get(INSTALLATION, self.installation) == self.installation

    def check(self, found: Object, what: str, adopt: str = "") -> None:
        """Raises NotOurs for an object that somebody else made, or that serves another project;
        `adopt` is how to give it to Muster.
        """
        labels = labels_of(found)
        if self.owns(found):
            return
        for role in (PROJECT, DEPARTMENT):
            if role in labels:
                other = (
                    ""
                    if labels.get(INSTALLATION, self.installation) == self.installation
                    else " of another Muster"
                )
                raise NotOurs(
                    bounded(
                        f"{_capital(what)} is in use already, for {labels[role]}{other}. Choose "
                        "another name."
                    )
                )
        if labels.get(MANAGED_BY) != MUSTER:
            way = (
                f" To let Muster use it: {adopt}. Otherwise choose another name."
                if adopt
                else " Choose another name."
            )
            raise NotOurs(
                bounded(
                    f"{_capital(what)} is in the cluster already, and Muster did not make it.{way}"
                )
            )


def labels_of(obj: Object) -> dict[str, str]:
    """The labels of an object, however it came."""
    labels = (obj.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def is_made(namespace: Object) -> bool:
    """Whether Muster made a namespace. One that an older release made does not say so, and is kept
    like one that was adopted.
    """
    annotations = (namespace.get("metadata") or {}).get("annotations")
    return isinstance(annotations, dict) and annotations.get(ORIGIN) == MADE


def is_going(obj: Object) -> bool:
    """Whether its deletion has begun."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def agrees(found: Any, wanted: Any) -> bool:
    """Whether what was found has everything that is wanted; what it has beside that is others'
    business.
    """
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            name in found and agrees(found[name], value) for name, value in wanted.items()
        )
    return bool(found == wanted)


def _capital(what: str) -> str:
    return what[0].upper() + what[1:]

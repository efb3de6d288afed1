"""What a probe found in a cluster beside its capabilities, for people to read. Pure values that a
cluster's row stores.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A storage class for new volumes."""

    name: str
    provisioner: str = ""
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    """What a probe found. `unanswered` says why something is unknown, by its name
    ("gpu_sharing"). `uid` is that of the namespace kube-system, which tells clusters apart; ""
    where it may not be read.
    """

    storage_classes: tuple[StorageClass, ...] = ()
    unanswered: Mapping[str, str] = field(default_factory=dict)
    uid: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values for a database row."""
        classes = [
            {"name": each.name, "provisioner": each.provisioner, "is_default": each.is_default}
            for each in self.storage_classes
        ]
        return {
            "storage_classes": classes,
            "unanswered": dict(self.unanswered),
            "uid": self.uid,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Findings":
        """Parse what `to_json` stored; empty for what another version stored."""
        classes = tuple(StorageClass(**each) for each in data.get("storage_classes", ()))
        return cls(
            classes,
            {str(name): str(why) for name, why in data.get("unanswered", {}).items()},
            str(data.get("uid", "")),
        )

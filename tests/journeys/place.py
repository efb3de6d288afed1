"""The cluster that a journey goes through: that of MUSTER_TEST_KUBECONFIG, or an embedded one, and
what of a cluster works there.

A kubeconfig has its credentials inline, as Muster takes them (`kubectl config view --raw --minify
--flatten`). Of a given cluster nothing is taken for granted; MUSTER_TEST_OPERATORS=1 says that the
training operators, controllers and kubelets of everything that it serves run there,
MUSTER_TEST_CONTROLLERS=1 that the controllers do, and MUSTER_TEST_PODS=1 that pods do, with
MUSTER_TEST_IMAGE as an image that has a shell. What does not run there a stand-in does by the API.
"""

import os
from dataclasses import dataclass
from pathlib import Path

GIVEN = os.environ.get("MUSTER_TEST_KUBECONFIG")


@dataclass(frozen=True, slots=True)
class Place:
    """A cluster, and which of its parts run by themselves."""

    kubeconfig: Path
    operators: bool
    controllers: bool
    pods: bool
    image: str = os.environ.get("MUSTER_TEST_IMAGE", "busybox:1.36")

    @classmethod
    def given(cls, kubeconfig: Path) -> "Place":
        """A cluster about which the environment tells."""
        operators = _says("OPERATORS")
        return cls(
            kubeconfig, operators, operators or _says("CONTROLLERS"), operators or _says("PODS")
        )

    @classmethod
    def embedded(cls, kubeconfig: Path) -> "Place":
        """Everything that an embedded cluster serves runs there."""
        return cls(kubeconfig, operators=True, controllers=True, pods=True)


def _says(part: str) -> bool:
    return os.environ.get(f"MUSTER_TEST_{part}") == "1"

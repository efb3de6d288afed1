"""Where a connection to a cluster may lead."""

from dataclasses import dataclass

from clusters.kube.access import BadKubeconfig, host_of
from console import reach


@dataclass(frozen=True, slots=True)
class Reach(reach.Reach):
    """Which addresses a cluster may have, beside public ones."""

    def check(self, server: str) -> None:
        """Raises BadKubeconfig for a server's address that leads where it may not. The resolver is
        asked; a name unknown to it passes.
        """
        if why := self.bars_host(host_of(server)):
            raise BadKubeconfig(
                f"Muster does not connect to the cluster's address: {why}. Give the address of "
                "its API server."
            )

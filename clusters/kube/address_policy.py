"""Which addresses a connection to a cluster may lead to."""

from dataclasses import dataclass

from clusters.kube.access import BadKubeconfig, parse_host
from console import url_safety


@dataclass(frozen=True, slots=True)
class ClusterAddressPolicy(url_safety.AddressPolicy):
    """The addresses that a cluster may have, beside public ones."""

    def check_server(self, server: str) -> None:
        """Raise BadKubeconfig for a server's address that leads to a forbidden place.

        The resolver is asked; a name unknown to it passes.
        """
        if why := self.find_host_problem(parse_host(server)):
            raise BadKubeconfig(
                f"Muster does not connect to the cluster's address: {why}. Give the address of "
                "its API server."
            )

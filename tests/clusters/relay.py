"""A relay before a cluster: it records every request and passes it on, except those that the test
answers itself.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clusters.models import Cluster
from tests.cast import NOWHERE
from tests.clusters.kube.faults import Exchange, FaultServer, Request, status
from tests.conformance.api import Api

Refusal = tuple[int, str]
"""The code and the reason of a refusal."""


class Relay(FaultServer):
    """A relay. `find_refusal` returns with which refusal a request is answered; None
    passes it on.
    """

    def __init__(
        self,
        kubeconfig: Path,
        find_refusal: Callable[[Request], Refusal | None] = lambda request: None,
    ) -> None:
        super().__init__(self._forward)
        self.find_refusal = find_refusal
        self._api = Api.from_kubeconfig(kubeconfig)

    def __exit__(self, *failure: object) -> None:
        super().__exit__(*failure)
        self._api.close()

    def lead_cluster_here(self, cluster: Cluster) -> None:
        """Let the cluster's row lead to this relay."""
        cluster.server = f"http://127.0.0.1:{self.port}"
        cluster.kubeconfig = NOWHERE.replace("https://127.0.0.1:1", cluster.server)
        cluster.save()

    def list_requests(self, *methods: str) -> list[str]:
        """Return the requests of these methods, of all where none is named, as "PATCH
        /api/v1/namespaces/x".
        """
        return [
            f"{each.method} {each.path}"
            for each in self.requests
            if not methods or each.method in methods
        ]

    def _forward(self, exchange: Exchange) -> None:
        request = exchange.request
        if refusal := self.find_refusal(request):
            if refusal[1] == "NotServed":
                exchange.answer(404, b"404 page not found\n")
            else:
                exchange.answer(refusal[0], status(*refusal))
            return
        kind = request.headers.get("content-type", "application/json")
        query: dict[str, Any] = request.query
        answer = self._api.request(
            request.method, request.path, request.body or None, content_type=kind, **query
        )
        exchange.answer(answer.status, answer.body)


def refuse_queues(request: Request) -> Refusal | None:
    """Refuse Queues, as a cluster without KAI does."""
    return (404, "NotServed") if "/scheduling.run.ai/" in request.path else None


def refuse_priority_classes(request: Request) -> Refusal | None:
    """Refuse priority classes, as for a user who may not make them."""
    return (403, "Forbidden") if "/priorityclasses" in request.path else None

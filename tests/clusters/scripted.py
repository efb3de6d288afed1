"""A cluster that answers as a test's script says: discovery, classes, permissions and the webhook
of GPU sharing, over a real socket.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusters.job_kinds import JOBS
from clusters.job_kinds.pytorch import PYTORCHJOBS
from clusters.kube.resources import NODES, PODGROUPS, PODS, QUEUES, Resource
from tests.cast import NOWHERE
from tests.clusters.kube.faults import Exchange, FaultServer, status

Object = dict[str, Any]
KAI = (QUEUES, PODGROUPS)
USUAL = (PODS, NODES, JOBS, PYTORCHJOBS, *KAI)

SHARING_OFF = (
    'admission webhook "validating-kai-admission" denied the request: '
    "attempting to create a pod default/muster-probe with gpu sharing request, while GPU sharing "
    "is disabled"
)


@dataclass
class ClusterScript:
    """What the cluster has, and what it refuses."""

    served: Sequence[Resource] = USUAL
    lists: dict[str, list[Object]] = field(default_factory=dict)
    """The items of a list, by plural."""
    denied_verbs: set[tuple[str, str]] = field(default_factory=set)
    """(verb, plural) that the credentials may not use."""
    forbidden_lists: set[str] = field(default_factory=set)
    """Plurals whose lists are answered by 403."""
    pod_refusal: str = ""
    """Why a pod that asks for a part of a GPU is refused."""
    has_kai_webhook: bool = True
    """Whether KAI's webhook adds its variables to such a pod."""
    openapi: Object = field(default_factory=dict)
    is_stale: bool = False
    version: str = "v1.34.0"
    uid: str = ""
    """That of its namespace kube-system; "" where it may not be read."""

    def __call__(self, exchange: Exchange) -> None:
        path, method = exchange.request.path, exchange.request.method
        answer = self._post(path, exchange) if method == "POST" else self._get(path)
        code, body = answer if isinstance(answer, tuple) else (200, json.dumps(answer).encode())
        exchange.answer(code, body)

    def _get(self, path: str) -> Any:
        if path == "/version":
            return {"gitVersion": self.version, "platform": "linux/amd64"}
        if path in ("/api", "/apis"):
            return self._discovery(core=path == "/api")
        if path.startswith("/openapi"):
            return self.openapi
        if path == "/api/v1/namespaces/kube-system":
            return (
                {"metadata": {"name": "kube-system", "uid": self.uid}}
                if self.uid
                else (403, status(403, "Forbidden", "namespaces is forbidden"))
            )
        plural = path.rpartition("/")[2]
        if plural in self.forbidden_lists:
            return 403, status(403, "Forbidden", f"{plural} is forbidden")
        return {"metadata": {}, "items": self.lists.get(plural, [])}

    def _post(self, path: str, exchange: Exchange) -> Any:
        body = json.loads(exchange.request.body)
        if path.endswith("selfsubjectaccessreviews"):
            attributes = body["spec"]["resourceAttributes"]
            return {
                "status": {
                    "allowed": (attributes["verb"], attributes["resource"]) not in self.denied_verbs
                }
            }
        if path.endswith("selfsubjectreviews"):
            return {"status": {"userInfo": {"username": "system:serviceaccount:muster:muster"}}}
        if self.has_kai_webhook and path.endswith("/pods"):
            body["spec"]["containers"][0]["env"] = [{"name": "GPU_PORTION"}]
        assert exchange.request.query.get("dryRun") == "All", f"something was made: {path}"
        return (
            (403, status(403, "Forbidden", self.pod_refusal))
            if self.pod_refusal
            else (201, json.dumps(body).encode())
        )

    def _discovery(self, *, core: bool) -> Object:
        groups: dict[str, dict[str, list[Object]]] = {}
        for each in self.served:
            if (each.group == "") is core:
                entry = {
                    "resource": each.plural,
                    "scope": "Namespaced" if each.namespaced else "Cluster",
                    "verbs": ["get"],
                }
                groups.setdefault(each.group, {}).setdefault(each.version, []).append(entry)
        freshness = "Stale" if self.is_stale else "Current"
        items = []
        for group, its in groups.items():
            versions = [
                {"version": name, "resources": some, "freshness": freshness}
                for name, some in its.items()
            ]
            items.append({"metadata": {"name": group}, "versions": versions})
        return {"kind": "APIGroupDiscoveryList", "items": items}


def serve_script(script: ClusterScript | None = None) -> FaultServer:
    """Return the cluster as a server; use it in a with block."""
    return FaultServer(script or ClusterScript())


def build_kubeconfig(server: FaultServer, token: str = "none") -> str:
    """Return a kubeconfig that leads to this server."""
    return NOWHERE.replace("https://127.0.0.1:1", f"http://127.0.0.1:{server.port}").replace(
        "token: none", f"token: {token}"
    )


def build_items(names: Iterable[str], **more: Any) -> list[Object]:
    """Return items of a list with these names."""
    return [{"metadata": {"name": name}, **more} for name in names]

"""The kinds of objects that Muster uses, and their paths in the Kubernetes API."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from clusters.kube.errors import Rejected
from console.texts import is_dns_label, is_dns_subdomain


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind, as the paths of the API spell it. `group` is "" for the core group."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """The kind as `Capabilities.served` has it: "apps/v1/deployments", "v1/pods"."""
        return f"{self.api_version}/{self.plural}"

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str = ""
    ) -> str:
        """Return the path of a collection or of one object.

        Without a namespace it is the collection over all namespaces. Raises Rejected for a
        namespace or name that no object can have, and for one object without its namespace.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", _quote_name(namespace, is_dns_label, "metadata.namespace")]
        elif self.namespaced and name is not None:
            raise Rejected(
                f"{self.plural} are in a namespace, and none was given", reason="Invalid"
            )
        parts.append(self.plural)
        if name is not None:
            parts.append(_quote_name(name, is_dns_subdomain, "metadata.name"))
        if subresource:
            parts.append(quote(subresource, safe=""))
        return "/".join(parts)


def _quote_name(value: str, is_possible: Callable[[str], bool], field: str) -> str:
    if not is_possible(value):
        excerpt = value if len(value) <= 80 else value[:80] + "…"
        message = f"{excerpt!r} is not a name that an object can have"
        raise Rejected(message, status=422, reason="Invalid", causes=[(field, message)])
    return quote(value, safe="")


PODS = Resource("", "v1", "pods")
EVENTS = Resource("", "v1", "events")
SECRETS = Resource("", "v1", "secrets")
CONFIGMAPS = Resource("", "v1", "configmaps")
SERVICES = Resource("", "v1", "services")
SERVICEACCOUNTS = Resource("", "v1", "serviceaccounts")
PERSISTENTVOLUMECLAIMS = Resource("", "v1", "persistentvolumeclaims")
NODES = Resource("", "v1", "nodes", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)

LEASES = Resource("coordination.k8s.io", "v1", "leases")
STORAGECLASSES = Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False)
PRIORITYCLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False
)
SELF_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods")
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", namespaced=False)

CLUSTERTRAININGRUNTIMES = Resource(
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", namespaced=False
)

QUEUES = Resource("scheduling.run.ai", "v2", "queues", namespaced=False)
PODGROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups")

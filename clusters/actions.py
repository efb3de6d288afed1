"""What a person, or `up`, does about clusters. Who may is decided by the caller; the database is changed and the rest is asked for."""

from clusters.kube.access import Access, BadKubeconfig, from_kubeconfig
from clusters.models import Cluster
from clusters.tasks import heartbeat
from console.errors import Clash, UserError


def register(name: str, kubeconfig: str, *, is_local: bool = False) -> Cluster:
    """A new cluster. Raises UserError, naming the field, for a kubeconfig that cannot be used and for a name that is taken."""
    access = _access(kubeconfig)
    if Cluster.objects.filter(name=name).exists():
        raise Clash(f"A cluster named {name} is registered already. Choose another name.", field="name")
    cluster = Cluster.objects.create(name=name, server=access.server, kubeconfig=kubeconfig, is_local=is_local)
    heartbeat.soon(str(cluster.pk))
    return cluster


def reconnect(cluster: Cluster, kubeconfig: str) -> None:
    """Reach the cluster with another kubeconfig from now on. Raises UserError for one that cannot be used."""
    access = _access(kubeconfig)
    cluster.server, cluster.kubeconfig = access.server, kubeconfig
    # What was known of it was known through the other one: steps may try again at once.
    cluster.unreachable_since, cluster.trouble = None, ""
    cluster.save(update_fields=["server", "kubeconfig", "unreachable_since", "trouble"])
    heartbeat.soon(str(cluster.pk))


def _access(kubeconfig: str) -> Access:
    try:
        return from_kubeconfig(kubeconfig)
    except BadKubeconfig as error:
        raise UserError(str(error), field="kubeconfig") from error

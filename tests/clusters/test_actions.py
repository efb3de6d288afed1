"""A cluster is registered with what reaches it, or refused in words."""

import pytest

from clusters import actions
from clusters.models import Cluster
from console.errors import Clash, UserError
from tests.cast import NOWHERE, Cast


def test_a_cluster_is_known_by_its_kubeconfigs_address(db: None) -> None:
    cluster = actions.register("there", NOWHERE)
    assert (cluster.server, cluster.state, cluster.is_local) == ("https://127.0.0.1:1", "WaitingToConnect", False)


def test_a_name_that_is_taken_is_refused_at_its_field(cast: Cast) -> None:
    with pytest.raises(Clash, match="Choose another name") as refusal:
        actions.register(cast.cluster.name, NOWHERE)
    assert refusal.value.field == "name"


@pytest.mark.parametrize("text", ["", "words", NOWHERE.replace("token: none", "username: me")])
def test_a_kubeconfig_that_cannot_be_used_is_refused_and_nothing_changes(cast: Cast, text: str) -> None:
    with pytest.raises(UserError) as refusal:
        actions.register("there", text)
    assert refusal.value.field == "kubeconfig"
    with pytest.raises(UserError):
        actions.reconnect(cast.cluster, text)
    assert Cluster.objects.get().kubeconfig == NOWHERE


def test_a_cluster_is_reached_with_its_new_kubeconfig(cast: Cast) -> None:
    actions.reconnect(cast.cluster, NOWHERE.replace("127.0.0.1:1", "127.0.0.1:2"))
    assert Cluster.objects.get().server == "https://127.0.0.1:2"

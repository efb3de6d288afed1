"""A cluster is registered with what reaches it, or refused in words."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from clusters import actions, cluster_checks, connections
from clusters.cluster_forms import ClusterChangeForm
from clusters.cluster_saving import save_cluster
from clusters.forms import ProjectForm
from clusters.models import Cluster
from console.errors import Clash, UserError
from projects.models import Project
from tests.cast import NOWHERE, Cast


def test_a_cluster_is_known_by_its_kubeconfigs_address(db: None) -> None:
    cluster = actions.register("there", NOWHERE)
    assert (cluster.server, cluster.state, cluster.is_local) == (
        "https://127.0.0.1:1",
        "WaitingToConnect",
        False,
    )


def test_a_name_that_is_taken_is_refused_at_its_field(cast: Cast) -> None:
    with pytest.raises(Clash, match="Choose another name") as refusal:
        actions.register(cast.cluster.name, NOWHERE)
    assert refusal.value.field == "name"


@pytest.mark.parametrize("text", ["", "words", NOWHERE.replace("token: none", "username: me")])
def test_a_kubeconfig_that_cannot_be_used_is_refused_and_nothing_changes(
    cast: Cast, text: str
) -> None:
    with pytest.raises(UserError) as refusal:
        actions.register("there", text)
    assert refusal.value.field == "kubeconfig"
    with pytest.raises(UserError):
        actions.reconnect(cast.cluster, text)
    assert Cluster.objects.get().kubeconfig == NOWHERE


def test_a_cluster_is_reached_with_its_new_kubeconfig(cast: Cast) -> None:
    actions.reconnect(cast.cluster, NOWHERE.replace("127.0.0.1:1", "127.0.0.1:2"))
    assert Cluster.objects.get().server == "https://127.0.0.1:2"


def test_the_embedded_one_is_not_a_way_to_metadata_either(cast: Cast) -> None:
    with pytest.raises(UserError, match="metadata"):
        actions.reconnect(cast.cluster, NOWHERE.replace("127.0.0.1:1", "169.254.169.254"))


@pytest.mark.parametrize("is_remembered", [True, False])
def test_one_that_was_removed_meanwhile_keeps_no_credentials_and_gets_none(
    cast: Cast, is_remembered: bool
) -> None:
    rows = Cluster.objects.filter(pk=cast.cluster.pk)
    stale_cluster = rows.get()
    if is_remembered:
        rows.update(removed_at="2026-01-01T00:00Z", kubeconfig="")
    else:
        actions.remove(rows.get(), cast.alice, force=True)
    form = ClusterChangeForm(
        ClusterChangeForm.values(stale_cluster), is_local=False, stored_way="none"
    )
    assert form.is_valid(), form.errors
    late_changes: tuple[Callable[[], object], ...] = (
        lambda: save_cluster(stale_cluster.pk, form, cast.alice, stale_cluster.edit_version),
        lambda: actions.reconnect(stale_cluster, NOWHERE),
        lambda: actions.rename(stale_cluster, "other"),
        lambda: actions.enable(stale_cluster),
        lambda: actions.disable(stale_cluster),
        lambda: actions.request_check(stale_cluster),
    )
    for change in late_changes:
        with pytest.raises(Clash, match="removed by somebody else"):
            change()
    stale_cluster.capabilities = {"served": ["v1/pods"]}
    cluster_checks._save_fields(stale_cluster, "capabilities")
    actions.remove(stale_cluster, cast.alice)
    assert list(rows.values_list("kubeconfig", "name", "capabilities")) in ([("", "here", {})], [])


def test_no_project_is_made_on_one_that_was_removed_meanwhile(cast: Cast) -> None:
    given: dict[str, Any] = {
        "name": "late",
        "department": "new",
        "cluster": cast.cluster.pk,
        "gpu_quota": Decimal(1),
    }
    form = ProjectForm(given, user=cast.alice)
    assert form.is_valid(), form.errors
    actions.remove(Cluster.objects.get(pk=cast.cluster.pk), cast.alice, force=True)
    with pytest.raises(Clash, match="Choose another one") as refusal:
        form.save()
    assert refusal.value.field == "cluster"
    assert not Project.objects.filter(name="late").exists()


def test_what_a_connection_is_made_of_is_not_in_its_repr(cast: Cast) -> None:
    secret = "s3cr3t-token"
    Cluster.objects.update(kubeconfig=NOWHERE.replace("token: none", f"token: {secret}"))
    client = connections.get_client(cast.cluster.pk)
    assert secret not in repr((client.access, *connections._connections.values()))
    connections.close_all()

"""Read-only volumes: how each framework mounts them, and what pages say where nobody keeps them."""

from typing import Any

import pytest

from clusters.models import Node
from tests.cast import Cast, a_spec
from tests.workloads.wizarding import Walk
from workloads import actions
from workloads.kube_objects import Object
from workloads.manifests import build_objects
from workloads.queries.read_only_mounts import LABEL
from workloads.specs import (
    Architecture,
    Claim,
    Compute,
    Configuration,
    Environment,
    Framework,
    Setup,
    Spec,
    VolumeAccess,
)

RANK_0 = VolumeAccess.RANK_0_WRITES


def a_setup(access: VolumeAccess = RANK_0) -> Setup:
    volume = Claim(path="/out", access=access, claim="team")
    return Setup(Environment("x"), Compute(), volumes=(volume,))


def list_replicas(part: Any) -> list[Object]:
    """Return the entries of an object that are a number of pods made of one template."""
    if not isinstance(part, dict):
        return []
    if "template" in part:
        return [part]
    return [found for value in part.values() for found in list_replicas(value)]


@pytest.mark.parametrize(
    ("framework", "configuration"),
    [
        (framework, configuration)
        for framework in Framework
        for configuration in framework.configurations
        if framework.adapter.can_set_rank_0_apart(
            has_master=configuration is Configuration.WORKERS_AND_MASTER
        )
    ],
)
def test_every_pod_but_rank_0_mounts_the_volume_read_only(
    framework: Framework, configuration: Configuration
) -> None:
    spec = Spec(
        name="train1",
        project="p",
        namespace="n",
        queue="q",
        setup=a_setup(),
        architecture=Architecture.DISTRIBUTED,
        framework=framework,
        configuration=configuration,
        workers=3,
        parameter_servers=int(framework is Framework.TENSORFLOW),
    )
    replicas = list_replicas(build_objects(spec, workload_id="w-1", attempt=1)[-1])
    access = [
        (each.get("replicas", 1), mount.get("readOnly", False))
        for each in replicas
        for container in each["template"]["spec"]["containers"]
        for mount in container["volumeMounts"]
        if mount["mountPath"] == "/out"
    ]
    assert [number for number, is_read_only in access if not is_read_only] == [1]
    assert sum(number for number, _ in access) == spec.pod_count


def label_node(cast: Cast, words: str) -> None:
    Node.objects.create(cluster=cast.cluster, name="n1", is_ready=True, labels={LABEL: words})


@pytest.mark.django_db
@pytest.mark.parametrize("words", ["not-enforced", "enforced", ""])
def test_details_say_where_a_volume_is_not_kept(cast: Cast, words: str) -> None:
    label_node(cast, words)
    workload = actions.submit(
        a_spec(cast.team_a, setup=a_setup()), project=cast.team_a, user=cast.bob
    )
    walk = Walk(cast)
    text = walk.client.get(f"/workloads/{workload.pk}/details").content.decode()
    expected = "/out: the PVC team, writable by rank 0 only"
    assert (f"{expected} (not enforced here)" in text) is (words == "not-enforced")
    assert expected in text


@pytest.mark.django_db
@pytest.mark.parametrize("words", ["not-enforced", "enforced"])
def test_the_wizard_says_it_before(cast: Cast, words: str) -> None:
    label_node(cast, words)
    walk = Walk(cast).send_start()
    assert ("Not enforced here:" in walk.text) is (words == "not-enforced")
    volume = {"kind": "pvc", "path": "/out", "name": "team", "access": RANK_0.value}
    walk.send_setup(**{f"volumes-0-{name}": value for name, value in volume.items()}).send()
    assert walk.step == "review"
    assert (walk.text.count("(not enforced here)") == 2) is (words == "not-enforced")

"""The kustomizations render, every object is one that Kubernetes takes, and pods have no more than
they need.
"""

import copy
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from clusters import project_provisioning
from console import options, processes
from tests.deploy.documented import PRODUCTION
from tests.deploy.image import environment
from tests.deploy.rendering import (
    CONSOLES,
    OVERLAYS,
    needs_kubectl,
    of_kind,
    pod_specs,
    problems,
    render_kustomization,
    render_with_component,
)
from workloads.specs.choices import PRIORITY_VALUES

pytestmark = needs_kubectl

PROCESSES = {f"muster-{name}" for name in processes.PROCESS_NAMES}
RESERVED = {"KUBERNETES_SERVICE_HOST", "FORWARDED_ALLOW_IPS"}


@pytest.mark.parametrize("place", ["cluster", "base", *(f"overlays/{name}" for name in OVERLAYS)])
def test_every_object_is_one_that_a_strict_server_takes(place: str) -> None:
    assert [each for obj in render_kustomization(place) for each in problems(obj)] == []


def test_a_field_that_kubernetes_does_not_know_is_found() -> None:
    wrong = copy.deepcopy(
        of_kind(render_kustomization("overlays/example"), "Deployment")["muster-web"]
    )
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["httpGett"] = {}
    wrong["spec"]["replicas"] = "two"
    assert len(problems(wrong)) == 2


@pytest.mark.parametrize("place", CONSOLES)
def test_every_process_is_there_and_is_started_as_the_console_starts_it(place: str) -> None:
    specs = pod_specs(render_kustomization(f"overlays/{place}"))
    assert set(specs) == PROCESSES | {"muster-prepare"}
    for name in processes.PROCESS_NAMES:
        assert specs[f"muster-{name}"]["containers"][0]["command"] == [
            "python",
            "-m",
            "console",
            name,
        ]
    assert specs["muster-prepare"]["containers"][0]["command"] == ["python", "manage.py", "prepare"]


@pytest.mark.parametrize("place", CONSOLES)
def test_pods_have_no_more_rights_than_they_need(place: str) -> None:
    for name, spec in pod_specs(render_kustomization(f"overlays/{place}")).items():
        about = spec["securityContext"]
        assert about["runAsNonRoot"], name
        assert about["runAsUser"] >= 10_000, name
        assert about["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            allowed = container["securityContext"]
            assert allowed == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert {mount["mountPath"] for mount in container["volumeMounts"]} >= {
                "/data",
                "/tmp",
            }, name
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}, name
            assert "memory" in container["resources"]["limits"], name


def test_only_who_talks_to_clusters_gets_the_token_of_the_service_account() -> None:
    given = {
        name: spec["automountServiceAccountToken"]
        for name, spec in pod_specs(render_kustomization("overlays/example")).items()
    }
    assert given == {
        "muster-web": True,
        "muster-worker": True,
        "muster-follow": True,
        "muster-capture": True,
        "muster-beat": False,
        "muster-prepare": False,
    }


def test_every_process_has_a_probe_of_what_it_shows() -> None:
    specs = pod_specs(render_kustomization("overlays/example"))
    for name in ("muster-worker", "muster-beat", "muster-follow", "muster-capture"):
        [probe] = [specs[name]["containers"][0]["livenessProbe"]["exec"]["command"]]
        assert environment()["MUSTER_ALIVE_FILE"] in probe[-1], name
    assert "livenessProbe" in specs["muster-web"]["containers"][0]


@pytest.mark.parametrize(("minutes", "status"), [(0, 0), (60, 1), (None, 1)])
def test_the_probe_tells_a_fresh_sign_of_life_from_an_old_one_and_from_none(
    tmp_path: Path, minutes: int | None, status: int
) -> None:
    alive = tmp_path / "alive"
    if minutes is not None:
        alive.touch()
        os.utime(alive, times=(time.time() - 60 * minutes,) * 2)
    for name in ("muster-worker", "muster-beat", "muster-follow", "muster-capture"):
        command = pod_specs(render_kustomization("overlays/example"))[name]["containers"][0][
            "livenessProbe"
        ]["exec"]["command"]
        here = [part.replace("/tmp/alive", str(alive)) for part in command]
        assert subprocess.run(here, capture_output=True).returncode == status


def test_probes_reach_the_web_process_under_a_name_it_answers_to() -> None:
    web = pod_specs(render_kustomization("overlays/example"))["muster-web"]["containers"][0]
    for probe, path in (
        ("startupProbe", "/healthz"),
        ("livenessProbe", "/healthz"),
        ("readinessProbe", "/readyz"),
    ):
        assert web[probe]["httpGet"]["path"] == path
        assert web[probe]["httpGet"]["httpHeaders"] == [{"name": "Host", "value": "localhost"}]


def test_there_is_one_clock_and_it_is_never_doubled_by_an_upgrade() -> None:
    beat = of_kind(render_kustomization("overlays/example"), "Deployment")["muster-beat"]["spec"]
    assert (beat["replicas"], beat["strategy"]) == (1, {"type": "Recreate"})


def test_what_has_several_pods_keeps_one_through_a_drain() -> None:
    objects = render_kustomization("overlays/example")
    several = {
        name
        for name, each in of_kind(objects, "Deployment").items()
        if each["spec"]["replicas"] > 1
    }
    budgets = of_kind(objects, "PodDisruptionBudget")
    assert budgets.keys() == several
    deployments = of_kind(objects, "Deployment")
    for name, budget in budgets.items():
        assert (
            budget["spec"]["selector"]["matchLabels"].items()
            <= deployments[name]["spec"]["template"]["metadata"]["labels"].items()
        )


def test_no_pod_of_the_console_can_be_reached_save_the_web_process_by_the_proxy() -> None:
    policies = of_kind(render_kustomization("overlays/example"), "NetworkPolicy")
    labels = {"app.kubernetes.io/name": "muster"}
    assert policies["muster"]["spec"]["podSelector"]["matchLabels"] == labels
    assert (
        "ingress" not in policies["muster"]["spec"] or policies["muster"]["spec"]["ingress"] == []
    )
    assert set(policies["muster"]["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    web = policies["muster-web"]["spec"]
    assert web["podSelector"]["matchLabels"] == labels | {"app.kubernetes.io/component": "web"}
    assert all("namespaceSelector" in peer for rule in web["ingress"] for peer in rule["from"])


@pytest.mark.parametrize("place", CONSOLES)
def test_the_service_and_the_ingress_lead_to_the_web_process(place: str) -> None:
    objects = render_kustomization(f"overlays/{place}")
    service = of_kind(objects, "Service")["muster"]["spec"]
    web = of_kind(objects, "Deployment")["muster-web"]["spec"]["template"]
    assert service["selector"].items() <= web["metadata"]["labels"].items()
    assert service["ports"][0]["targetPort"] in [
        port["name"] for port in web["spec"]["containers"][0]["ports"]
    ]
    ingress = of_kind(objects, "Ingress")["muster"]["spec"]
    assert ingress["rules"][0]["http"]["paths"][0]["backend"]["service"] == {
        "name": "muster",
        "port": {"name": service["ports"][0]["name"]},
    }
    [rule] = ingress["rules"]
    assert ingress["tls"][0]["hosts"] == [rule["host"]]
    # The Service's own name, too, which a Prometheus of the cluster asks.
    assert settings(place)["MUSTER_ALLOWED_HOSTS"].split(",") == [rule["host"], "muster.muster.svc"]


@pytest.mark.parametrize("place", CONSOLES)
def test_only_settings_that_there_are_are_set(place: str) -> None:
    known = {f"{options.PREFIX}{name.upper()}" for name in options.Options.model_fields}
    assert settings(place).keys() <= known | RESERVED


@pytest.mark.parametrize("place", OVERLAYS)
def test_no_secret_is_in_a_manifest(place: str) -> None:
    assert all(
        "data" not in each and "stringData" not in each
        for each in of_kind(render_kustomization(f"overlays/{place}"), "Secret").values()
    )


def test_logs_lie_where_everybody_who_reads_them_looks() -> None:
    specs = pod_specs(render_kustomization("overlays/example"))
    for name in ("muster-web", "muster-worker", "muster-capture"):
        mounts = {
            mount["name"]: mount["mountPath"]
            for mount in specs[name]["containers"][0]["volumeMounts"]
        }
        assert mounts["logs"] == "/data/logs", name


def test_the_authority_of_redis_is_where_the_documented_address_has_it(tmp_path: Path) -> None:
    objects = render_with_component("redis-ca", tmp_path)
    assert [each for obj in objects for each in problems(obj)] == []
    [file] = set(re.findall(r"ssl_ca_certs=([\w./-]+)", PRODUCTION.read_text()))
    directory, _, key = file.rpartition("/")
    assert f"create configmap muster-redis-ca --from-file={key}\n" in PRODUCTION.read_text()
    specs = pod_specs(objects)
    assert set(specs) == PROCESSES | {"muster-prepare"}
    for name, spec in specs.items():
        volumes = {each["name"]: each for each in spec["volumes"]}
        assert volumes["redis-ca"]["configMap"] == {"name": "muster-redis-ca"}, name
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            mount = {"name": "redis-ca", "mountPath": directory, "readOnly": True}
            assert mount in container["volumeMounts"], name


@pytest.mark.parametrize("place", ["cluster", "overlays/example", "overlays/remote-cluster"])
def test_the_priority_classes_are_those_that_a_submission_chooses_from(place: str) -> None:
    made = {
        name: each["value"]
        for name, each in of_kind(render_kustomization(place), "PriorityClass").items()
    }
    assert made == {each.value: number for each, number in PRIORITY_VALUES.items()}
    assert made == project_provisioning.PRIORITY_CLASSES


def settings(place: str) -> dict[str, Any]:
    """What the ConfigMap sets, and every container reads."""
    objects = render_kustomization(f"overlays/{place}")
    [(name, found)] = of_kind(objects, "ConfigMap").items()
    for spec in pod_specs(objects).values():
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            assert [
                *(each.popitem()[1]["name"] for each in copy.deepcopy(container["envFrom"]))
            ] == [name, "muster"]
    data: dict[str, Any] = found["data"]
    return data

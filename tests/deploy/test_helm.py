"""The chart is made from the manifests, and with its own values it is the example overlay."""

import copy
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.options import PREFIX, Options
from scripts import helm_chart
from tests.deploy.documented import PRODUCTION, blocks
from tests.deploy.helm_rendering import (
    CHART,
    EXAMPLE_VALUES,
    RefusedValues,
    default_values,
    render_chart,
    render_template,
)
from tests.deploy.rendering import (
    DEPLOY,
    Object,
    needs_kubectl,
    of_kind,
    pod_specs,
    problems,
    render_kustomization,
    render_with_component,
)

needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
OTHER_VALUES: list[Object] = [
    {},
    {"logs": {"store": "s3://muster-logs/production"}},
    {"logs": {"storageClass": "nfs"}, "settings": {"MUSTER_LOG_BYTES": "1", "MUSTER_DEBUG": "no"}},
    {"redisCa": "muster-redis-ca", "logs": {"store": "s3://muster-logs/production"}},
    {"imagePullSecrets": [{"name": "registry-login"}, {"name": "mirror-login"}]},
    {"clusterAccess": False, "replicas": {"web": 5}, "ingress": {"annotations": {}}},
]


@needs_kubectl
def test_the_chart_is_made_from_the_manifests_as_they_are() -> None:
    made = helm_chart.build_files(render_kustomization("overlays/example"))
    found = {
        str(path.relative_to(CHART)): path.read_text()
        for path in CHART.rglob("*")
        if path.is_file()
    }
    assert found == made, "run: python scripts/helm_chart.py"


def normalize(objects: list[Object]) -> dict[tuple[str, str], Object]:
    """Return the objects by kind and name, without what kustomize and Helm name differently."""
    found = {}
    for each in copy.deepcopy(objects):
        text = yaml.safe_dump(each)
        if each["kind"] == "ConfigMap":
            text = text.replace(each["metadata"]["name"], "muster-settings")
        obj: Object = yaml.safe_load(text)
        obj["metadata"]["name"] = obj["metadata"]["name"].removesuffix("-1")
        obj["metadata"].get("annotations", {}).pop("helm.sh/resource-policy", None)
        obj["metadata"].update({"annotations": obj["metadata"].get("annotations") or {}})
        template = obj.get("spec", {}).get("template", {})
        template.get("metadata", {}).pop("annotations", None)
        found[obj["kind"], obj["metadata"]["name"]] = obj
    return found


@needs_kubectl
def test_with_the_values_of_the_example_it_is_the_example() -> None:
    example = [
        each for each in render_kustomization("overlays/example") if each["kind"] != "Namespace"
    ]
    [config] = of_kind(example, "ConfigMap")
    text = yaml.safe_dump_all(example).replace(config, "muster-settings")
    assert normalize(render_chart()) == normalize(list(yaml.safe_load_all(text)))


@needs_kubectl
def test_with_an_authority_for_redis_its_pods_are_those_of_the_component(tmp_path: Path) -> None:
    wanted = pod_specs(render_with_component("redis-ca", tmp_path))
    rendered = pod_specs(render_chart(redisCa="muster-redis-ca"))
    for name, spec in rendered.items():
        expected = wanted[name.removesuffix("-1")]
        assert spec["volumes"] == expected["volumes"]
        for kind in ("containers", "initContainers"):
            assert [each["volumeMounts"] for each in spec.get(kind, ())] == [
                each["volumeMounts"] for each in expected.get(kind, ())
            ]
    assert len(rendered) == len(wanted)


@pytest.mark.parametrize("values", OTHER_VALUES)
def test_every_object_is_one_that_a_strict_server_takes(values: Object) -> None:
    assert [each for obj in render_chart(**values) for each in problems(obj)] == []


def test_values_reach_what_they_are_for() -> None:
    objects = render_chart(
        image={"repository": "registry.example.com/ours", "tag": "2"},
        host="jobs.example.com",
        secret="keys",
        logs={"storageClass": "nfs", "size": "1Ti"},
        replicas={"web": 4},
        resources={"web": {"limits": {"memory": "2Gi"}}},
        settings={"MUSTER_LOG_BYTES": "1099511627776"},
    )
    containers = [
        container
        for spec in pod_specs(objects).values()
        for container in [*spec["containers"], *spec.get("initContainers", [])]
    ]
    assert {each["image"] for each in containers} == {"registry.example.com/ours:2"}
    assert {each["envFrom"][1]["secretRef"]["name"] for each in containers} == {"keys"}
    web = of_kind(objects, "Deployment")["muster-web"]["spec"]
    assert web["replicas"] == 4
    limits = web["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["memory"] == "2Gi"
    ingress = of_kind(objects, "Ingress")["muster"]["spec"]
    assert ingress["rules"][0]["host"] == ingress["tls"][0]["hosts"][0] == "jobs.example.com"
    settings = of_kind(objects, "ConfigMap")["muster-settings"]["data"]
    assert settings["MUSTER_ALLOWED_HOSTS"] == "jobs.example.com,muster.muster.svc"
    assert settings["MUSTER_LOG_BYTES"] == "1099511627776"
    claim = of_kind(objects, "PersistentVolumeClaim")["muster-logs"]["spec"]
    assert claim["storageClassName"] == "nfs"
    assert claim["resources"]["requests"]["storage"] == "1Ti"


@pytest.mark.parametrize("secrets", [[{"name": "registry-login"}], [], None])
def test_all_pods_get_the_pull_secrets(secrets: list[Object] | None) -> None:
    specs = pod_specs(render_chart(imagePullSecrets=secrets))
    assert len(specs) == 6
    for spec in specs.values():
        assert spec.get("imagePullSecrets", []) == (secrets or [])


def test_other_settings_are_other_pods() -> None:
    def find_checksum(**values: Any) -> str:
        web = of_kind(render_chart(**values), "Deployment")["muster-web"]
        return str(web["spec"]["template"]["metadata"]["annotations"]["checksum/settings"])

    usual = find_checksum()
    assert find_checksum() == usual
    for changed in (
        {"host": "x.example.com"},
        {"settings": {"A": "1"}},
        {"logs": {"store": "s3://x"}},
    ):
        assert find_checksum(**changed) != usual


def test_an_object_store_needs_no_volume() -> None:
    objects = render_chart(logs={"store": "s3://muster-logs/production"})
    assert not of_kind(objects, "PersistentVolumeClaim")
    assert "persistentVolumeClaim" not in yaml.safe_dump_all(objects)
    settings = of_kind(objects, "ConfigMap")["muster-settings"]["data"]
    assert settings["MUSTER_LOG_STORAGE"] == "s3://muster-logs/production"


def test_a_cluster_that_only_holds_the_console_gives_it_no_rights() -> None:
    kinds = {each["kind"] for each in render_chart(clusterAccess=False)}
    assert not kinds & {"ClusterRole", "ClusterRoleBinding", "PriorityClass"}


def test_a_cluster_that_has_the_priority_classes_keeps_its_own() -> None:
    kinds = {each["kind"] for each in render_chart(priorityClasses=False)}
    assert "PriorityClass" not in kinds
    assert {"ClusterRole", "ClusterRoleBinding"} <= kinds


def test_a_release_whose_values_are_older_than_that_of_the_priority_classes_keeps_them() -> None:
    """An upgrade with --reuse-values has no key of a value that has come since."""
    usual = of_kind(render_chart(), "PriorityClass")
    assert usual
    assert of_kind(render_chart(priorityClasses=None), "PriorityClass") == usual


def test_each_release_prepares_the_database_with_a_job_of_its_own() -> None:
    [path] = (CHART / "templates").glob("job.yaml")
    release = {"Namespace": "muster", "Revision": 7}
    image = default_values()["image"] | EXAMPLE_VALUES["image"]
    values = default_values() | {"image": image}
    job = yaml.safe_load(render_template(path.read_text(), {"Values": values, "Release": release}))
    assert job["metadata"]["name"] == "muster-prepare-7"


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"image": {"repository": ""}}, "image.repository"),
        ({"image": {"tag": ""}}, "image.tag"),
        ({"host": ""}, "host"),
        ({"ingress": {"tlsSecret": ""}}, "ingress.tlsSecret"),
    ],
)
def test_what_has_no_default_is_asked_for(values: Object, name: str) -> None:
    with pytest.raises(RefusedValues, match=rf"^{re.escape(name)} is empty: .*\.$"):
        render_chart(**values)


def test_each_value_without_a_default_is_asked_for() -> None:
    for above, below in (("image", "repository"), ("ingress", "tlsSecret")):
        assert default_values()[above][below] == ""
    assert default_values()["host"] == ""


def test_a_setting_is_not_given_twice() -> None:
    [config] = of_kind(render_chart(logs={"store": "s3://x"}), "ConfigMap").values()
    assert len(config["data"]) == 4
    for name in config["data"]:
        with pytest.raises(RefusedValues, match=f"settings.{name} is set by the chart"):
            render_chart(settings={"MUSTER_LOG_BYTES": "1", name: "x"})
    # Without a store, too: that of the logs is a value of its own.
    with pytest.raises(RefusedValues, match=r"logs\.store"):
        render_chart(settings={"MUSTER_LOG_STORAGE": "s3://y"})


@pytest.mark.parametrize("name", helm_chart.SECRETS)
def test_a_secret_is_no_setting(name: str) -> None:
    with pytest.raises(RefusedValues, match=f"settings.{name} is a secret"):
        render_chart(settings={name: "x"})


def test_each_option_that_is_a_secret_stands_in_the_secret() -> None:
    secret = {
        name for name in Options.model_fields if re.search("(secret|token|keys?|word)$", name)
    }
    urls = {"database_url", "redis_url"}
    names = {f"{PREFIX}{name.upper()}" for name in secret | urls}
    assert names == {each for each in helm_chart.SECRETS if each.startswith(PREFIX)}


def test_a_setting_that_is_a_number_keeps_its_digits() -> None:
    given = {"MUSTER_LOG_BYTES": 21474836480, "MUSTER_KUBE_RATE": 0.5, "MUSTER_DEBUG": False}
    settings = of_kind(render_chart(settings=given | {"MUSTER_HOST": None}), "ConfigMap")
    data = settings["muster-settings"]["data"]
    assert {name: data[name] for name in given} == {
        "MUSTER_LOG_BYTES": "21474836480",
        "MUSTER_KUBE_RATE": "0.5",
        "MUSTER_DEBUG": "false",
    }
    assert "MUSTER_HOST" not in data


@pytest.mark.parametrize("tag", [20260101, 1.1])
def test_a_tag_that_is_a_number_is_refused(tag: float) -> None:
    with pytest.raises(RefusedValues, match=r"^image\.tag is a number: write it in quotes\.$"):
        render_chart(image={"tag": tag})


def test_the_target_of_the_scrape_is_a_name_that_the_console_answers_to() -> None:
    scrape = (DEPLOY / "monitoring" / "scrape-config.yaml").read_text()
    [config, _] = yaml.safe_load_all(scrape)
    [[target]] = [each["targets"] for each in config["spec"]["staticConfigs"]]
    settings = of_kind(render_chart(), "ConfigMap")["muster-settings"]["data"]
    assert target in settings["MUSTER_ALLOWED_HOSTS"].split(",")


def test_the_notes_say_for_how_long_the_password_is_there() -> None:
    notes = (CHART / "templates" / "NOTES.txt").read_text()
    [job] = of_kind(render_chart(), "Job").values()
    assert f"removed {job['spec']['ttlSecondsAfterFinished'] // 60} minutes after" in notes
    assert "changepassword admin" in notes


def test_no_secret_is_in_the_chart() -> None:
    assert not of_kind(render_chart(), "Secret")
    assert all("PASSWORD" not in str(each) for each in default_values().values())


@pytest.mark.parametrize("text", ["{{ .Values.nothing }}", "{{ include 1 }}", "{{ if .Values.a }}"])
def test_what_the_renderer_does_not_know_is_an_error(text: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        render_template(text, {"Values": {"a": 1}, "Release": {}})


def test_every_value_that_the_documents_set_is_there() -> None:
    [command] = blocks("### With Helm")
    section = PRODUCTION.read_text().partition("### With Helm")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)
    named = [word for row in rows for word in re.findall(r"`([\w.]+)`", row)]
    parent = ""
    for word in [*re.findall(r"--set ([\w.]+)=", command), *named]:
        name = f"{parent}{word}" if word.startswith(".") else word
        parent = name.partition(".")[0]
        value = default_values()
        for part in name.split("."):
            value = value[part]


@needs_helm
@pytest.mark.parametrize("values", OTHER_VALUES)
def test_helm_renders_the_same(values: Object, tmp_path: Any) -> None:
    given = tmp_path / "values.yaml"
    given.write_text(yaml.safe_dump(values))
    usual = tmp_path / "example.yaml"
    usual.write_text(yaml.safe_dump(EXAMPLE_VALUES))
    for command in (["lint", "--strict"], ["template", "muster"]):
        done = subprocess.run(
            [
                *("helm", *command, str(CHART), "--namespace", "muster"),
                *("--values", str(usual), "--values", str(given)),
            ],
            capture_output=True,
            text=True,
            timeout=180,
            env=os.environ | {"HELM_NO_PLUGINS": "1"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
    objects = [each for each in yaml.safe_load_all(done.stdout) if each]
    rendered = render_chart(**values)
    assert normalize(objects) == normalize(rendered)

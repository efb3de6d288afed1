"""What a container gets to see: variables, their expansion, the downward API, devices."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet import environment
from localkube.kubelet.environment import ConfigError, PodSources
from localkube.kubelet.gpus import Gpu
from localkube.metadata import Object
from localkube.options import GPU_DEVICES_ANNOTATION

SECRETS: Mapping[str, Object] = {
    "login": {
        "data": {
            "token": base64.b64encode(b"s3cret").decode(),
            "raw": base64.b64encode(b"\xff").decode(),
        }
    }
}
CONFIGS: Mapping[str, Object] = {"settings": {"data": {"LR": "0.1", "a=b": "no"}}}
SOURCES = PodSources(SECRETS.get, CONFIGS.get, {"cpu": "4", "memory": "8Gi"})


def pod(*containers: Object, **metadata: Any) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "team-a", "uid": "u-1"} | metadata,
        "spec": {"nodeName": "localkube", "containers": list(containers)},
    }


def variables(
    env: list[Object], start: Mapping[str, str] | None = None, **container: Any
) -> dict[str, str]:
    made = {"name": "c", "env": env} | container
    return environment.build_environment(pod(made, labels={"app": "x"}), made, SOURCES, start or {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(A)", "x1y1"),
        ("$$(A)", "$(A)"),
        ("$(NONE)", "$(NONE)"),
        ("$A", "$A"),
        ("$(A", "$(A"),
        ("100$", "100$"),
        ("$$$(A)", "$1"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expected: str) -> None:
    assert environment.expand_variables(text, {"A": "1"}) == expected


@given(st.text())
def test_text_without_a_dollar_is_never_changed(text: str) -> None:
    plain = text.replace("$", "")
    assert environment.expand_variables(plain, {"A": "1"}) == plain


def test_nothing_of_this_processs_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    base = environment.build_base_environment(
        pod({"name": "c"}), Path("/h"), Path("/t"), Path("/venv/bin")
    )
    assert "AWS_SECRET_ACCESS_KEY" not in base
    assert base["HOSTNAME"] == "p"
    assert base["PATH"].startswith("/venv/bin:")
    assert os.environ["PATH"] not in base["PATH"]


def test_a_pod_with_a_host_name_bears_it() -> None:
    named = pod({"name": "c"})
    named["spec"]["hostname"] = "train-data-0"
    base = environment.build_base_environment(named, Path("/h"), Path("/t"), Path("/venv/bin"))
    assert base["HOSTNAME"] == "train-data-0"


def test_values_refer_to_what_was_defined_before_them() -> None:
    env = variables(
        [
            {"name": "A", "value": "1"},
            {"name": "B", "value": "$(A)2$(C)"},
            {"name": "C", "value": "3"},
        ]
    )
    assert (env["A"], env["B"]) == ("1", "12$(C)")


def test_secrets_and_config_maps_are_read_by_key_and_whole() -> None:
    env = variables(
        [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "login", "key": "token"}}}],
        envFrom=[{"configMapRef": {"name": "settings"}, "prefix": "S_"}],
    )
    assert (env["T"], env["S_LR"]) == ("s3cret", "0.1")
    assert "S_a=b" not in env


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"secretKeyRef": {"name": "none", "key": "k"}}, 'secret "none" not found'),
        ({"configMapKeyRef": {"name": "none", "key": "k"}}, 'configmap "none" not found'),
        (
            {"configMapKeyRef": {"name": "settings", "key": "k"}},
            "couldn't find key k in ConfigMap team-a/settings",
        ),
        ({"secretKeyRef": {"name": "login", "key": "raw"}}, "is not text"),
        ({"fieldRef": {"fieldPath": "status.nonsense"}}, "unsupported fieldPath: status.nonsense"),
    ],
)
def test_a_reference_that_leads_nowhere_says_where(source: Object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        variables([{"name": "X", "valueFrom": source}])


def test_an_optional_reference_that_leads_nowhere_is_left_out() -> None:
    missing = {"secretKeyRef": {"name": "none", "key": "k", "optional": True}}
    assert "X" not in variables(
        [{"name": "X", "valueFrom": missing}],
        envFrom=[{"secretRef": {"name": "none", "optional": True}}],
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "team-a"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "x"),
        ("metadata.annotations['none']", ""),
        ("spec.nodeName", "localkube"),
        ("status.podIP", "127.0.0.1"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_fields_of_the_pod_are_offered(path: str, expected: str) -> None:
    assert (
        variables([{"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}])["X"] == expected
    )


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ({"resource": "limits.memory", "divisor": "1Mi"}, "1024"),
        ({"resource": "requests.cpu"}, "1"),
        ({"resource": "requests.cpu", "divisor": "1m"}, "500"),
        ({"resource": "limits.cpu"}, "4"),
    ],
)
def test_resources_are_rounded_up_in_units_of_the_divisor(ref: Object, expected: str) -> None:
    resources = {"limits": {"memory": "1Gi"}, "requests": {"cpu": "500m"}}
    assert (
        variables([{"name": "X", "valueFrom": {"resourceFieldRef": ref}}], resources=resources)["X"]
        == expected
    )


REAL = [Gpu(index, f"GPU-{index}", "NVIDIA-H200", 143771) for index in range(8)]


def gpu_container(name: str, count: int) -> Object:
    return {"name": name, "resources": {"limits": {"nvidia.com/gpu": str(count)}}}


def test_whole_devices_are_dealt_out_to_the_containers_that_ask() -> None:
    one, two, none = gpu_container("one", 1), gpu_container("two", 2), {"name": "none"}
    made = pod(one, two, none, annotations={GPU_DEVICES_ANNOTATION: "2,5,6"})
    visible_devices = [
        environment.build_device_variables(made, container, devices=REAL)["CUDA_VISIBLE_DEVICES"]
        for container in (one, two, none)
    ]
    assert visible_devices == ["2", "5,6", ""]


def test_a_fraction_of_a_device_shows_that_device() -> None:
    made = pod({"name": "c"}, annotations={GPU_DEVICES_ANNOTATION: "3"})
    assert environment.build_device_variables(made, {"name": "c"}, devices=REAL) == {
        "CUDA_VISIBLE_DEVICES": "3",
        "NVIDIA_VISIBLE_DEVICES": "3",
    }


def test_a_device_is_named_as_the_machine_knows_it() -> None:
    made = pod({"name": "c"}, annotations={GPU_DEVICES_ANNOTATION: "1"})
    variables = environment.build_device_variables(made, {"name": "c"}, devices=REAL[4:6])
    assert variables["CUDA_VISIBLE_DEVICES"] == "5"


@pytest.mark.parametrize(
    ("annotations", "devices"),
    [
        ({}, REAL),
        ({GPU_DEVICES_ANNOTATION: "0"}, [Gpu(0, "virtual-0", "Virtual-GPU", 16384, virtual=True)]),
        ({GPU_DEVICES_ANNOTATION: "8,x"}, REAL),
    ],
)
def test_a_pod_without_real_devices_sees_none(annotations: Object, devices: list[Gpu]) -> None:
    made = pod({"name": "c"}, annotations=annotations)
    assert environment.build_device_variables(made, {"name": "c"}, devices=devices) == {
        "CUDA_VISIBLE_DEVICES": "",
        "NVIDIA_VISIBLE_DEVICES": "void",
    }


def test_a_pod_cannot_give_itself_another_ones_device() -> None:
    assert variables([{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}])["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    "env",
    [
        [{"name": "BIG", "value": "x" * 200_000}],
        [{"name": f"V{number}", "value": "x" * 100_000} for number in range(12)],
        [{"name": f"V{number}", "value": ""} for number in range(5000)],
        [{"name": "NUL", "value": "a\0b"}],
    ],
)
def test_more_than_a_process_can_be_given_is_refused_with_a_text(env: list[Object]) -> None:
    with pytest.raises(ConfigError):
        variables(env)


def test_values_that_double_with_every_variable_are_refused_at_the_first_that_is_too_long() -> None:
    env = [{"name": "V0", "value": "x" * 1000}]
    env += [{"name": f"V{n}", "value": f"$(V{n - 1})$(V{n - 1})"} for n in range(1, 12)]
    never_reached = {"secretKeyRef": {"name": "none", "key": "k"}}
    with pytest.raises(ConfigError, match="longer than 131072 bytes"):
        variables([*env, {"name": "LAST", "valueFrom": never_reached}])


def test_one_text_that_repeats_a_value_is_refused_before_it_is_whole() -> None:
    with pytest.raises(ConfigError, match="longer than 131072 bytes"):
        environment.expand_variables("$(A)" * 3, {"A": "x" * 60_000})


def test_bundles_that_are_too_large_together_are_refused_at_the_first_too_many() -> None:
    sources = PodSources(lambda _: None, lambda _: {"data": {"k": "x" * 100_000}}, {})
    bundles = [{"prefix": f"P{n}_", "configMapRef": {"name": "big"}} for n in range(12)]
    made = {"name": "c", "envFrom": [*bundles, {"secretRef": {"name": "none"}}]}
    with pytest.raises(ConfigError, match="take more than 1048576 bytes"):
        environment.build_environment(pod(made), made, sources, {})


def test_arguments_are_refused_at_the_first_too_many() -> None:
    arguments = iter(["$(A)"] * 100)
    with pytest.raises(ConfigError, match="take more than 1048576 bytes"):
        environment.expand_arguments(arguments, {"A": "x" * 100_000})
    assert len(list(arguments)) == 89


def test_a_secret_that_many_variables_name_is_read_once() -> None:
    names: list[str] = []

    def find_secret(name: str) -> Object | None:
        names.append(name)
        return SECRETS.get(name)

    ref = {"secretKeyRef": {"name": "login", "key": "token"}}
    made = {"name": "c", "env": [{"name": f"T{n}", "valueFrom": ref} for n in range(50)]}
    sources = PodSources(find_secret, CONFIGS.get, {})
    env = environment.build_environment(pod(made), made, sources, {})
    assert env["T49"] == "s3cret"
    assert names == ["login"]


def test_more_optional_references_than_variables_may_be_are_refused() -> None:
    ref = {"secretKeyRef": {"name": "login", "key": "none", "optional": True}}
    with pytest.raises(ConfigError, match="too many environment variables: 5000"):
        variables([{"name": f"V{n}", "valueFrom": ref} for n in range(5000)])

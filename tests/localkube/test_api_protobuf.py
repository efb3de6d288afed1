"""Objects that clients send as protobuf: what they mean in JSON, and bytes that mean nothing."""

import asyncio
import threading
from typing import Any

import pytest

from localkube.api import bodies, protobuf
from localkube.api.bodies import MAX_VALUES
from tests.localkube.api_server import ApiServer

MEDIA = protobuf.MEDIA_TYPE


def number(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(tag: int, value: int | bytes | str) -> bytes:
    """One field: numbers as varints, everything else with its length."""
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    raw = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(raw)) + raw


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return protobuf.MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def metadata(name: str) -> bytes:
    """As Go sends it: texts and the time of creation are there, and empty."""
    return field(
        1,
        field(1, name)
        + field(2, "")
        + field(7, 0)
        + field(8, b"")
        + field(11, field(1, "team") + field(2, "a")),
    )


def test_what_go_leaves_out_of_json_is_left_out() -> None:
    raw = envelope("v1", "Namespace", metadata("new") + field(2, b"") + field(3, field(1, "")))
    meta = {"name": "new", "labels": {"team": "a"}}
    assert protobuf.decode_object(raw) == {
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": {},
        "status": {},
    }


def test_bytes_are_base64_and_false_pointers_stay() -> None:
    raw = envelope(
        "v1",
        "Secret",
        metadata("s") + field(2, field(1, "key") + field(2, b"\xff\x00")) + field(5, 0),
    )
    secret = protobuf.decode_object(raw)
    assert (secret["data"], secret["immutable"]) == ({"key": "/wA="}, False)


def test_a_pod_has_quantities_ports_and_times() -> None:
    limits = field(1, field(1, "cpu") + field(2, field(1, "500m")))
    handler = field(2, field(1, "") + field(2, field(1, 1) + field(2, 0) + field(3, "http")))
    probe = field(10, field(1, handler) + field(2, 5) + field(3, 0))
    container = field(1, "main") + field(2, "") + field(3, "true") + field(8, limits) + probe
    spec = field(2, container) + field(4, 0) + field(11, 1)
    status = field(7, field(1, 1_767_225_600) + field(2, 500))
    pod = protobuf.decode_object(
        envelope("v1", "Pod", metadata("p") + field(2, spec) + field(3, status))
    )
    main = pod["spec"]["containers"][0]
    assert main["resources"]["limits"] == {"cpu": "500m"}
    assert main["livenessProbe"] == {"httpGet": {"port": "http"}, "initialDelaySeconds": 5}
    assert (pod["spec"]["terminationGracePeriodSeconds"], pod["spec"]["hostNetwork"]) == (0, True)
    assert pod["status"]["startTime"] == "2026-01-01T00:00:00Z"


def test_the_fields_of_a_volume_source_are_the_volumes_own() -> None:
    volume = field(1, "work") + field(2, field(2, field(1, "Memory")))
    pod = protobuf.decode_object(envelope("v1", "Pod", metadata("p") + field(2, field(1, volume))))
    assert pod["spec"]["volumes"] == [{"name": "work", "emptyDir": {"medium": "Memory"}}]


def test_numbers_may_be_negative() -> None:
    raw = envelope("scheduling.k8s.io/v1", "PriorityClass", metadata("low") + field(2, -5))
    assert protobuf.decode_object(raw)["value"] == -5


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        protobuf.MAGIC,
        protobuf.MAGIC + b"\xff",
        protobuf.MAGIC + b"\xff" * 20,
        protobuf.MAGIC + b"\x0a\x7fshort",
        protobuf.MAGIC + b"\x0b",
        envelope("v1", "Nonsense", b""),
        envelope("v1", "Namespace", field(1, 7)),
        envelope("v1", "Namespace", field(1, field(1, b"\xff"))),
        envelope("v1", "Namespace", field(1, field(8, field(1, 1 << 60)))),
        envelope("v1", "Pod", field(2, field(4, "text"))),
    ],
)
def test_bytes_that_mean_nothing_are_refused(raw: bytes) -> None:
    with pytest.raises(protobuf.BadProtobuf):
        protobuf.decode_object(raw)


def test_an_object_has_no_more_values_than_in_json() -> None:
    def build_pod(values: int) -> bytes:
        arguments = field(4, b"") * values
        containers = field(2, field(1, "a") + arguments) + field(2, field(1, "b") + arguments)
        return envelope("v1", "Pod", metadata("x") + field(2, containers))

    decoded = protobuf.decode_object(build_pod(MAX_VALUES // 2 - 20))
    assert len(decoded["spec"]["containers"][1]["args"]) == MAX_VALUES // 2 - 20
    for values in (MAX_VALUES // 2, MAX_VALUES + 1):
        with pytest.raises(protobuf.BadProtobuf, match="more than 200000 values"):
            protobuf.decode_object(build_pod(values))


@pytest.mark.parametrize(("size", "is_in_thread"), [(1, False), (10_000, True)])
def test_a_large_object_is_decoded_in_a_thread(
    size: int, is_in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    decode = protobuf.decode_object

    def note_thread(raw: bytes) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return decode(raw)

    monkeypatch.setattr(protobuf, "decode_object", note_thread)
    raw = envelope(
        "v1", "ConfigMap", metadata("x") + field(2, field(1, "k") + field(2, "v" * size))
    )
    decoded = asyncio.run(bodies.decode_body(raw, MEDIA, "ConfigMap"))
    assert decoded["data"] == {"k": "v" * size}
    assert [thread is not threading.current_thread() for thread in threads] == [is_in_thread]


def test_a_namespace_may_be_created_from_protobuf(api: ApiServer) -> None:
    raw = envelope("v1", "Namespace", metadata("new"))
    answer = api.ask(
        "POST", "/api/v1/namespaces", raw, content_type=MEDIA, accept=f"{MEDIA},application/json"
    )
    assert (answer.status, answer.json["metadata"]["labels"]["team"]) == (201, "a")


def test_broken_protobuf_is_a_bad_request(api: ApiServer) -> None:
    assert api.ask("POST", "/api/v1/namespaces", b"k8s\x00\xff", content_type=MEDIA).status == 400


def test_custom_kinds_have_no_protobuf(api: ApiServer) -> None:
    path = "/apis/kubeflow.org/v1/namespaces/team-a/pytorchjobs"
    assert api.ask("POST", path, b"k8s\x00", content_type=MEDIA).status == 415

"""How Prometheus is asked, and what becomes of answers that are none."""

import base64

import pytest

from clusters.metrics import prometheus
from clusters.metrics.prometheus import Prometheus, PrometheusError
from clusters.metrics.sign_in import SignIn, SignInWay, parse_sign_in
from tests.clusters.kube.faults import Exchange, FaultServer
from tests.clusters.prometheus_answers import (
    QUERY,
    describe_error,
    fine,
    saying,
    sweep,
    vector,
)

SIGN_INS = {
    SignInWay.NONE: SignIn(headers={"X-Scope-OrgID": "team-a"}),
    SignInWay.BASIC: SignIn(way=SignInWay.BASIC, user="muster", password="s3cret: ü"),
    SignInWay.BEARER: SignIn(way=SignInWay.BEARER, token="abc.def"),
}


@pytest.mark.parametrize("way", SIGN_INS)
def test_it_signs_in_with_every_request(way: SignInWay) -> None:
    server, sign_in = saying(vector()), SIGN_INS[way]
    assert sign_in.find_problem() is None
    assert sweep(server, parse_sign_in(sign_in.to_text())).problem == ""
    basic = base64.b64encode("muster:s3cret: ü".encode()).decode()
    wanted = {
        SignInWay.NONE: ("x-scope-orgid", "team-a"),
        SignInWay.BASIC: ("authorization", f"Basic {basic}"),
        SignInWay.BEARER: ("authorization", "Bearer abc.def"),
    }[way]
    assert {request.headers.get(wanted[0]) for request in server.requests} == {wanted[1]}


@pytest.mark.parametrize(
    ("sign_in", "field"),
    [
        (SignIn(way=SignInWay.BASIC, user="muster"), "password"),
        (SignIn(way=SignInWay.BASIC, user="a:b", password="x"), "user"),
        (SignIn(way=SignInWay.BEARER), "token"),
        (SignIn(way=SignInWay.BEARER, token="a\r\nHost: evil"), "token"),
        (SignIn(way=SignInWay.CERTIFICATE, certificate="no", key="pem"), "certificate"),
        (SignIn(ca="no pem"), "ca"),
        (SignIn(ca="Ê"), "ca"),
        (SignIn(way=SignInWay.CERTIFICATE, certificate="\ud800", key="Ê"), "certificate"),
        (SignIn(headers={"Host": "evil"}), "headers"),
        (SignIn(headers={"X-A": "b\r\nX-B: c"}), "headers"),
        (SignIn(headers={"X A": "b"}), "headers"),
        (SignIn(headers={f"X-{number}": "b" for number in range(17)}), "headers"),
    ],
)
def test_what_cannot_sign_in_is_said_of_its_field(sign_in: SignIn, field: str) -> None:
    problem = sign_in.find_problem()
    assert problem is not None
    assert problem[0] == field


def test_nothing_is_stored_where_nothing_signs_in() -> None:
    assert SignIn().to_text() == ""
    assert parse_sign_in("") == SignIn()


@pytest.mark.parametrize(
    "body",
    [
        b"", b"<html>hello", b"[]", b"null", b'{"status": "success"}',
        b'{"status": "error", "data": {"resultType": "vector", "result": []}}',
        b'{"status": "success", "data": {"resultType": "matrix", "result": []}}',
        b"[" * 100_000, b"\xff\xfe",
        b'{"status": "success", "data": {"resultType": "vector",'
        b' "result": [{"metric": {"pod": 7}, "value": [1, "0"]}]}}',
    ],
)  # fmt: skip
def test_what_does_not_answer_as_prometheus_does_is_told_so(body: bytes) -> None:
    assert describe_error(saying(body)) == "What answers there does not answer as Prometheus does."


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "who asks"), (403, "who asks"), (500, "HTTP 500"), (302, "not followed")],
)
def test_a_refusal_says_what_to_do(status: int, words: str) -> None:
    assert words in describe_error(saying(b"no", status, "Location: http://127.0.0.1:1/"))


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MAX_BODY", 1 << 20)

    def endless(exchange: Exchange) -> None:
        exchange.head(200, "Transfer-Encoding: chunked")
        try:
            while True:
                exchange.chunk(b"x" * 65536)
        except OSError:
            exchange.close()

    assert "more than 1 MiB" in describe_error(FaultServer(endless))


def test_a_packed_answer_is_not_unpacked() -> None:
    assert (
        describe_error(saying(b"\x1f\x8b\x08" + b"\0" * 50, 200, "Content-Encoding: gzip"))
        == "What answers there does not answer as Prometheus does."
    )


def test_silence_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "READ", 0.2)
    assert (
        describe_error(FaultServer(lambda exchange: exchange.silence()))
        == "Prometheus did not answer in time."
    )


def test_an_answer_that_drips_ends_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "WHOLE", 0.5)

    def dripping(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 200 OK\r\nX: ")
        try:
            while not exchange.over.wait(0.02):
                exchange.send(b"y")
        except OSError:
            exchange.close()

    assert describe_error(FaultServer(dripping)) == "Prometheus did not answer in time."


def test_an_address_that_is_barred_is_sent_nothing() -> None:
    server = saying(vector())
    assert "it is another machine's" in describe_error(server, lambda _: "it is another machine's")
    assert server.requests == []


def test_nobody_there_is_told() -> None:
    with saying(vector()) as server:
        port = server.port
    url = f"http://127.0.0.1:{port}"
    with (
        Prometheus(url, find_address_problem=fine) as opened,
        pytest.raises(PrometheusError, match="cannot be reached"),
    ):
        opened.query(QUERY)


def test_a_refused_sign_in_says_so() -> None:
    sign_in = SIGN_INS[SignInWay.BEARER]
    assert "refuses how Muster signs in" in describe_error(saying(b"no", 401), sign_in=sign_in)

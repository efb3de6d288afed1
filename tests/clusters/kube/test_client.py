"""What a client does when the cluster, or the way to it, misbehaves."""

import dataclasses
import email.utils
import socket
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from clusters.kube import calls, discovery
from clusters.kube.access import ClusterAccess
from clusters.kube.client import Client, Timeouts
from clusters.kube.clock_skew import ClockSkew
from clusters.kube.errors import Expired, Rejected, Unauthorized, Unavailable
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.resources import PODS
from clusters.kube.sockets import Cancellation
from tests.clusters.kube.faults import Exchange, FaultServer, answer_plain, listing, refusal

SHORT = Timeouts(connect=0.5, read=0.3, total=0.6)


def half_page(exchange: Exchange) -> None:
    exchange.head(200, "Content-Length: 5000")
    exchange.send(b'{"items": [')
    exchange.reset()


def drip(exchange: Exchange) -> None:
    exchange.head(200, "Content-Length: 1000000")
    while not exchange.over.wait(0.05):
        exchange.send(b" ")


def failure(server: FaultServer, timeouts: Timeouts = SHORT) -> Unavailable:
    with Client(server.access, timeouts=timeouts) as client, pytest.raises(Unavailable) as failure:
        calls.list_page(client, PODS)
    return failure.value


def test_a_refused_connection_is_said_to_be_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with (
        Client(ClusterAccess(f"http://127.0.0.1:{port}")) as client,
        pytest.raises(Unavailable, match="refuses connections"),
    ):
        calls.list_page(client, PODS)


def test_a_server_that_says_nothing_is_given_up_after_the_read_timeout_and_not_asked_again() -> (
    None
):
    with FaultServer(Exchange.silence) as server:
        began = time.monotonic()
        assert "in time" in str(failure(server))
        assert time.monotonic() - began < 2
        assert len(server.requests) == 1


def test_a_dripping_answer_is_given_up() -> None:
    with FaultServer(drip) as server:
        assert "took longer than 0.6 s" in str(failure(server))


def test_a_read_that_breaks_off_is_sent_once_more() -> None:
    with FaultServer(half_page, listing(7, "a")) as server, Client(server.access) as client:
        assert calls.list_page(client, PODS).version == "7"


def test_a_read_that_breaks_off_twice_is_unavailable() -> None:
    with FaultServer(half_page) as server:
        assert "broke off" in str(failure(server))
        assert len(server.requests) == 2


def test_a_write_is_never_sent_twice() -> None:
    with FaultServer(Exchange.reset) as server, Client(server.access) as client:
        with pytest.raises(Unavailable):
            calls.create(client, PODS, {}, namespace="team-a")
        assert len(server.requests) == 1


def test_an_idle_connection_that_the_server_closed_does_not_fail_the_next_call() -> None:
    def last_words(exchange: Exchange) -> None:
        listing(1)(exchange)
        exchange.close()

    with FaultServer(last_words, listing(2)) as server, Client(server.access) as client:
        assert [calls.list_page(client, PODS).version for _ in range(2)] == ["1", "2"]


def test_too_many_requests_carries_the_time_to_come_back() -> None:
    with FaultServer(refusal(429, "TooManyRequests", "Retry-After: 17")) as server:
        error = failure(server)
        assert (error.status, error.retry_after) == (429, 17.0)
        assert len(server.requests) == 1


def test_truncated_json_is_an_answer_that_cannot_be_read() -> None:
    with FaultServer(answer_plain(200, b'{"metadata": {"resourceV')) as server:
        assert "is no list" in str(failure(server))


def test_a_redirect_does_not_take_the_token_elsewhere() -> None:
    with FaultServer(listing(1)) as elsewhere:
        away = f"Location: http://127.0.0.1:{elsewhere.port}/"
        with FaultServer(lambda exchange: exchange.answer(302, b"", away)) as server:
            assert failure(server).status == 302
        assert elsewhere.requests == []


def test_the_token_is_sent() -> None:
    with FaultServer(listing(1)) as server, Client(server.access) as client:
        calls.list_page(client, PODS)
        assert server.requests[0].headers["authorization"] == "Bearer secret-token"


def test_no_proxy_comes_between_us_and_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with FaultServer(listing(7)) as server, Client(server.access) as client:
        assert calls.list_page(client, PODS).version == "7"


def test_a_wait_can_be_ended_by_another_thread() -> None:
    with FaultServer(Exchange.silence) as server, Client(server.access) as client:
        cancellation = Cancellation()

        def cut() -> None:
            server.wait_for(1)
            cancellation.cancel()

        thread = threading.Thread(target=cut)
        thread.start()
        began = time.monotonic()
        with pytest.raises(Unavailable):
            calls.list_page(client, PODS, cancellation=cancellation)
        thread.join()
        assert time.monotonic() - began < 5


def test_a_list_that_expires_goes_on_with_the_fresh_token() -> None:
    expired = refusal(410, "Expired", metadata={"continue": "fresh"})
    with (
        FaultServer(listing(5, "a", token="t"), expired, listing(9, "b")) as server,
        Client(server.access) as client,
    ):
        pages = list(calls.list_all(client, PODS, expired="go on"))
        assert [[pod["metadata"]["name"] for pod in page.items] for page in pages] == [["a"], ["b"]]
        assert [page.consistent for page in pages] == [True, False]
        assert server.requests[-1].query["continue"] == "fresh"


def test_a_list_that_expires_begins_anew() -> None:
    script = (
        listing(5, "a", token="t"),
        refusal(410, "Expired"),
        listing(9, "b", token="u"),
        listing(9, "c"),
    )
    with FaultServer(*script) as server, Client(server.access) as client:
        pages = list(calls.list_all(client, PODS))
        assert [page.first for page in pages] == [True, True, False]


def test_a_list_does_not_begin_anew_for_ever() -> None:
    with (
        FaultServer(refusal(410, "Expired", metadata={"continue": "fresh"})) as server,
        Client(server.access) as client,
    ):
        with pytest.raises(Expired):
            list(calls.list_all(client, PODS, expired="go on"))
        assert len(server.requests) == calls.MAX_RESTARTS + 1


def test_a_list_without_an_end_is_noticed() -> None:
    with (
        FaultServer(listing(5, "a", token="same")) as server,
        Client(server.access) as client,
        pytest.raises(Unavailable, match="end"),
    ):
        list(calls.list_all(client, PODS))


def test_a_log_breaks_off_or_is_silent_for_too_long() -> None:
    def two_lines(exchange: Exchange) -> None:
        exchange.head(200, "Transfer-Encoding: chunked")
        exchange.chunk(b"one\n")
        exchange.chunk(b"two\n")

    def broken(exchange: Exchange) -> None:
        two_lines(exchange)
        exchange.close()

    def quiet(exchange: Exchange) -> None:
        two_lines(exchange)
        exchange.silence()

    with FaultServer(broken, quiet) as server, Client(server.access) as client:
        for text in ("broke off", "in time"):
            content = b""
            with (
                calls.open_log(client, "team-a", "p", follow=True, silence_timeout=0.5) as stream,
                pytest.raises(Unavailable, match=text),
            ):
                for chunk in stream:
                    content += chunk
            assert content == b"one\ntwo\n"


def test_an_old_server_is_asked_version_by_version() -> None:
    def answer(exchange: Exchange) -> None:
        bodies = {
            "/api": b'{"kind":"APIVersions","versions":["v1"]}',
            "/apis": b'{"kind":"APIGroupList","groups":[{"name":"batch",'
            b'"versions":[{"groupVersion":"batch/v1","version":"v1"}]}]}',
            "/api/v1": b'{"resources":['
            b'{"name":"pods","namespaced":true,"kind":"Pod","verbs":["get"]},'
            b'{"name":"pods/log","namespaced":true,"kind":"Pod","verbs":["get"]}]}',
            "/apis/batch/v1": b'{"resources":['
            b'{"name":"jobs","namespaced":true,"kind":"Job","verbs":["get"]}]}',
        }
        exchange.answer(200, bodies[exchange.request.path])

    with FaultServer(answer) as server, Client(server.access) as client:
        found = {served.resource.plural: served for served in discovery.fetch_served_kinds(client)}
        assert set(found) == {"pods", "jobs"}
        assert found["pods"].subresources == {"log"}


def test_an_unsigned_certificate_is_not_trusted(access: ClusterAccess) -> None:
    with (
        Client(dataclasses.replace(access, ca=None)) as client,
        pytest.raises(Unavailable, match="not signed by the given authority"),
    ):
        discovery.fetch_server_version(client)


def test_a_certificate_for_another_name_is_not_trusted(access: ClusterAccess) -> None:
    with (
        Client(dataclasses.replace(access, server_name="elsewhere.example")) as client,
        pytest.raises(Unavailable, match="another name"),
    ):
        discovery.fetch_server_version(client)


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_an_insecure_access_trusts_whoever_answers(access: ClusterAccess) -> None:
    with Client(dataclasses.replace(access, ca=None, insecure=True)) as client:
        assert discovery.fetch_server_version(client).version


def test_a_wrong_token_is_unauthorized(access: ClusterAccess) -> None:
    with Client(dataclasses.replace(access, token="wrong")) as client, pytest.raises(Unauthorized):
        calls.list_page(client, PODS)


class Clock:
    """A clock that goes only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_pace_lets_a_burst_through_and_then_so_many_a_second(clock: Clock) -> None:
    pace = RateLimiter(rate=10, burst=3, clock=clock)
    assert [pace.reserve_turn(10) for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.now = 100.0
    assert [pace.reserve_turn(10) for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


def test_a_turn_too_far_away_is_refused_and_not_taken(clock: Clock) -> None:
    pace = RateLimiter(rate=1, burst=1, clock=clock)
    pace.reserve_turn(1)
    with pytest.raises(Unavailable) as busy:
        pace.reserve_turn(0.5)
    assert busy.value.retry_after == pytest.approx(1.0)
    assert pace.reserve_turn(1) == pytest.approx(1.0)


def test_a_stop_ends_the_wait_for_a_turn(clock: Clock) -> None:
    pace, stop = RateLimiter(rate=0.01, burst=1, clock=clock), threading.Event()
    pace.wait_turn()
    stop.set()
    with pytest.raises(Unavailable, match="stopped"):
        pace.wait_turn(timeout=1_000, stop=stop)


def test_the_patience_that_a_cluster_asks_for_is_had_and_no_burst_comes_after_it(
    clock: Clock,
) -> None:
    pace = RateLimiter(rate=10, burst=5, clock=clock)
    pace.pause(30)
    with pytest.raises(Unavailable, match="asked for patience") as error:
        pace.reserve_turn(10)
    assert error.value.retry_after == pytest.approx(30)
    clock.now = 25.0
    assert [pace.reserve_turn(10) for _ in range(3)] == pytest.approx([5.0, 5.1, 5.2])


def test_no_cluster_silences_us_for_longer_than_two_minutes(clock: Clock) -> None:
    pace = RateLimiter(clock=clock)
    pace.pause(3_600)
    assert pace.reserve_turn(1_000) == pytest.approx(120)


def test_a_clock_that_is_off_is_told_from_answers_that_take_their_time() -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    skew = ClockSkew(clock=now.timestamp)
    offsets = {}
    for seconds in (0, 40, 10_800, 10_830, 10_790, -7_200, 5):
        skew.record_date(email.utils.format_datetime(now + timedelta(seconds=seconds), usegmt=True))
        offsets[seconds] = skew.offset.total_seconds()
    assert offsets == {
        0: 0,
        40: 0,
        10_800: 10_800,
        10_830: 10_800,
        10_790: 10_800,
        -7_200: -7_200,
        5: 0,
    }
    for nonsense in ("", "yesterday", "Thu, 99 Foo 2026 00:00:00 GMT"):
        skew.record_date(nonsense)
    assert not skew.offset


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a%2fb", "A", "a" * 254, "a b", "a\nb", "ä"]
)
def test_a_name_that_no_object_can_have_reaches_no_server(name: str) -> None:
    with FaultServer(listing(1)) as server, Client(server.access) as client:
        with pytest.raises(Rejected) as refused:
            calls.get(client, PODS, name, namespace="team-a")
        assert refused.value.causes[0][0] == "metadata.name"
        with pytest.raises(Rejected):
            calls.get(client, PODS, "p", namespace=name)
        assert server.requests == []


def test_selectors_are_escaped() -> None:
    with FaultServer(refusal(400, "BadRequest")) as server, Client(server.access) as client:
        with pytest.raises(Rejected):
            calls.list_page(client, PODS, labels="a in (b,c)&limit=9#x", fields="metadata.name=p")
        assert server.requests[0].query == {
            "labelSelector": "a in (b,c)&limit=9#x",
            "fieldSelector": "metadata.name=p",
            "limit": "500",
        }

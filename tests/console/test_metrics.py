"""`/metrics`: who gets it, and what it says."""

import asyncio
import time
import zlib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone
from prometheus_client import CollectorRegistry, Counter, Metric
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import DjangoAssertNumQueries, Settings

from clusters import health_figures
from clusters.models import Cluster
from console.celery import app
from console.metrics import shared, snapshots, views
from console.metrics.publishing import Publisher
from console.metrics.requests import ROUTE_KEY, measure_requests
from console.metrics.steps import measure_step
from console.models import ProcessFigures
from tests.cast import Cast

TOKEN = "a-token-of-more-than-twenty"


def set_options(settings: Settings, **changes: object) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update=changes)


def scrape(client: Client, **headers: str) -> dict[str, Metric]:
    answer = client.get("/metrics", headers={"Host": "localhost", **headers})
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse_families(answer.content.decode())


def parse_families(text: str) -> dict[str, Metric]:
    families = list(text_string_to_metric_families(text))
    assert len({each.name for each in families}) == len(families), "a family stands there twice"
    return {each.name: each for each in families}


def find_value(families: dict[str, Metric], sample: str, **labels: str) -> float:
    found = [
        each.value
        for family in families.values()
        for each in family.samples
        if each.name == sample and labels.items() <= each.labels.items()
    ]
    assert len(found) == 1, (sample, labels, found)
    return float(found[0])


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]:8000"])
def test_a_program_on_this_machine_gets_it(client: Client, address: str, host: str) -> None:
    answer = client.get("/metrics", REMOTE_ADDR=address, headers={"Host": host})
    assert answer.status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "headers", "options"),
    [
        ("203.0.113.9", {}, {}),
        ("10.0.0.9", {"X-Forwarded-For": "127.0.0.1"}, {}),
        ("::ffff:10.0.0.9", {}, {}),
        ("", {}, {}),
        *(("127.0.0.1", {name: "127.0.0.1"}, {}) for name in views.FORWARDING_HEADERS),
        ("127.0.0.1", {"Host": "muster.example.org"}, {}),
        ("127.0.0.1", {}, {"behind_proxy": True}),
        ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, {"behind_proxy": True}),
        ("127.0.0.1", {}, {"production": True}),
    ],
)
def test_without_a_token_nobody_else_gets_it(
    client: Client,
    settings: Settings,
    address: str,
    headers: dict[str, str],
    options: dict[str, bool],
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    set_options(settings, **options)
    answer = client.get("/metrics", REMOTE_ADDR=address, headers={"Host": "localhost", **headers})
    assert answer.status_code == 403
    assert answer.content.decode() == views.FORBIDDEN_TEXT
    assert "MUSTER_METRICS_TOKEN" in views.FORBIDDEN_TEXT


@pytest.mark.django_db
@pytest.mark.parametrize(
    "authorization",
    [
        "",
        TOKEN,
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Basic {TOKEN}",
        "Bearer tökén",
    ],
)
def test_with_a_token_nobody_gets_it_without(
    client: Client, settings: Settings, authorization: str
) -> None:
    set_options(settings, metrics_token=TOKEN)
    headers = {"Host": "localhost"} | ({"Authorization": authorization} if authorization else {})
    answer = client.get("/metrics", headers=headers)
    assert (answer.status_code, answer.content.decode()) == (401, views.UNAUTHORIZED_TEXT)
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.django_db
def test_who_shows_the_token_gets_it_from_anywhere(client: Client, settings: Settings) -> None:
    set_options(settings, metrics_token=TOKEN, production=True, behind_proxy=True)
    answer = client.get(
        "/metrics",
        REMOTE_ADDR="203.0.113.9",
        headers={"Host": "localhost", "Authorization": f"Bearer {TOKEN}"},
    )
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "private, no-store"
    assert not answer.cookies


@pytest.mark.django_db
def test_a_scrape_costs_the_same_however_much_there_is(
    client: Client, cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    # Own figures, those of other processes, ages of steps, clusters, journal; with PostgreSQL its
    # size and connections.
    expected = 6 if connection.vendor == "postgresql" else 5
    with django_assert_num_queries(expected) as queries:
        scrape(client)
    assert not [each for each in queries if "COUNT(" in each["sql"].upper()]
    Cluster.objects.bulk_create(Cluster(name=f"more-{number}") for number in range(20))
    with django_assert_num_queries(expected):
        families = scrape(client)
    assert len(families["muster_cluster_up"].samples) == 21


@pytest.mark.django_db
def test_clusters_beyond_a_bound_are_said_to_be_left_out(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_figures, "MAX_CLUSTERS", 3)
    Cluster.objects.bulk_create(Cluster(name=f"more-{number}") for number in range(5))
    families = scrape(client)
    assert len(families["muster_cluster_info"].samples) == 3
    assert find_value(families, "muster_clusters_left_out") == 1


@pytest.mark.django_db
def test_clusters_are_as_their_rows_say(client: Client, cast: Cast) -> None:
    now = timezone.now()
    Cluster.objects.create(
        name="silent",
        last_seen_at=now - timedelta(minutes=7),
        unreachable_since=now - timedelta(minutes=7),
        followed_until=now + timedelta(minutes=1),
    )
    families = scrape(client)
    ids = {
        each.labels["cluster_name"]: each.labels["cluster_id"]
        for each in families["muster_cluster_info"].samples
    }
    silent = ids["silent"]
    assert find_value(families, "muster_cluster_up", cluster_id=silent) == 0
    age = find_value(families, "muster_cluster_seen_age_seconds", cluster_id=silent)
    assert 420 <= age < 720
    assert find_value(families, "muster_cluster_followed", cluster_id=silent) == 1
    assert find_value(families, "muster_cluster_captured", cluster_id=silent) == 0


def store_process(process_id: str, age: timedelta, **step_times: float) -> None:
    registry = CollectorRegistry()
    Counter("muster_tests", "Counted by a test.", registry=registry).inc(3)
    families = snapshots.render_families(registry, {"process": "worker", "process_id": process_id})
    ProcessFigures.objects.create(
        process_id=process_id,
        process="worker",
        stored_at=timezone.now() - age,
        content=snapshots.pack_families(families),
        step_times=step_times,
    )


@pytest.mark.django_db
def test_one_scrape_has_the_figures_of_every_process_that_runs(client: Client) -> None:
    now = time.time()
    store_process("a-1", timedelta(seconds=5), sweep=now - 30, beat=now - 20)
    store_process("b-1", timedelta(seconds=20), sweep=now - 300)
    store_process("ended-1", timedelta(minutes=2), poll=now - 200)
    families = scrape(client)
    assert {each.labels["process_id"] for each in families["muster_tests"].samples} == {
        "a-1",
        "b-1",
    }
    running = {each.labels["process"]: each.value for each in families["muster_processes"].samples}
    assert running == {"web": 1, "worker": 2, "beat": 0, "follow": 0, "capture": 0}
    assert 30 <= find_value(families, "muster_step_age_seconds", step="sweep") < 300
    # Who did it has ended, and that nobody does it any more is what one wants to know.
    assert 200 <= find_value(families, "muster_step_age_seconds", step="poll") < 500
    assert 20 <= find_value(families, "muster_beat_age_seconds") < 320


@pytest.mark.django_db
@pytest.mark.parametrize(
    "content", [b"", b"nonsense", zlib.compress(b"[1]"), zlib.compress(b'[["a"]]')]
)
def test_what_cannot_be_read_of_a_process_hides_no_other(client: Client, content: bytes) -> None:
    store_process("a-1", timedelta(seconds=5))
    ProcessFigures.objects.create(
        process_id="odd-1", process="worker", stored_at=timezone.now(), content=content
    )
    families = scrape(client)
    assert len(families["muster_tests"].samples) == 1
    assert find_value(families, "muster_processes", process="worker") == 2


@pytest.mark.django_db
def test_without_a_database_the_answering_process_says_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **named: Any) -> None:
        raise DatabaseError("it is away")

    # The connection of a test cannot be cut: its transaction is the test's.
    monkeypatch.setattr(Publisher, "publish", fail)
    monkeypatch.setattr(shared, "_collect_step_ages", fail)
    families = scrape(client)
    assert find_value(families, "muster_database_up") == 0
    assert find_value(families, "process_resident_memory_bytes", process="web") > 1 << 20
    assert "muster_journal_position" not in families


@pytest.mark.django_db
def test_without_redis_it_is_said_and_the_rest_is_there(client: Client) -> None:
    families = scrape(client)
    assert find_value(families, "muster_redis_up") == 0
    assert "muster_queue_length" not in families
    assert find_value(families, "muster_database_up") == 1


@pytest.mark.django_db
def test_the_queue_is_counted_by_step_as_far_as_it_is_looked_at(
    client: Client, settings: Settings, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = redis_url
    with app.connection_for_write(url=redis_url) as broker:
        for step in ("workloads.tasks.sweeping.sweep", *["clusters.tasks.heartbeats"] * 4):
            # `connection` is an option that the types of Celery leave out.
            app.tasks[step].apply_async(connection=broker)  # type: ignore[call-arg]
    families = scrape(client)
    assert find_value(families, "muster_redis_up") == 1
    assert find_value(families, "muster_queue_length") == 5
    assert find_value(families, "muster_queue_steps", step="sweep") == 1
    assert find_value(families, "muster_queue_steps", step="heartbeats") == 4
    monkeypatch.setattr(shared, "MAX_QUEUED_MESSAGES", 2)
    families = scrape(client)
    assert find_value(families, "muster_queue_length") == 5
    assert find_value(families, "muster_queue_steps", step="heartbeats") == 2


def answer_requests(*scopes: dict[str, Any], content_type: bytes = b"text/html") -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/silent":
            return
        await receive()
        scope[ROUTE_KEY] = scope.get("test_route")
        if scope["path"] == "/fails":
            raise RuntimeError("a fault")
        headers = [(b"content-type", content_type)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        assert current_streams() == (1 if b"event" in content_type else 0)
        await send({"type": "http.response.body"})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        pass

    async def run() -> None:
        for scope in scopes:
            await measure_requests(application)({"type": "http", **scope}, receive, send)

    asyncio.run(run())


def render_own() -> dict[str, Metric]:
    return parse_families(snapshots.join_families([Publisher("web").render()]))


def current_streams() -> float:
    return sum(each.value for each in render_own()["muster_http_streams_open"].samples)


def count_requests(**labels: str) -> float:
    return sum(
        each.value
        for each in render_own()["muster_http_requests"].samples
        if labels.items() <= each.labels.items()
    )


def test_requests_are_counted_by_pattern_and_known_method() -> None:
    route = "workloads/<uuid:pk>"
    answer_requests(
        {"path": "/workloads/1", "method": "GET", "test_route": route},
        {"path": "/workloads/2", "method": "GET", "test_route": route},
        {"path": "/nobody/knows/3", "method": "BREW"},
        {"path": "/static/css/tokens.css", "method": "GET"},
    )
    assert count_requests(route=f"/{route}", method="GET", status="200") == 2
    assert count_requests(route="none", method="other") == 1
    assert count_requests(route="static files") == 1
    seconds = render_own()["muster_http_request_seconds"].samples
    assert [
        each.value
        for each in seconds
        if each.name.endswith("_count") and each.labels["route"] == f"/{route}"
    ] == [2]


def test_who_leaves_before_the_answer_and_faults_are_counted_too() -> None:
    before = count_requests(status="none")
    answer_requests({"path": "/silent", "method": "GET"})
    with pytest.raises(RuntimeError):
        answer_requests({"path": "/fails", "method": "GET"})
    assert count_requests(status="none") == before + 2
    assert find_value(render_own(), "muster_http_requests_open") == 0


def test_a_stream_is_open_until_it_ends() -> None:
    answer_requests(
        {"path": "/live", "method": "GET", "test_route": "live"},
        content_type=b"text/event-stream",
    )
    assert current_streams() == 0


def test_steps_are_counted_by_how_they_end() -> None:
    with measure_step("of_a_test"):
        pass
    with pytest.raises(RuntimeError), measure_step("of_a_test"):
        raise RuntimeError("a fault")
    families = render_own()
    for outcome in ("done", "failed"):
        assert find_value(families, "muster_steps_total", step="of_a_test", outcome=outcome) == 1
    assert find_value(families, "muster_step_seconds_count", step="of_a_test") == 2
    assert find_value(families, "muster_steps_running") == 0


def test_every_step_has_a_short_name_of_its_own() -> None:
    tasks = [name for name in app.tasks if not name.startswith("celery.")]
    assert tasks
    assert len({shared.name_step(name) for name in tasks}) == len(tasks)


def test_messages_that_are_no_steps_of_ours_share_a_label() -> None:
    own = b'{"headers": {"task": "workloads.tasks.sweeping.sweep"}}'
    odd = (b"nonsense", b"[]", b'{"headers": {"task": "rm -rf"}}', b'{"headers": 3}')
    assert shared._count_steps([own, own, *odd]) == {"sweep": 2, "other": 4}


def test_figures_that_grow_without_end_when_unpacked_are_cut() -> None:
    bomb = zlib.compress(b"[" + b" " * (snapshots.MAX_SNAPSHOT_BYTES + 10) + b"]")
    with pytest.raises(ValueError, match="cannot be read"):
        snapshots.unpack_families(bomb)


def iterate_labels() -> Iterator[tuple[str, str]]:
    for family in render_own().values():
        for sample in family.samples:
            for label in sample.labels:
                yield family.name, label


def test_no_label_can_name_a_workload_or_a_person() -> None:
    allowed = {"process", "process_id", "route", "method", "status", "step", "outcome", "le"}
    assert {label for _, label in iterate_labels()} <= allowed

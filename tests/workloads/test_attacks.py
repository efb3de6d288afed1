"""What somebody tries through ids, names and texts: another team's things by way of one's own, and
names that become paths.
"""

import asyncio
import gc
import io
import uuid
import zipfile
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIRequestFactory

from console.streams import StreamPlace
from environments.models import ComputeResource, Environment
from projects import tokens
from projects.models import AccessRule, User
from tests.api.calling import Caller, a_body
from tests.cast import Cast, a_spec
from workloads import journal, logbook
from workloads.api import logs as api_logs
from workloads.models import Draft, Log, Pod, Workload
from workloads.views.logs import zip_logs


@pytest.fixture
def theirs(cast: Cast) -> Workload:
    return journal.create_workload(
        a_spec(cast.team_a, "theirs"), project=cast.team_a, user=cast.bob
    )


@pytest.fixture
def own_workload(cast: Cast) -> Workload:
    return journal.create_workload(
        a_spec(cast.team_b, "mine"), project=cast.team_b, user=cast.mallory
    )


@pytest.fixture
def mallory(cast: Cast) -> Client:
    client = Client()
    client.force_login(cast.mallory)
    return client


def a_log(workload: Workload, name: str = "pod-0", **more: Any) -> Log:
    pod = Pod.objects.create(
        workload=workload, attempt=1, uid=str(uuid.uuid4()), name=name, created_at=timezone.now()
    )
    return Log.objects.create(pod=pod, container="main", note="secret-of-team-a", **more)


def test_the_log_of_another_workload_is_not_under_ones_own(
    mallory: Client, own_workload: Workload, theirs: Workload
) -> None:
    log = a_log(theirs)
    query: dict[str, Any] = {"log": log.pk, "q": "a", "after": f"{log.pk:x}.0"}
    for name in ("log-window", "log-search"):
        answer = mallory.get(reverse(name, args=[own_workload.pk]), query)
        assert answer.status_code == 404, name
    merged = mallory.get(reverse("log-window", args=[own_workload.pk]), {"before": f"{log.pk:x}.0"})
    panel = mallory.get(
        reverse("workload-tab", args=[own_workload.pk, "logs"]), {"pod": log.pod.pk}
    )
    assert "secret-of-team-a" not in merged.content.decode() + panel.content.decode()


def test_a_copy_takes_nothing_of_another_team(
    mallory: Client, cast: Cast, theirs: Workload
) -> None:
    for key in (theirs.pk, "x", f"{theirs.pk}'--", ""):
        assert mallory.get("/workloads/new", {"copy": str(key)}).status_code == 404
    assert not Draft.objects.exists()


def test_a_draft_with_another_teams_project_and_assets_launches_nothing(
    mallory: Client, cast: Cast
) -> None:
    environment = Environment.objects.create(
        name="env-of-a", project=cast.team_a, image="secret/image"
    )
    compute = ComputeResource.objects.create(name="size-of-a", project=cast.team_a, gpu_devices=0)
    start = {
        "cluster": str(cast.cluster.pk),
        "project": str(cast.team_a.pk),
        "architecture": "Standard",
        "name": "stolen",
    }
    setup = {"environment_choice": str(environment.pk), "compute_choice": str(compute.pk)}
    for project in (cast.team_a.pk, cast.team_b.pk):
        mallory.get("/workloads/new")
        draft = Draft.objects.latest("updated_at").pk
        mallory.post(f"/workloads/new/{draft}/start/typed", start | {"project": str(project)})
        mallory.post(f"/workloads/new/{draft}/setup/typed", setup)
        pages = [
            mallory.get(f"/workloads/new/{draft}/{step}", follow=True).content.decode()
            for step in ("start", "setup", "review")
        ]
        mallory.post(f"/workloads/new/{draft}/review", {"go": "on"})
        assert not any(
            word in page
            for page in pages
            for word in ("secret/image", "env-of-a", "size-of-a", "team-a")
        )
    assert not Workload.objects.exists()


def test_an_asset_is_made_and_moved_only_where_one_may_launch(mallory: Client, cast: Cast) -> None:
    form = {
        "name": "mine",
        "image": "x",
        "serves": "Standard:",
        "scope": f"project:{cast.team_a.pk}",
    }
    for scope in (f"project:{cast.team_a.pk}", "tenant", "", "999"):
        assert mallory.post("/environments/new", form | {"scope": scope}).status_code == 422
    own = Environment.objects.create(name="own", project=cast.team_b, image="x")
    assert mallory.post(reverse("environment-edit", args=[own.pk]), form).status_code == 422
    assert [each.project for each in Environment.objects.all()] == [cast.team_b]


def test_bulk_tells_of_an_unseen_workload_what_it_tells_of_none(
    mallory: Client, theirs: Workload
) -> None:
    pages = [
        mallory.post("/workloads/bulk", {"action": "delete", "id": [str(key)]})
        for key in (theirs.pk, uuid.uuid4(), "x")
    ]
    assert all(
        "There is no such workload" in page.content.decode()
        and "theirs" not in page.content.decode()
        for page in pages
    )
    theirs.refresh_from_db()
    assert theirs.status == "Creating"


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "/\\evil.example", "https://evil.example", "javascript:alert(1)"]
)
def test_an_action_leads_back_to_our_own_pages(
    mallory: Client, own_workload: Workload, wanted: str
) -> None:
    answer = mallory.post(reverse("workload-stop", args=[own_workload.pk]), {"next": wanted})
    assert answer["Location"] == reverse("workload", args=[own_workload.pk])
    bulk = mallory.post(
        "/workloads/bulk", {"action": "stop", "id": str(own_workload.pk), "next": wanted}
    )
    assert wanted not in bulk.content.decode()


def test_another_teams_project_in_a_rest_body_is_one_that_does_not_exist(cast: Cast) -> None:
    ask = Caller(cast.mallory)
    theirs, none = (
        ask("POST", "/workloads/distributed", a_body(cast) | {"projectId": key}, 400)
        for key in (str(cast.team_a.pk), "9")
    )
    assert theirs["message"].replace(f"project {cast.team_a.pk} ", "project 9 ") == none["message"]
    assert not Workload.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        "tail=²",
        "since=²",
        "pod=%00",
        "at=²",
        "log=²",
        "attempt=²",
        f"log={10**14}",
        "after=²",
        "floor=-",
    ],
)
def test_no_number_or_text_in_an_address_breaks_a_page(
    mallory: Client, own_workload: Workload, query: str
) -> None:
    a_log(own_workload)
    for path in (
        "/workloads",
        "/environments",
        reverse("log-window", args=[own_workload.pk]),
        reverse("workload-tab", args=[own_workload.pk, "logs"]),
    ):
        assert mallory.get(f"{path}?{query}").status_code < 500


def test_what_a_database_cannot_store_is_left_out_of_a_draft(mallory: Client, cast: Cast) -> None:
    mallory.get("/workloads/new")
    draft = Draft.objects.get()
    mallory.post(
        f"/workloads/new/{draft.pk}/start/typed",
        "a%00b=1&name=c%00d",
        content_type="application/x-www-form-urlencoded",
    )
    draft.refresh_from_db()
    assert draft.data["start"] == {"ab": ["1"], "name": ["cd"]}
    assert mallory.get("/environments?search=a%00&after=b%00~x").status_code == 200


def test_a_filter_that_no_database_understands_is_refused_wherever_it_stands(cast: Cast) -> None:
    Caller(cast.mallory)("GET", "/workloads?filterBy=name==a%00&filterBy=name==b", status=400)


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/cron.d/x",
        "/etc/passwd",
        "..",
        "a\\..\\b",
        "C:evil",
        "\x1b]0;x\x07",
        "\u202etxt.exe",
    ],
)
def test_a_pods_name_leads_nowhere_in_a_zip(own_workload: Workload, name: str) -> None:
    log = a_log(own_workload, name)
    archive = zipfile.ZipFile(io.BytesIO(b"".join(zip_logs([log], timestamps=True))))
    (inside,) = archive.namelist()
    assert inside.isascii()
    assert inside.isprintable()
    assert inside.count("/") == 2
    assert not {"", ".", ".."} & set(inside.split("/"))
    assert not {"\\", ":"} & set(inside)


async def _chunks(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield b"%d" % number


async def _list_chunks(chunks: AsyncIterator[bytes]) -> list[bytes]:
    return [chunk async for chunk in chunks]


def take_place() -> StreamPlace:
    place = logbook.streams.take_place(1)
    assert place is not None
    return place


def test_who_may_not_see_a_log_any_more_is_sent_no_more_of_it() -> None:
    moments, answers = iter([0.0, 1.0, 31.0, 31.0, 32.0, 62.0]), iter([True, False])

    followed = api_logs._stream_while_allowed(
        _chunks(9), take_place(), lambda: next(answers), lambda: next(moments)
    )
    assert asyncio.run(_list_chunks(followed)) == [b"0", b"1", b"2"]
    assert not logbook.streams.is_full(1)


def test_nor_does_a_quiet_log_keep_its_place() -> None:
    async def quiet() -> AsyncIterator[bytes]:
        while True:
            yield b""

    moments = iter(range(0, 90, 15))
    followed = api_logs._stream_while_allowed(
        quiet(), take_place(), lambda: False, lambda: next(moments)
    )
    assert asyncio.run(_list_chunks(followed)) == []
    assert not logbook.streams.is_full(1)


def test_a_role_that_is_taken_and_a_token_that_is_void_end_what_is_followed(
    cast: Cast, theirs: Workload
) -> None:
    def request(user: User) -> Any:
        return APIRequestFactory().get(
            "/", headers={"authorization": f"Bearer {tokens.issue_token(user)[0]}"}
        )

    vera, bob = request(cast.vera), request(cast.bob)
    assert api_logs._may_see_workload(vera, theirs.pk)
    assert api_logs._may_see_workload(bob, theirs.pk)
    AccessRule.objects.filter(user=cast.vera).delete()
    User.objects.filter(pk=cast.bob.pk).update(is_active=False)
    assert not api_logs._may_see_workload(vera, theirs.pk)
    assert not api_logs._may_see_workload(bob, theirs.pk)


def test_of_logs_that_are_followed_at_once_none_is_let_in_beyond_the_limit(
    cast: Cast, theirs: Workload
) -> None:
    a_log(theirs, state=Log.State.CAPTURING)
    token = tokens.issue_token(cast.bob)[0]

    def follow() -> HttpResponseBase:
        request = APIRequestFactory().get(
            "/",
            {"container": "main", "follow": "true"},
            headers={"authorization": f"Bearer {token}"},
        )
        answer = api_logs.LogsView.as_view()(request, workload_id=theirs.pk, pod_id="pod-0")
        assert isinstance(answer, HttpResponseBase)
        return answer

    # Answers that nobody reads yet, as where all were asked for at the same moment.
    answers = [follow() for _ in range(logbook.streams.limit + 1)]
    assert [each.status_code for each in answers] == [200] * logbook.streams.limit + [429]
    del answers
    gc.collect()
    assert follow().status_code == 200

"""The stream of the table over a real web server's ASGI application: what changed arrives, and only
to those who may see it.
"""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.utils import timezone

from projects import user_actions
from projects.models import AccessRule
from tests.cast import Cast
from tests.workloads.live_streams import (
    WITHIN,
    Stream,
    cast,
    quick_feeds,
    run_scene,
    wait_for_closed_feeds,
    wait_until,
)
from tests.workloads.table_rows import a_workload, touch_workload
from workloads import queries
from workloads.views import feeds as feeds_module

__all__ = ["cast", "quick_feeds"]


def test_a_changed_row_is_pushed_with_its_position(cast: Cast) -> None:
    workload = a_workload(cast.team_a)

    async def scene() -> None:
        async with Stream(cast.vera, f"/workloads/live?after={workload.changed}") as page:
            await sync_to_async(touch_workload)(workload, status="Failed")
            message = await page.take_message()
        assert message["event"] == "rows"
        assert [row["id"] for row in message["rows"]] == [str(workload.pk)]
        assert "Failed" in message["rows"][0]["html"]
        assert message["at"] == str(message["position"]) == str(workload.changed)

    run_scene(scene)


def test_what_changed_before_a_browser_came_back_is_told_first(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    before = workload.changed
    touch_workload(workload, status="Failed")

    async def scene() -> None:
        async with Stream(
            cast.vera, "/workloads/live?after=999", **{"Last-Event-ID": str(before)}
        ) as page:
            assert [row["id"] for row in (await page.take_message())["rows"]] == [str(workload.pk)]

    run_scene(scene)


def test_a_row_that_fits_the_filter_no_more_is_gone(cast: Cast) -> None:
    workload = a_workload(cast.team_a)

    async def scene() -> None:
        async with Stream(
            cast.vera, f"/workloads/live?status=Running&after={workload.changed}"
        ) as page:
            await sync_to_async(touch_workload)(workload, status="Failed")
            assert (await page.take_message())["gone"] == [str(workload.pk)]

    run_scene(scene)


def test_somebody_of_another_project_is_told_nothing_of_it(cast: Cast) -> None:
    theirs = a_workload(cast.team_a)
    own = a_workload(cast.team_b, "own")

    async def scene() -> None:
        async with Stream(cast.mallory, f"/workloads/live?after={own.changed}") as page:
            await sync_to_async(touch_workload)(theirs)
            await sync_to_async(touch_workload)(own)
            message = await page.take_message()
            assert ([row["id"] for row in message["rows"]], message["gone"]) == ([str(own.pk)], [])

    run_scene(scene)


def test_many_pages_that_look_at_the_same_share_one_look(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = a_workload(cast.team_a)
    looks: list[int] = []
    real = queries.load_changes

    def load_changes(after: int, *rest: Any) -> Any:
        looks.append(after)
        return real(after, *rest)

    monkeypatch.setattr(queries, "load_changes", load_changes)

    async def scene() -> None:
        path = f"/workloads/live?after={workload.changed}"
        async with (
            Stream(cast.vera, path) as one,
            Stream(cast.bob, path) as two,
            Stream(cast.vera, path) as three,
        ):
            reading = [asyncio.create_task(page.take_message()) for page in (one, two, three)]
            await wait_until(lambda: looks.count(workload.changed) >= 4)
            await sync_to_async(touch_workload)(workload, status="Failed")
            messages = await asyncio.gather(*reading)
        assert messages[0] == messages[1] == messages[2]
        await wait_for_closed_feeds()

    run_scene(scene)


def test_a_stream_ends_when_somebody_signs_out_or_loses_a_right(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds_module, "RECHECK_SECONDS", 0.05)

    async def scene() -> None:
        async with Stream(cast.vera, "/workloads/live") as page:
            await page.client.alogout()
            assert (await page.take_message())["event"] == "end"
        async with Stream(cast.bob, "/workloads/live") as page:
            await AccessRule.objects.filter(user=cast.bob).adelete()
            assert (await page.take_message())["event"] == "end"

    run_scene(scene)


@pytest.mark.parametrize(
    "way", ["deactivated", "ended by an administrator", "another password", "expired"]
)
def test_a_stream_ends_with_its_session_however_that_ended(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(feeds_module, "RECHECK_SECONDS", 0.05)

    def change() -> None:
        if way == "deactivated":
            user_actions.set_active(cast.vera, False, cast.alice)
        elif way == "another password":
            user_actions.reset_password(cast.vera, cast.alice)
        elif way == "expired":
            Session.objects.update(expire_date=timezone.now())
        else:
            Session.objects.all().delete()

    async def scene() -> None:
        async with Stream(cast.vera, "/workloads/live") as page:
            await sync_to_async(change)()
            assert (await page.take_message())["event"] == "end"
            assert (await page.client.get(page.path)).status_code == 302

    run_scene(scene)


def test_a_stream_of_who_looks_as_another_goes_on_until_they_look_no_more(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[object] = []
    real = feeds_module.run_in_reader
    monkeypatch.setattr(feeds_module, "RECHECK_SECONDS", 0.05)

    async def note_answer(function: Any, *arguments: Any, **more: Any) -> Any:
        answer = await real(function, *arguments, **more)
        if more:
            answers.append(answer)
        return answer

    monkeypatch.setattr(feeds_module, "run_in_reader", note_answer)

    async def scene() -> None:
        async with Stream(cast.alice, "/workloads/live") as mine:
            assert (await mine.client.post(f"/users/{cast.vera.pk}/look-as")).status_code == 302
            assert (await mine.take_message())["event"] == "end"
            answers.clear()
            answer: Any = await mine.client.get("/workloads/live")
            page = Stream(cast.vera, "/workloads/live")
            page.chunks = answer._iterator
            reading = asyncio.create_task(page.take_message())
            await wait_until(lambda: len(answers) >= 3)
            assert not reading.done()
            assert all(answers)
            assert (await mine.client.post("/look-as/end")).status_code == 302
            assert (await reading)["event"] == "end"

    run_scene(scene)


def test_silence_is_broken_by_comments(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds_module, "HEARTBEAT_SECONDS", 0.05)

    async def scene() -> None:
        async with Stream(cast.vera, "/workloads/live") as page, asyncio.timeout(WITHIN):
            async for chunk in page.chunks:
                if chunk == b": here\n\n":
                    return

    run_scene(scene)


def test_one_person_has_only_so_many_streams(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds_module, "MAX_STREAMS_PER_PERSON", 1)

    async def scene() -> None:
        async with Stream(cast.vera, "/workloads/live") as one:
            await anext(one.chunks)
            async with (
                Stream(cast.vera, "/workloads/live") as two,
                Stream(cast.bob, "/workloads/live") as other,
            ):
                assert (two.status, other.status) == (429, 200)
        await wait_for_closed_feeds()
        async with Stream(cast.vera, "/workloads/live") as again:
            assert again.status == 200

    run_scene(scene)


def test_the_details_are_told_that_their_workload_changed(cast: Cast) -> None:
    workload, other = a_workload(cast.team_a), a_workload(cast.team_a, "other")

    async def scene() -> None:
        async with Stream(
            cast.vera, f"/workloads/{workload.pk}/live?after={workload.changed}"
        ) as page:
            await sync_to_async(touch_workload)(other)
            await sync_to_async(touch_workload)(workload)
            message = await page.take_message()
            assert (message["event"], message["position"], message["id"]) == (
                "changed",
                workload.changed,
                str(workload.pk),
            )
        async with Stream(cast.mallory, f"/workloads/{workload.pk}/live") as page:
            assert page.status == 404

    run_scene(scene)

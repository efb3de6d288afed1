"""The stream of one workload's page: viewers share a feed, and none spoils it for the others."""

from asgiref.sync import sync_to_async

from tests.cast import Cast
from tests.workloads.live_streams import (
    Stream,
    cast,
    quick_feeds,
    run_scene,
    wait_for_closed_feeds,
)
from tests.workloads.table_rows import a_workload, touch_workload

__all__ = ["cast", "quick_feeds"]

AHEAD = 10**17
"""A position that no journal has: of another database, or made up."""


def test_a_viewer_ahead_of_the_journal_keeps_no_news_from_the_others(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    path = f"/workloads/{workload.pk}/live?after="

    async def scene() -> None:
        async with Stream(cast.vera, f"{path}{AHEAD}") as first:
            await anext(first.chunks)
            async with Stream(cast.bob, f"{path}{workload.changed}") as second:
                # The first of them may be what the stream begins with; the second is the feed's.
                for status in ("Failed", "Completed"):
                    await sync_to_async(touch_workload)(workload, status=status)
                    message = await second.take_message()
                    assert message["event"] == "changed"
                    assert message["position"] == workload.changed
        await wait_for_closed_feeds()

    run_scene(scene)


def test_a_page_from_before_a_restored_backup_is_told_where_the_journal_is(cast: Cast) -> None:
    workload = a_workload(cast.team_a)

    async def scene() -> None:
        headers = {"Last-Event-ID": str(AHEAD)}
        async with Stream(cast.vera, f"/workloads/{workload.pk}/live", **headers) as page:
            message = await page.take_message()
            assert (message["event"], message["at"]) == ("changed", str(workload.changed))
            await sync_to_async(touch_workload)(workload, status="Failed")
            assert (await page.take_message())["position"] == workload.changed
        await wait_for_closed_feeds()

    run_scene(scene)

"""The stream of one workload's page: viewers share a feed, and none spoils it for the others."""

import pytest
from asgiref.sync import sync_to_async

from tests.cast import Cast, make_cast
from tests.workloads.table_rows import a_workload, touch_workload
from tests.workloads.test_table_live import Stream, run, wait_for_closed_feeds
from workloads.views import feeds as feeds_module

AHEAD = 10**17
"""A position that no journal has: of another database, or made up."""


@pytest.fixture
def cast(transactional_db: None) -> Cast:
    """Committed, as a feed reads in its own thread."""
    return make_cast()


@pytest.fixture(autouse=True)
def _quick_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No broker wakes here, so the feeds look by themselves, often."""
    monkeypatch.setattr(feeds_module, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(feeds_module, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("tests.workloads.test_table_live.WITHIN", 20.0)


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
                    told = await second.told()
                    assert told["event"] == "changed"
                    assert told["position"] == workload.changed
        await wait_for_closed_feeds()

    run(scene)


def test_a_page_from_before_a_restored_backup_is_told_where_the_journal_is(cast: Cast) -> None:
    workload = a_workload(cast.team_a)

    async def scene() -> None:
        headers = {"Last-Event-ID": str(AHEAD)}
        async with Stream(cast.vera, f"/workloads/{workload.pk}/live", **headers) as page:
            told = await page.told()
            assert (told["event"], told["at"]) == ("changed", str(workload.changed))
            await sync_to_async(touch_workload)(workload, status="Failed")
            assert (await page.told())["position"] == workload.changed
        await wait_for_closed_feeds()

    run(scene)

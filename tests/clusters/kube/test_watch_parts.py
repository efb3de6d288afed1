"""A listing told in parts: no more than a page at a time, and all of it in the end."""

import threading
from typing import Any

from clusters.kube import watch
from clusters.kube.client import Client
from clusters.kube.frames import OBJECT_DECODER
from clusters.kube.resources import PODS
from clusters.kube.watch import Bookmark, Listing, ListingPart, ListingStarted
from tests.clusters.kube.faults import Exchange, FaultServer, Step, frame, listing, refusal
from tests.clusters.kube.faults import watch as watching
from tests.clusters.kube.following import QUICK_TIMINGS


def follow_items(count: int, *steps: Step) -> list[Any]:
    """The first so many items."""
    stop = threading.Event()
    with FaultServer(*steps) as server, Client(server.access) as client:
        items = watch.follow(
            client, PODS, stop=stop, timings=QUICK_TIMINGS, decoder=OBJECT_DECODER, parts=True
        )
        found = [next(items) for _ in range(count)]
        stop.set()
        items.close()  # type: ignore[attr-defined]
    return found


def summarize(item: Any) -> str:
    match item:
        case ListingStarted():
            return "?"
        case ListingPart():
            names = " ".join(each["metadata"]["name"] for each in item.items)
            return f"{'[' if item.first else '.'}{names}"
        case Listing():
            assert item.items == []
            return f"]{item.version}"
        case Bookmark():
            return f"@{item.version}"
    return f"+{item.object['metadata']['name']}"


def test_each_page_comes_by_itself_and_then_the_end() -> None:
    found = follow_items(
        6, listing(5, "a", "b", token="t"), listing(5, "c"), watching(frame("ADDED", "d", 6))
    )
    assert [summarize(each) for each in found] == ["?", "[a b", ".c", "]5", "@5", "+d"]


def test_a_list_that_is_forgotten_half_way_begins_anew() -> None:
    found = follow_items(
        5,
        listing(5, "a", token="t"),
        refusal(410, "Expired"),
        listing(9, "b", token="u"),
        listing(9, "c"),
        watching(),
    )
    assert [summarize(each) for each in found] == ["?", "[a", "[b", ".c", "]9"]


def test_a_list_that_breaks_off_is_asked_for_again() -> None:
    found = follow_items(
        6, listing(5, "a", token="t"), refusal(500, "InternalError"), listing(9, "b"), watching()
    )
    assert [type(each).__name__ for each in found] == [
        "ListingStarted",
        "ListingPart",
        "WatchFailed",
        "ListingStarted",
        "ListingPart",
        "Listing",
    ]


def test_no_listing_begins_before_a_server_that_was_away_answers() -> None:
    """A caller reads all that it knows when one begins, and keeps the others from trying so."""
    cut = Exchange.reset
    # A request whose connection is cut is sent twice.
    found = follow_items(
        6, cut, cut, cut, cut, cut, cut, listing(5, "a"), listing(5, "a"), watching()
    )
    assert [type(each).__name__ for each in found] == [
        "ListingStarted",
        *["WatchFailed"] * 3,
        "ListingStarted",
        "ListingPart",
    ]

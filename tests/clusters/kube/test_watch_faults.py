"""Following through what a server or a network can do to it. The clock of the waits is real but
short; nothing waits for it blindly.
"""

import itertools
import json
import threading

import msgspec
import pytest

from clusters.kube import frames, watch
from clusters.kube.client import Client, Timeouts
from clusters.kube.errors import Expired, NotServed, Rejected, Unauthorized, Unavailable
from clusters.kube.frames import UnreadableObject
from clusters.kube.rate_limits import RateLimiter
from clusters.kube.watch import WatchTimings
from tests.clusters.kube.faults import (
    Exchange,
    FaultServer,
    Step,
    answer_plain,
    end_watch,
    frame,
    listing,
    refusal,
    status,
)
from tests.clusters.kube.faults import watch as watching
from tests.clusters.kube.following import QUICK_TIMINGS, Following

EXPIRED = (
    json.dumps({"type": "ERROR", "object": json.loads(status(410, "Expired"))}).encode() + b"\n"
)


def follow_steps(
    *steps: Step, until: str, patience: WatchTimings = QUICK_TIMINGS
) -> tuple[list[str], FaultServer, Following]:
    """What a follower tells of these steps up to the item that is written so."""
    with (
        FaultServer(*steps) as server,
        Client(server.access, timeouts=Timeouts(0.5, 0.5, 2.0)) as client,
    ):
        with Following(client, patience=patience) as following:
            following.wait_for(lambda follower: until in follower.summary)
        return following.summary, server, following


def versions(server: FaultServer) -> list[str]:
    """The version each request started from: `list`, `check`, or the watch's."""
    names = {"1": "check"}
    return [
        request.query.get("resourceVersion") or names.get(request.query["limit"], "list")
        for request in server.requests
    ]


def test_a_watch_asks_for_bookmarks_and_an_end() -> None:
    _, server, _ = follow_steps(listing(5, "a"), watching(frame("BOOKMARK", "", 9)), until="@9")
    assert server.requests[1].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "2",
    }


def test_a_bookmark_moves_the_version_on() -> None:
    summary, server, _ = follow_steps(
        listing(5),
        watching(frame("BOOKMARK", "", 9), then=end_watch),
        watching(frame("ADDED", "a", 10)),
        until="+a",
    )
    assert summary == ["[]", "@5", "@9", "@9", "+a"]
    assert versions(server) == ["list", "5", "9"]


def test_a_refused_version_means_a_new_listing() -> None:
    summary, _, _ = follow_steps(
        listing(5, "a"), refusal(410, "Expired"), listing(9, "b"), watching(), until="@9"
    )
    assert summary == ["[a]", "[b]", "@9"]


def test_a_version_refused_within_the_watch_means_a_new_listing() -> None:
    summary, _, _ = follow_steps(
        listing(5, "a"), watching(EXPIRED), listing(9, "b"), watching(), until="@9"
    )
    assert summary == ["[a]", "@5", "[b]", "@9"]


def test_a_server_that_always_forgets_is_not_asked_without_a_pause() -> None:
    script = (
        listing(5),
        refusal(410, "Expired"),
        listing(5),
        refusal(410, "Expired"),
        listing(9, "a"),
        watching(),
    )
    summary, _, following = follow_steps(*script, until="@9")
    assert summary == ["[]", "[]", "lost", "[a]", "@9"]
    assert isinstance(following.failures[0].error, Expired)


def test_a_reset_in_the_middle_of_a_change_loses_nothing() -> None:
    seen_first = threading.Event()

    def half(exchange: Exchange) -> None:
        # A reset throws away what the client has not read yet.
        assert seen_first.wait(300)
        exchange.chunk(frame("MODIFIED", "a", 7)[:30])
        exchange.reset()

    script = (
        listing(5, "a"),
        watching(frame("MODIFIED", "a", 6), then=half),
        listing(7),
        watching(frame("MODIFIED", "a", 7)),
    )
    with (
        FaultServer(*script) as server,
        Client(server.access) as client,
        Following(client, patience=QUICK_TIMINGS) as following,
    ):
        following.wait_for(lambda follower: "~a" in follower.summary)
        seen_first.set()
        following.wait_for(
            lambda follower: follower.summary == ["[a]", "@5", "~a", "lost", "@6", "~a"]
        )
        assert versions(server) == ["list", "5", "check", "6"]


def test_a_watch_that_ends_in_the_middle_of_a_change_is_lost_and_taken_up_again() -> None:
    whole = frame("ADDED", "a", 6)
    summary, _, _ = follow_steps(
        listing(5), watching(whole[:30], then=end_watch), listing(6), watching(whole), until="+a"
    )
    assert summary == ["[]", "@5", "lost", "@5", "+a"]


@pytest.mark.parametrize(
    "garbage",
    [
        b"{not json}\n",
        b"[]\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{"metadata":3}}\n',
        b"[" * 9_999 + b"\n",
        b"\xff\n",
    ],
)
def test_a_line_that_is_no_change_is_asked_for_again(garbage: bytes) -> None:
    script = (
        listing(5),
        watching(garbage, frame("ADDED", "late", 9)),
        listing(6),
        watching(frame("ADDED", "a", 6)),
    )
    summary, server, _ = follow_steps(*script, until="+a")
    assert summary == ["[]", "@5", "lost", "@5", "+a"]
    assert versions(server) == ["list", "5", "check", "5"]


def test_a_version_from_which_no_watch_works_is_given_up() -> None:
    broken = refusal(500, "InternalError")
    script = [
        listing(5, "a"),
        broken,
        listing(5),
        broken,
        listing(5),
        broken,
        listing(9, "b"),
        watching(),
    ]
    summary, server, _ = follow_steps(*script, until="@9")
    assert summary == ["[a]", "lost", "lost", "lost", "[b]", "@9"]
    assert versions(server) == ["list", "5", "check", "5", "check", "5", "list", "9"]


def test_a_frame_in_two_pieces_is_one_and_several_in_one_piece_are_several() -> None:
    one, two, three = frame("ADDED", "a", 6), frame("ADDED", "b", 7), frame("ADDED", "c", 8)
    summary, _, _ = follow_steps(
        listing(5), watching(one[:17], one[17:] + two + b"\r\n\n" + three), until="+c"
    )
    assert summary == ["[]", "@5", "+a", "+b", "+c"]


def test_repeated_and_reordered_frames_are_passed_on_and_move_nothing_back() -> None:
    frames_out_of_order = [frame("ADDED", "a", 8), frame("ADDED", "a", 8), frame("ADDED", "b", 7)]
    summary, server, _ = follow_steps(
        listing(5),
        watching(*frames_out_of_order, then=end_watch),
        watching(frame("BOOKMARK", "", 9)),
        until="@9",
    )
    assert summary == ["[]", "@5", "+a", "+a", "+b", "@8", "@9"]
    assert versions(server)[-1] == "8"


def test_an_unknown_type_of_frame_is_passed_over() -> None:
    summary, _, _ = follow_steps(
        listing(5), watching(frame("NOVELTY", "x", 6), frame("ADDED", "a", 7)), until="+a"
    )
    assert summary == ["[]", "@5", "+a"]


def test_a_server_that_went_back_in_time_is_listed_again() -> None:
    script = (
        listing(500, "a"),
        watching(then=Exchange.reset),
        listing(20, "b"),
        listing(20, "b"),
        watching(),
    )
    summary, server, _ = follow_steps(*script, until="@20")
    assert summary == ["[a]", "@500", "lost", "[b]", "@20"]
    assert versions(server) == ["list", "500", "check", "list", "20"]


def test_a_silent_watch_is_given_up_and_taken_up_from_the_last_version() -> None:
    patience = WatchTimings(watch=1, slack=-0.7, first_retry=0.02, longest_retry=0.1)
    script = (
        listing(5),
        watching(frame("BOOKMARK", "", 6)),
        listing(6),
        watching(frame("ADDED", "a", 7)),
    )
    summary, _, following = follow_steps(*script, until="+a", patience=patience)
    assert summary == ["[]", "@5", "@6", "lost", "@6", "+a"]
    assert "in time" in str(following.failures[0].error)


def test_a_half_open_server_is_lost_since_it_was_last_heard() -> None:
    script = listing(5), watching(then=Exchange.close), Exchange.silence, Exchange.silence
    with (
        FaultServer(*script) as server,
        Client(server.access, timeouts=Timeouts(0.5, 0.2, 2.0)) as client,
        Following(client) as following,
    ):
        following.wait_for(lambda follower: len(follower.failures) >= 3)
        assert len({lost.since for lost in following.failures}) == 1


def test_a_stop_does_not_wait_for_a_server_that_does_not_answer() -> None:
    with FaultServer(Exchange.silence) as server, Client(server.access) as client:
        with Following(client) as following:
            server.wait_for(1)
        assert following.stopped_in < 1.0


def test_a_stop_does_not_wait_for_a_silent_watch() -> None:
    script = listing(5), Exchange.silence
    with FaultServer(*script) as server, Client(server.access) as client:
        with Following(client, patience=WatchTimings()) as following:
            server.wait_for(2)
        assert following.stopped_in < 1.0


def test_a_stop_does_not_wait_for_the_time_a_server_asked_for() -> None:
    with (
        FaultServer(refusal(429, "TooManyRequests", "Retry-After: 60")) as server,
        Client(server.access) as client,
    ):
        with Following(client) as following:
            following.wait_for(lambda follower: follower.failures)
        assert following.stopped_in < 1.0
        assert len(server.requests) == 1


def test_a_storm_of_refusals_is_waited_out() -> None:
    storm = [
        refusal(503, "ServiceUnavailable"),
        refusal(429, "TooManyRequests"),
        refusal(500, "InternalError"),
    ] * 3
    summary, _, following = follow_steps(*storm, listing(5, "a"), watching(), until="@5")
    assert summary == ["lost"] * 9 + ["[a]", "@5"]
    assert {lost.error.status for lost in following.failures} == {503, 429, 500}


def test_a_list_cut_off_between_its_pages_begins_anew() -> None:
    page = listing(5, "a", token="t")
    summary, _, _ = follow_steps(
        page, Exchange.reset, Exchange.reset, page, listing(5, "b"), watching(), until="@5"
    )
    assert summary == ["lost", "[a b]", "@5"]


def test_a_list_that_expires_between_its_pages_is_one_moment_all_the_same() -> None:
    fresh = refusal(410, "Expired", metadata={"continue": "fresh"})
    summary, server, _ = follow_steps(
        listing(5, "gone", token="t"),
        fresh,
        listing(9, "a", token="u"),
        listing(9, "b"),
        watching(),
        until="@9",
    )
    assert summary == ["[a b]", "@9"]
    assert "continue" not in server.requests[2].query


def test_bad_credentials_end_the_following() -> None:
    for script in [(refusal(401, "Unauthorized"),), (listing(5), refusal(401, "Unauthorized"))]:
        with (
            FaultServer(*script) as server,
            Client(server.access) as client,
            Following(client) as following,
        ):
            assert following.wait_end()
            assert isinstance(following.raised, Unauthorized)


def test_what_is_forbidden_or_not_served_is_told_and_tried_again() -> None:
    summary, _, following = follow_steps(
        refusal(403, "Forbidden"),
        answer_plain(404, b"404 page not found\n"),
        listing(5),
        watching(),
        until="@5",
    )
    assert summary == ["lost", "lost", "[]", "@5"]
    assert [type(lost.error) for lost in following.failures] == [Rejected, NotServed]


def test_a_list_without_a_version_is_no_list() -> None:
    summary, _, _ = follow_steps(
        answer_plain(200, b'{"metadata": {}, "items": null}'), listing(5), watching(), until="@5"
    )
    assert summary == ["lost", "[]", "@5"]


def test_watches_that_end_at_once_are_not_begun_without_a_pause() -> None:
    summary, _, following = follow_steps(
        listing(5),
        watching(then=end_watch),
        listing(5),
        watching(frame("ADDED", "a", 6)),
        until="+a",
    )
    assert summary == ["[]", "@5", "lost", "@5", "+a"]
    assert "at once" in str(following.failures[0].error)


def test_an_object_that_the_decoder_refuses_is_named_and_the_others_go_on() -> None:
    class Narrow(msgspec.Struct):
        metadata: dict[str, str]
        spec: dict[str, int] = {}

    script = (
        listing(5, "a"),
        watching(frame("ADDED", "poison", 6, spec={"x": "<script>"}), frame("ADDED", "b", 7)),
    )
    decoder = msgspec.json.Decoder(Narrow)
    with (
        FaultServer(*script) as server,
        Client(server.access) as client,
        Following(client, decoder=decoder) as following,
    ):
        following.wait_for(lambda follower: len(follower.items) >= 4)
    spoilt = following.items[2]
    assert isinstance(spoilt, UnreadableObject)
    assert (spoilt.type, spoilt.namespace, spoilt.name, spoilt.uid, spoilt.version) == (
        "ADDED",
        "team-a",
        "poison",
        "uid-poison",
        "6",
    )


def test_a_line_that_does_not_end_is_not_kept_for_ever() -> None:
    chunks = itertools.repeat(b"x" * 65536)
    with pytest.raises(Unavailable, match="longer than 16 MiB"):
        next(frames.split_lines(chunks))


def test_a_cluster_is_never_asked_more_often_than_the_pace_says() -> None:
    with (
        FaultServer(refusal(410, "Expired"), listing(1)) as server,
        Client(server.access, rate_limiter=RateLimiter(rate=0.001, burst=2)) as client,
    ):
        with Following(client) as following:
            following.wait_for(
                lambda follower: (
                    "too many requests wait"
                    in " ".join(str(lost.error) for lost in follower.failures)
                )
            )
        assert len(server.requests) == 2


def test_waits_double_up_to_their_bound_and_never_fall_below_what_was_asked() -> None:
    spans = []
    for failures in range(1, 9):
        waits = [
            watch.compute_retry_delay(Unavailable(""), failures, WatchTimings()) for _ in range(200)
        ]
        spans.append(max(waits))
        assert 0.5 <= min(waits) <= max(waits) <= 30.0
    assert spans[0] <= 1.0 < spans[2] <= 4.0 < spans[-1]
    assert (
        min(
            watch.compute_retry_delay(Unavailable("", retry_after=40.0), 1, WatchTimings())
            for _ in range(200)
        )
        > 40.0
    )

"""What the radar found, as people see it: the page, its history, the table and the overview."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Node
from projects.models import AccessRule, CustomRole, User
from tests.cast import Cast
from tests.workloads.overview_rows import client_of, html
from tests.workloads.radar_rows import HOSTILE, build_finding, record_findings
from tests.workloads.table_rows import a_pod, a_workload
from workloads import journal
from workloads.models import RadarFinding, Workload
from workloads.queries import load_changes, load_findings, load_gravest_findings, load_open_findings
from workloads.radar import Certainty, Kind, Proof
from workloads.views.rendering import render_rows

SENTENCE = "Rank 2 has said nothing for 6 min, while the 2 others wait at step 410."


@pytest.fixture
def workload(cast: Cast) -> Workload:
    """A training whose rank 2 hangs."""
    made = a_workload(cast.team_a, by=cast.bob)
    pod = a_pod(made, "worker", 1, node="node-0")
    record_findings(made, build_finding(pod=pod.pk, node="node-0"))
    return made


def get_head(user: User, workload: Workload) -> str:
    return html(user, f"/workloads/{workload.pk}/head")


def test_the_head_shows_an_open_finding(cast: Cast, workload: Workload) -> None:
    page = get_head(cast.bob, workload)
    (row,) = RadarFinding.objects.all()
    for words in (
        "Hangs",
        SENTENCE,
        ">likely<",
        "6 min ago",
        "Stop it to free what it holds.",
        "Rank 2 printed last: step 410",
        f'href="/workloads/{workload.pk}/metrics?pod={row.pod_id}#metric-cpu"',
        f'href="/workloads/{workload.pk}/logs?pod={row.pod_id}">Log of rank 2</a>',
        f'id="act-stop-{row.pk}"',
    ):
        assert words in page, words
    assert page.count('id="act-stop"') == 1


def test_who_may_not_stop_gets_no_button(cast: Cast, workload: Workload) -> None:
    page = get_head(cast.vera, workload)
    assert SENTENCE in page
    assert "act-stop-" not in page


def test_a_node_has_a_link_where_the_reader_may_see_it(cast: Cast, workload: Workload) -> None:
    link = f'href="/clusters/{cast.cluster.pk}/nodes/node-0"'
    assert link not in get_head(cast.alice, workload)
    Node.objects.create(cluster=cast.cluster, name="node-0")
    assert link in get_head(cast.alice, workload)
    role = CustomRole.objects.create(name="Looks at workloads", permissions=["workloads:view"])
    quiet = User.objects.create(username="quiet")
    AccessRule.objects.create(user=quiet, project=cast.team_a, custom_role=role)
    assert link not in get_head(quiet, workload)


def test_the_gravest_come_first_and_of_many_the_rest_is_in_the_history(
    cast: Cast, workload: Workload
) -> None:
    record_findings(
        workload,
        *(build_finding(Kind.STRAGGLER, subject=str(rank)) for rank in range(8)),
        build_finding(Kind.NODE, sentence="Node node-0 is faulty.", is_immediate=True),
    )
    page = get_head(cast.bob, workload)
    assert page.index("Faulty node") < page.index("Hangs") < page.index("Straggler")
    assert page.count('class="mu-alert mu-alert--') == 6
    assert f'<a href="/workloads/{workload.pk}?kind=finding">4 more</a>' in page


def test_a_finding_that_is_over_is_in_the_history_only(cast: Cast, workload: Workload) -> None:
    record_findings(workload, over=["hang/"])
    assert SENTENCE not in get_head(cast.bob, workload)
    page = html(cast.bob, f"/workloads/{workload.pk}?kind=finding")
    assert f"{SENTENCE} It was over at" in page
    assert "<strong>Hangs</strong>" in page
    assert 'value="finding" checked' in page
    (over,) = load_findings(workload)
    assert over.lasted == "6 min"


def test_the_history_can_be_narrowed_to_findings(cast: Cast, workload: Workload) -> None:
    record_findings(workload, build_finding(Kind.IDLE, sentence="4 GPUs are unused for 3 h."))
    page = html(cast.vera, f"/workloads/{workload.pk}/events?kind=finding")
    assert "<strong>Idle GPUs</strong>" in page
    assert "#radar" in page
    assert "Nothing has happened" not in page
    page = html(cast.vera, f"/workloads/{workload.pk}/events?kind=action")
    assert "4 GPUs are unused" not in page


@pytest.mark.parametrize("fields", [{"status": "Stopped"}, {"attempt": 2}])
def test_what_runs_no_more_has_no_trouble(
    cast: Cast, workload: Workload, fields: dict[str, object]
) -> None:
    """Also in the seconds before the radar closes its findings."""
    Workload.objects.filter(pk=workload.pk).update(**fields)
    workload.refresh_from_db()
    assert SENTENCE not in get_head(cast.bob, workload)
    assert not load_open_findings(workload)
    assert not load_gravest_findings([workload])
    assert "need a look" not in html(cast.alice)
    assert "train1" not in html(cast.alice, "/workloads?look=1")
    assert all(each.ended_at == each.seen_at for each in load_findings(workload))


def test_texts_of_a_log_are_text(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    line = f"Rank 0 printed last: {HOSTILE}{'x' * 10_000}"
    record_findings(
        workload,
        build_finding(
            sentence=HOSTILE * 50, help=HOSTILE, node=HOSTILE, proofs=[Proof(line, HOSTILE)] * 20
        ),
    )
    for address in (
        f"/workloads/{workload.pk}",
        f"/workloads/{workload.pk}/head",
        "/workloads",
        "/overview",
    ):
        page = html(cast.alice, address)
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address
        assert "&lt;script&gt;alert(1)" in page, address
    page = get_head(cast.alice, workload)
    assert "x" * 600 not in page
    assert page.count("<bdi>Rank 0 printed last:") == 8


def test_rows_that_say_nothing_known_are_shown_nevertheless(cast: Cast, workload: Workload) -> None:
    """As another release may have written them."""
    RadarFinding.objects.update(kind="other", certainty="unsure", proofs={"text": "no list"})
    assert SENTENCE in get_head(cast.bob, workload)
    assert SENTENCE in html(cast.bob, "/workloads")
    RadarFinding.objects.update(proofs=["no dict", {"metric": 1}])
    assert SENTENCE in get_head(cast.bob, workload)


def test_a_possible_hang_is_a_warning_and_a_certain_one_a_danger(cast: Cast) -> None:
    for certainty, look in ((Certainty.POSSIBLE, "warning"), (Certainty.CERTAIN, "danger")):
        workload = a_workload(cast.team_a, f"is-{certainty}")
        record_findings(workload, build_finding(certainty=certainty))
        assert f"mu-alert--{look} wl-finding" in get_head(cast.vera, workload)


def test_the_table_marks_what_needs_a_look(cast: Cast, workload: Workload) -> None:
    a_workload(cast.team_a, "healthy")
    record_findings(workload, build_finding(Kind.IDLE))
    page = html(cast.vera, "/workloads")
    assert page.count('class="wl-look"') == 1
    assert f'title="Hangs: {SENTENCE} (and 1 more)"' in page
    page = html(cast.vera, "/workloads?look=1")
    assert "train1" in page
    assert "healthy" not in page
    assert "Needs a look: Yes" in page


def test_live_rows_get_and_lose_the_mark(cast: Cast) -> None:
    workload = a_workload(cast.team_a)
    for begun, over in (([build_finding()], []), ([], ["hang/"])):
        before = workload.changed
        record_findings(workload, *begun, over=over)
        (row,) = render_rows(load_changes(before, None, lambda rows: rows).rows)
        assert (SENTENCE in row.html) == bool(begun)


def test_the_overview_tells_what_needs_a_look(cast: Cast, workload: Workload) -> None:
    later = timezone.now() + timedelta(seconds=1)
    other = a_workload(cast.team_b, "other")
    record_findings(other, build_finding(Kind.LOSS, sentence="The loss is no number."), at=later)
    page = html(cast.alice)
    assert "2 workloads\n      need a look" in page
    assert page.index("The loss is no number.") < page.index(SENTENCE)
    page = html(cast.vera)
    assert "1 workload\n      needs a look" in page
    assert "The loss is no number." not in page


def test_the_overview_says_nothing_where_nothing_is_wrong(cast: Cast) -> None:
    a_workload(cast.team_a)
    assert "a look" not in html(cast.alice)


def test_of_many_the_overview_shows_the_newest_and_leads_to_all(cast: Cast) -> None:
    for number in range(7):
        workload = a_workload(cast.team_a, f"w-{number}")
        at = timezone.now() + timedelta(seconds=number)
        record_findings(workload, build_finding(Kind.IDLE), at=at)
    page = html(cast.alice)
    assert '<a class="ch-age" href="/workloads?look=1">All 7</a>' in page
    assert page.count('id="trouble-') == 5
    assert ">w-6<" in page
    assert ">w-0<" not in page


@pytest.mark.parametrize("address", ["/overview", "/workloads", "/workloads?look=1"])
def test_the_queries_do_not_grow_with_findings(cast: Cast, address: str) -> None:
    client = client_of(cast.alice)
    counts = []
    for begin in (0, 3):
        for number in range(begin, begin + 3 + begin):
            workload = a_workload(cast.team_a, f"w-{number}", gpus_allocated=Decimal(1))
            record_findings(workload, build_finding(), build_finding(Kind.IDLE))
        client.get(address)
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_a_stop_closes_them_and_the_history_says_so(cast: Cast, workload: Workload) -> None:
    journal.close_findings(list(RadarFinding.objects.all()), timezone.now())
    page = html(cast.vera, f"/workloads/{workload.pk}")
    assert "It lasted to the end of the run at" in page

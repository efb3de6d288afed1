"""The pages of past moments: what they say, to whom, how one gets there, and at what cost."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Cluster
from projects.models import AccessRule, CustomRole, Department, Project, User
from tests.cast import NOWHERE, Cast
from tests.workloads.ledger_rows import build_moment
from tests.workloads.past_rows import Record, a_node, a_running_workload, a_waiting_workload
from tests.workloads.table_rows import a_pod, a_workload, an_event, touch_workload
from workloads.models import StateBlock, Workload
from workloads.views.time_machine import MOST_SHOWN

ReadPage = Callable[..., str]


@pytest.fixture
def read_page(db: None) -> ReadPage:
    """Returns the text of a page, without the texts of tags."""

    def read_page(user: User, address: str, code: int = 200) -> str:
        client = Client()
        client.force_login(user)
        answer = client.get(address)
        assert answer.status_code == code, answer.content[:2000]
        return " ".join(answer.content.decode().split())

    return read_page


def build_address(minutes: float, more: str = "") -> str:
    moment = build_moment(minutes)
    return f"/time-machine?at={moment:%Y-%m-%dT%H:%MZ}{more}"


def get_text(page: str) -> str:
    """The words of the page's main part."""
    main = page.partition("<main")[2]
    return " ".join(re.sub(r"<[^>]+>", " ", main).split())


@pytest.fixture
def past(cast: Cast, record: Record) -> Workload:
    """At NOON train1 waits for what team-b holds; two minutes later it runs."""
    a_node(cast.cluster)
    holder = a_running_workload(cast.team_b, "secret-holder", 8, "node-1")
    workload = a_waiting_workload(cast.team_a, by=cast.bob)
    record(0)
    record(0.5)
    touch_workload(holder, status="Completed", ended_at=build_moment(1))
    holder.pods.update(vanished_at=build_moment(1))
    touch_workload(workload, status="Running", running_pods=1, gpus_allocated=Decimal(8))
    workload.pods.update(node="node-1", phase="Running", gpus=Decimal(8))
    record(2)
    return workload


def test_a_moment_says_who_waited_and_why(past: Workload, cast: Cast, read_page: ReadPage) -> None:
    then = get_text(read_page(cast.alice, build_address(1)))
    assert "The past: 20 Nov 2026, 12:01 UTC" in then
    waited = then.partition("Waited, and why")[2].partition("Ran")[0]
    assert "train1" in waited
    assert "8 GPUs" in waited
    ran = then.partition("Ran ")[2]
    assert "secret-holder" in ran
    assert "On node-1" in ran
    assert "0 of 8 free" in then
    later = get_text(read_page(cast.alice, build_address(2)))
    assert "Nothing waited." in later
    assert "Workloads that you may see Another project" in later
    assert "secret-holder" not in later


def test_todays_rights_decide_what_of_then_is_seen(
    past: Workload, cast: Cast, read_page: ReadPage
) -> None:
    for address in (
        build_address(1),
        build_address(1, f"&project={cast.team_a.pk}"),
        build_address(1, f"&workload={past.pk}"),
    ):
        page = read_page(cast.bob, address)
        assert "train1" in page
        assert "secret-holder" not in page
        assert "team-b" not in page
    assert "Another project: 1 workload that you may not see held 8 GPUs." in get_text(
        read_page(cast.bob, build_address(1))
    )
    AccessRule.objects.filter(user=cast.bob).delete()
    AccessRule.objects.filter(user=cast.alice).delete()
    read_page(cast.bob, build_address(1), 403)


def test_clusters_that_one_may_not_see_are_not_counted(
    past: Workload, cast: Cast, record: Record, read_page: ReadPage
) -> None:
    far = Cluster.objects.create(name="far", server="https://127.0.0.1:2", kubeconfig=NOWHERE)
    cast.team_b.cluster = far
    cast.team_b.save()
    for name, gpus in (("here-run", 3), ("far-run", 40)):
        workload = a_running_workload(cast.team_b, name, gpus, "node-1")
        touch_workload(workload, cluster=far if name == "far-run" else cast.cluster)
    record(3)
    own = get_text(read_page(cast.bob, build_address(3)))
    assert "Another project: 1 workload that you may not see held 3 GPUs." in own
    assert "Other projects, which you may not see or which are removed, held 3 GPUs." in own
    alone = get_text(read_page(cast.bob, build_address(3, f"&project={cast.team_a.pk}")))
    assert "Other projects, which" not in alone
    cast.team_b.deleted_at = far.removed_at = build_moment(4)
    cast.team_b.save()
    far.save()
    whole = get_text(read_page(cast.alice, build_address(3)))
    assert "Another project: 2 workloads that you may not see held 43 GPUs." in whole


def test_a_departments_quota_held_on_each_cluster(
    cast: Cast, record: Record, read_page: ReadPage
) -> None:
    far = Cluster.objects.create(name="far", server="https://127.0.0.1:2", kubeconfig=NOWHERE)
    Project.objects.filter(pk=cast.team_b.pk).update(cluster=far)
    Department.objects.update(gpu_quota=8, gpu_limit=12)
    for project, cluster in ((cast.team_a, cast.cluster), (cast.team_b, far)):
        touch_workload(a_running_workload(project, "run", 8, "node-1"), cluster=cluster)
    record(0)
    page = read_page(cast.alice, build_address(0))
    assert "16 GPUs allocated of a quota of 16, at most 24" in page


def test_a_project_is_not_looked_at_without_its_workloads(
    past: Workload, cast: Cast, read_page: ReadPage
) -> None:
    role = CustomRole.objects.create(
        name="Curator", permissions=["projects:view", "overview:view", "clusters:view"]
    )
    AccessRule.objects.create(user=cast.bob, project=cast.team_b, custom_role=role)
    read_page(cast.bob, build_address(1, f"&project={cast.team_b.pk}"), 404)
    assert "look-back" not in read_page(cast.bob, f"/projects/{cast.team_b.pk}")
    assert "look-back" in read_page(cast.bob, f"/projects/{cast.team_a.pk}")


def test_a_removed_project_is_another_project(
    past: Workload, cast: Cast, read_page: ReadPage
) -> None:
    cast.team_b.deleted_at = build_moment(3)
    cast.team_b.save()
    page = read_page(cast.alice, build_address(1))
    assert "secret-holder" not in page
    assert "team-b" not in page
    text = get_text(page)
    assert "Another project: 1 workload" in text
    holder = Workload.objects.get(name="secret-holder")
    # Its own page is still there for who sees everything, but no longer says where it ran.
    alone = get_text(read_page(cast.alice, build_address(1, f"&workload={holder.pk}")))
    assert "Nodes and their GPUs" in text
    assert "Nodes and their GPUs" not in alone


@pytest.mark.parametrize(
    "query",
    [
        "project={b}",
        "project=x",
        "workload={b_workload}",
        "workload=x",
        "node={cluster}/",
        "node={cluster}/%0A",
        "node=x/y",
    ],
)
def test_what_one_may_not_see_is_not_there(
    cast: Cast, record: Record, read_page: ReadPage, query: str
) -> None:
    hidden = a_workload(cast.team_b)
    record(0)
    names = {"b": cast.team_b.pk, "b_workload": hidden.pk, "cluster": cast.cluster.pk}
    read_page(cast.bob, build_address(0, f"&{query.format(**names)}"), 404)


def test_a_workload_is_answered_for(past: Workload, cast: Cast, read_page: ReadPage) -> None:
    waiting = get_text(read_page(cast.bob, build_address(1, f"&workload={past.pk}")))
    assert "train1 at this moment Pending since" in waiting
    assert "1 of 1 in the queue of team-a" in waiting
    running = get_text(read_page(cast.bob, build_address(2, f"&workload={past.pk}")))
    assert "It did not wait: 1 of 1 pods ran, with 8 GPUs." in running


def test_a_change_leads_to_the_turn_that_recorded_it(
    cast: Cast, record: Record, read_page: ReadPage
) -> None:
    record(0)
    a_waiting_workload(cast.team_b, "other")
    record(0.25)
    workload = a_waiting_workload(cast.team_a, by=cast.bob)
    an_event(workload, at=build_moment(1 / 12), new="Pending")
    found = re.search(
        r'href="(/time-machine[^"]*turn=next)"', read_page(cast.bob, f"/workloads/{workload.pk}")
    )
    assert found
    href = found[1].replace("&amp;", "&")
    assert "It neither waited nor ran then" in read_page(cast.bob, href)
    newest = href.replace("12:00:05", "12:00:15")
    assert "This change is not recorded yet" in read_page(cast.bob, newest)
    record(0.5)
    text = get_text(read_page(cast.bob, href))
    assert "as recorded at 20 Nov 2026, 12:00:30 UTC" in text
    assert "train1 at this moment Pending since" in text


def test_a_node_is_shown_alone(past: Workload, cast: Cast, read_page: ReadPage) -> None:
    a_node(cast.cluster, "node-2")
    text = get_text(read_page(cast.alice, build_address(2, f"&node={cast.cluster.pk}/node-1")))
    assert "Ran there" in text
    assert "train1 8" in text
    assert "node-2" not in text
    assert "Waited" not in text


@pytest.mark.parametrize("status", ["Running", "Initializing"])
def test_what_others_held_of_a_node_is_what_its_picture_says(
    cast: Cast, record: Record, read_page: ReadPage, status: str
) -> None:
    for name in ("node-1", "node-2"):
        a_node(cast.cluster, name)
    hidden = a_running_workload(cast.team_b, "secret", 2, "node-1")
    a_pod(hidden, index=1, node="node-2", gpus=Decimal(6), is_ready=True)
    touch_workload(
        hidden, status=status, gpus_allocated=Decimal(8), gpus_requested=Decimal(8), running_pods=2
    )
    record(0)
    text = get_text(read_page(cast.bob, build_address(0, f"&node={cast.cluster.pk}/node-1")))
    assert "Another project: 1 workload that you may not see held 2 GPUs." in text
    assert "another project 2" in text


def test_of_one_it_is_said_in_the_singular(cast: Cast, record: Record, read_page: ReadPage) -> None:
    for number in range(MOST_SHOWN + 1):
        a_node(cast.cluster, f"node-{number:02}", gpus=1)
    workload = a_running_workload(cast.team_a, "wide", 1, "node-00")
    for number in range(1, 5):
        a_pod(workload, index=number, node=f"node-{number:02}", is_ready=True)
    record(0)
    page = read_page(cast.alice, build_address(0, f"&workload={workload.pk}"))
    text = get_text(page)
    assert "1 of 1 pods ran, with 1 GPU." in text
    assert "On node-00, node-01, node-02, node-03 and 1 more node" in text
    assert 'aria-label="node-00: 1 GPU: wide 1"' in page
    whole = get_text(read_page(cast.alice, build_address(0)))
    assert "And 1 more node; the page of that one shows it at a moment." in whole


def test_what_starts_on_a_node_was_there(cast: Cast, record: Record, read_page: ReadPage) -> None:
    a_node(cast.cluster)
    workload = a_running_workload(cast.team_a, "starting", 8, "node-1")
    touch_workload(workload, status="Initializing")
    record(0)
    text = get_text(read_page(cast.alice, build_address(0, f"&node={cast.cluster.pk}/node-1")))
    assert "Ran there 1" in text
    assert "starting 8" in text


def test_the_sliders_left_end_is_recorded(cast: Cast, record: Record, read_page: ReadPage) -> None:
    for minute in (0.5, 5):
        record(minute)
    least = re.search(r'min="(\d+)"', read_page(cast.alice, "/time-machine"))
    assert least
    assert datetime.fromtimestamp(60 * int(least[1]), UTC) == build_moment(1)
    assert "Nothing is known" not in read_page(cast.alice, build_address(1))


def test_gaps_and_edges_are_said(cast: Cast, record: Record, read_page: ReadPage) -> None:
    assert "Nothing has been recorded yet" in read_page(cast.alice, "/time-machine")
    for minute in (0, 20, 20.5):
        record(minute)
    assert "Nothing was recorded between 20 Nov 2026, 12:00 UTC and 20 Nov 2026, 12:20 UTC" in (
        get_text(read_page(cast.alice, build_address(10)))
    )
    assert "The record begins at 20 Nov 2026, 12:00 UTC" in get_text(
        read_page(cast.alice, build_address(-5))
    )
    assert "yet to come" in read_page(cast.alice, build_address(99))
    assert "Write the moment as" in read_page(cast.alice, "/time-machine?at=tuesday")
    StateBlock.objects.update(data=b"damaged")
    assert "cannot be read" in read_page(cast.alice, build_address(1))


def test_it_is_off(cast: Cast, read_page: ReadPage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "look-back" in read_page(cast.alice, "/overview")
    monkeypatch.setattr(settings.OPTIONS, "time_machine_days", 0)
    assert "The time machine is off" in read_page(cast.alice, "/time-machine")
    assert "look-back" not in read_page(cast.alice, "/overview")


def test_pages_of_the_present_lead_there(past: Workload, cast: Cast, read_page: ReadPage) -> None:
    an_event(past)
    expected = {
        "/overview": 'action="/time-machine"',
        f"/projects/{cast.team_a.pk}": f'name="project" value="{cast.team_a.pk}"',
        f"/clusters/{cast.cluster.pk}/nodes/node-1": f'value="{cast.cluster.pk}/node-1"',
        f"/workloads/{past.pk}": build_address(0, f"&amp;workload={past.pk}"),
        f"/workloads/{past.pk}/timeline": f"/time-machine?workload={past.pk}",
    }
    for address, part in expected.items():
        assert part in read_page(cast.alice, address), address


def test_steps_lead_to_moments_that_are_recorded(
    cast: Cast, record: Record, read_page: ReadPage
) -> None:
    for minute in range(4):
        record(minute)
    page = read_page(cast.alice, build_address(1))
    assert f'href="{build_address(0)}" aria-label="One minute earlier"' in page
    assert f'href="{build_address(2)}" aria-label="One minute later"' in page
    assert 'aria-label="One day earlier: nothing is recorded there"' in page
    assert 'href="/overview" id="back-to-now"' in page


def test_the_number_of_queries_is_constant(
    cast: Cast, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client()
    client.force_login(cast.bob)

    def count(minutes: float) -> int:
        monkeypatch.setattr(timezone, "now", lambda: build_moment(60))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get(build_address(minutes)).status_code == 200
        return len(queries)

    a_running_workload(cast.team_a, "first", 1, "node-0")
    record(0)
    client.get(build_address(0))
    few = count(0)
    for number in range(10):
        a_node(cast.cluster, f"node-{number}")
        a_running_workload(cast.team_a, f"run-{number}", 1, f"node-{number}")
        a_waiting_workload(cast.team_b, f"wait-{number}")
        record(number + 1)
    assert count(10.5) == few

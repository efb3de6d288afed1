"""The pages of quota trials: who gets them, what is typed there, and what comes out."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.capabilities import Capabilities
from projects.models import AccessRule, User
from projects.permissions import DEPARTMENT
from tests.cast import Cast
from tests.lively_trials import create_trial
from tests.workloads.table_rows import NOON
from tests.workloads.trial_rows import add_nodes, add_trial, change_quota
from workloads import trial_requests
from workloads.forms import trial_form
from workloads.models import QuotaTrial
from workloads.overview.trial_picture import build_trial_picture, compare_waits
from workloads.trials import TrialResult, decode_result
from workloads.trials.node_kinds import load_node_kinds
from workloads.trials.results import ProjectWaits, Waits


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def read_page(user: User, address: str, status: int = 200) -> str:
    answer: Any = client_of(user).get(address)
    assert answer.status_code == status, answer.status_code
    return " ".join(answer.content.decode().split())


def build_data(cast: Cast, **typed: str) -> dict[str, str]:
    """Return the form of team-a, as a browser sends it."""
    prefix = f"project-{cast.team_a.pk}"
    given = {"gpu_quota": "2", "gpu_limit": "", "over_quota_weight": "1"} | typed
    return {f"{prefix}-{name}": value for name, value in given.items()}


def post(user: User, cast: Cast, data: dict[str, str]) -> Any:
    return client_of(user).post(f"/clusters/{cast.cluster.pk}/quota-trial", data)


def make_administrator(cast: Cast) -> User:
    """Return who administers departments and projects of the whole cluster."""
    AccessRule.objects.create(user=cast.bob, cluster=cast.cluster, role=DEPARTMENT)
    return cast.bob


def test_what_is_typed_is_tried_and_applied_nowhere(cast: Cast) -> None:
    add_nodes(cast, 8)
    (kind,) = load_node_kinds(cast.cluster)
    data = build_data(cast, gpu_quota="8", over_quota_weight="") | {
        f"department-{cast.research.pk}-gpu_limit": "12",
        f"nodes-{kind.key}-count": "3",
    }
    answer = post(make_administrator(cast), cast, data)
    trial = QuotaTrial.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/quota-trials/{trial.pk}")
    assert [(each["name"], each["field"], each["after"]) for each in trial.changes] == [
        ("research", "gpu_limit", "12"),
        ("team-a", "gpu_quota", "8"),
        ("8 × H100", "count", "3"),
    ]
    cast.team_a.refresh_from_db()
    assert cast.team_a.gpu_quota == 2
    page = read_page(cast.bob, answer["Location"])
    assert 'hx-trigger="every 2s"' in page
    assert "2 → <strong>8</strong>" in page


def test_the_form_has_the_values_of_today_and_those_of_another_trial(cast: Cast) -> None:
    add_nodes(cast, 8, 8)
    trial = add_trial(cast, change_quota(cast.team_a, "6"))
    address = f"/clusters/{cast.cluster.pk}/quota-trial"
    page = read_page(cast.alice, address)
    assert f'name="project-{cast.team_a.pk}-gpu_quota" value="2"' in page
    assert 'aria-label="Nodes of 8 × H100"' in page
    page = read_page(cast.alice, f"{address}?from={trial.pk}")
    assert f'name="project-{cast.team_a.pk}-gpu_quota" value="6"' in page
    assert '<p class="qt-now">now 2</p>' in page
    assert read_page(cast.alice, f"{address}?from=nonsense")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({}, "Nothing is changed"),
        ({"gpu_quota": "-1"}, "It must be at least 0."),
        ({"gpu_quota": "many"}, "It must be a number, such as 2 or 0.5."),
        ({"gpu_quota": "5", "gpu_limit": "3"}, "It must be at least the quota, 5 GPUs."),
        ({"gpu_quota": "", "gpu_limit": "3"}, "so its quota cannot be unlimited"),
    ],
)
def test_what_cannot_be_tried_is_said_at_its_field(
    cast: Cast, typed: dict[str, str], words: str
) -> None:
    answer = post(cast.alice, cast, build_data(cast, **typed))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in page
    assert all(f'value="{value}"' in page for value in typed.values() if value)
    assert not QuotaTrial.objects.exists()


def test_a_row_that_was_not_sent_keeps_its_values(cast: Cast) -> None:
    data = build_data(cast, gpu_quota="3")
    post(cast.alice, cast, data)
    assert {each["name"] for each in QuotaTrial.objects.get().changes} == {"team-a"}


def test_more_nodes_of_a_kind_than_are_tried_may_stay(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_form, "MOST_OF_A_KIND", 1)
    add_nodes(cast, 8, 8, 8)
    (kind,) = load_node_kinds(cast.cluster)
    answer = post(cast.alice, cast, {f"nodes-{kind.key}-count": "4"})
    assert "It must be at most 3." in answer.content.decode()
    assert post(cast.alice, cast, {f"nodes-{kind.key}-count": "2"}).status_code == 302
    QuotaTrial.objects.all().delete()
    assert post(cast.alice, cast, build_data(cast, gpu_quota="3")).status_code == 302


def test_one_at_a_time_for_each_person(cast: Cast) -> None:
    open_one = add_trial(cast)
    answer = post(cast.alice, cast, build_data(cast, gpu_quota="3"))
    assert answer.status_code == 409
    assert "Another trial of yours is not done yet" in answer.content.decode()
    assert 'value="3"' in answer.content.decode()
    client_of(cast.alice).post(f"/quota-trials/{open_one.pk}/cancel")
    open_one.refresh_from_db()
    assert (open_one.status, open_one.trouble) == ("failed", "alice cancelled it.")
    assert "alice cancelled it." in read_page(cast.alice, f"/quota-trials/{open_one.pk}")
    assert post(cast.alice, cast, build_data(cast, gpu_quota="3")).status_code == 302


def test_only_so_many_wait(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_requests, "MOST_OPEN_TRIALS", 1)
    add_trial(cast, asked_by=cast.vera)
    answer = post(cast.alice, cast, build_data(cast, gpu_quota="3"))
    assert answer.status_code == 409
    assert "trials wait already" in answer.content.decode()


def test_the_oldest_make_room(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_requests, "MOST_TRIALS_OF_ONE", 3)
    now = timezone.now()
    moments = [now - timedelta(hours=hours) for hours in (3, 2, 1)]
    trials = [add_trial(cast, status="done", created_at=moment) for moment in moments]
    post(cast.alice, cast, build_data(cast, gpu_quota="3"))
    assert not QuotaTrial.objects.filter(pk=trials[0].pk).exists()
    assert QuotaTrial.objects.count() == 3


def test_without_kai_there_is_nothing_to_try(cast: Cast) -> None:
    cast.cluster.capabilities = Capabilities(served=frozenset({"v1/pods"})).to_json()
    cast.cluster.save(update_fields=["capabilities"])
    answer = post(cast.alice, cast, build_data(cast, gpu_quota="3"))
    assert answer.status_code == 409
    assert "has no KAI scheduler" in answer.content.decode()


def test_the_result_is_a_picture_and_a_table(cast: Cast) -> None:
    key = create_trial((cast.team_a, cast.team_b), cast.alice, timezone.now())
    page = read_page(cast.alice, f"/quota-trials/{key}")
    assert page.count('role="img"') == 8
    assert "2 h 18 min → 42 min" in page
    assert "What it does not know" in page
    assert "61 runs stopped before the start" in page
    assert f"quota-trial?from={key}" in page
    assert "hx-trigger" not in page.split('id="outcome"')[1].split(">")[0]
    part: Any = client_of(cast.alice).get(f"/quota-trials/{key}", headers={"HX-Request": "true"})
    assert part.content.decode().lstrip().startswith('<div id="outcome"')


def test_the_picture_orders_waits_by_ratio(cast: Cast) -> None:
    key = create_trial((cast.team_a, cast.team_b), cast.alice, timezone.now())
    picture = build_trial_picture(decode_result(QuotaTrial.objects.get(pk=key).result))
    assert [line.look for line in picture.lines[:3]] == ["shorter", "shorter", "longer"]
    for line in picture.lines:
        assert float(line.before.x[:-1]) <= float(line.before.high_x[:-1]) <= 100
    assert picture.ticks[0].text == "0"
    assert picture.ticks[-1].text == "7 d"
    assert [compare_waits(*pair) for pair in ((0, 20), (100, 60), (0, 100))] == [
        "same",
        "shorter",
        "longer",
    ]


@pytest.mark.parametrize(
    ("before", "after", "look", "change"),
    [
        (Waits(1, 1, 0, 1), Waits(1, 1, 0, 1), "same", "1 s, as before"),
        (Waits(1, 1, 0, 1), Waits(1, 1, 0, 0), "shorter", "1 s, as before; 1 more starts"),
        (Waits(1, 1, 0, 0), Waits(1, 1, 0, 2), "longer", "1 s, as before; 2 fewer start"),
        (Waits(1, 7200), Waits(1, 600), "shorter", "9 of 10: 2 h → 10 min"),
        (Waits(60, 60, 0, 5), Waits(600, 600, 0, 2), "longer", "1 min → 10 min; 3 more start"),
    ],
)
def test_the_picture_says_what_a_median_does_not_show(
    before: Waits, after: Waits, look: str, change: str
) -> None:
    row = ProjectWaits(1, "team-a", 40, before, before, after)
    result = TrialResult(NOON, NOON, True, row, [row], 0, False, 0, 0, 0, [])
    (line,) = build_trial_picture(result).lines
    assert (line.look, line.change) == (look, change)
    assert f"not started: {before.unstarted}, and {after.unstarted}" in line.words


def test_the_list_is_of_clusters_that_one_administers(cast: Cast) -> None:
    trial = add_trial(cast, change_quota(cast.team_a, "6"), status="done")
    assert f"/quota-trials/{trial.pk}" in read_page(cast.alice, "/quota-trials")
    read_page(cast.mallory, "/quota-trials", 403)
    read_page(cast.mallory, f"/quota-trials/{trial.pk}", 404)
    AccessRule.objects.create(user=cast.mallory, department=cast.research, role=DEPARTMENT)
    page = read_page(cast.mallory, "/quota-trials")
    assert str(trial.pk) not in page
    assert "There is no cluster whose quotas you may try" in page
    assert str(trial.pk) in read_page(make_administrator(cast), "/quota-trials")


def test_the_list_names_three_changes_and_loads_no_more(cast: Cast) -> None:
    fields = ("gpu_quota", "gpu_limit", "over_quota_weight")
    changes = [
        change_quota(team, "6", field) for team in (cast.team_a, cast.team_b) for field in fields
    ]
    add_trial(cast, *changes, status="done")
    with CaptureQueriesContext(connection) as queries:
        page = read_page(cast.alice, "/quota-trials")
    assert "GPU quota of team-a, GPU limit of team-a, over-quota weight of team-a, and 3" in page
    sql = [each["sql"] for each in queries if "first_changes" in each["sql"]]
    assert len(sql) == 1
    assert '"changes"' not in sql[0]
    assert '"result"' not in sql[0]


def test_the_pages_take_as_many_queries_for_many(cast: Cast) -> None:
    def count(address: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            read_page(cast.alice, address)
        return len(queries)

    addresses = ("/quota-trials", f"/clusters/{cast.cluster.pk}/quota-trial")
    add_trial(cast, change_quota(cast.team_a, "6"), status="done")
    before = [count(address) for address in addresses]
    for number in range(5):
        add_trial(cast, change_quota(cast.team_a, "6"), status="done")
        cast.cluster.nodes.create(name=f"n{number}", is_ready=True, gpus=number)
    assert [count(address) for address in addresses] == before


@pytest.mark.parametrize("address", ["/projects", "/departments"])
def test_administrators_find_the_trials(cast: Cast, address: str) -> None:
    assert 'href="/quota-trials"' in read_page(cast.alice, address)
    assert 'href="/quota-trials"' not in read_page(cast.bob, address)

"""What would help a workload or a draft: the changes, the question out of rows, the pages."""

import json
import re
import time
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from clusters.models import Cluster, Node
from environments.credentials import secret_name
from environments.models import Credential, DataSource
from projects.models import Project, User
from scheduling import GPU, Gang
from simulation import Outlook
from tests.cast import Cast, a_spec
from tests.workloads.waiting_rows import add_ended_run, add_node, add_workload
from workloads.alternatives import (
    AnswerBoard,
    CannotAsk,
    Question,
    ask_for_workload,
    play_question,
    questions,
)
from workloads.alternatives.answers import AlternativeView
from workloads.alternatives.asking import AT_ONCE, SECONDS
from workloads.alternatives.namespace_objects import has_named_objects
from workloads.alternatives.questions import BASE, MOST_ENDED
from workloads.alternatives.spec_changes import find_spec_change, list_spec_changes
from workloads.manifests.placement import NO_POOLS, NodePools
from workloads.models import Draft, Workload
from workloads.specs import (
    Claim,
    Compute,
    ConfigMap,
    Configuration,
    ElasticSettings,
    Environment,
    Framework,
    Git,
    Gpus,
    Preemptibility,
    Priority,
    Secret,
    Spec,
    Variable,
    VariableSource,
    decode_spec,
    encode_spec,
)

pytestmark = pytest.mark.django_db


def with_gpus(spec: Spec, gpus: Gpus) -> Spec:
    return replace(spec, setup=replace(spec.setup, compute=Compute(gpus=gpus)))


def list_titles(spec: Spec, pools: NodePools = NO_POOLS) -> list[str]:
    return [each.title for each in list_spec_changes(spec, pools, has_kai=True)]


def test_what_a_submission_can_have_less_of(cast: Cast) -> None:
    spec = with_gpus(a_spec(cast.team_a, "wide", workers=8), Gpus(4))
    spec = replace(
        spec,
        lifecycle=replace(spec.lifecycle, preemptibility=Preemptibility.NON_PREEMPTIBLE),
    )
    changes = {each.key: each.spec for each in list_spec_changes(spec, NO_POOLS, has_kai=True)}
    assert [
        changes[key].workers for key in ("workers-most", "workers-half", "workers-quarter")
    ] == [*(6, 4, 2)]
    assert changes["gpus-half"].setup.compute.gpus.devices == 2
    assert changes["gpus-one"].setup.compute.gpus.devices == 1
    assert changes["preemptible"].is_preemptible
    assert changes["priority"].lifecycle.priority is Priority.MEDIUM_LOW
    assert not changes["priority"].is_preemptible
    assert {"preemptible", "priority"}.isdisjoint(
        each.key for each in list_spec_changes(spec, NO_POOLS, has_kai=False)
    )


def test_an_elastic_one_gets_a_lower_minimum_and_one_gpu_a_part(cast: Cast) -> None:
    spec = a_spec(cast.team_a, "elastic", workers=7)
    spec = with_gpus(replace(spec, elastic=ElasticSettings(8, 16)), Gpus(1))
    changes = {each.key: each.spec for each in list_spec_changes(spec, NO_POOLS, has_kai=True)}
    assert [changes[key].elastic for key in ("minimum-half", "minimum-least")] == [
        ElasticSettings(4, 16),
        ElasticSettings(2, 16),
    ]
    assert "workers-half" not in changes
    assert changes["portion-half"].setup.compute.gpus.portion == Decimal("0.50")
    least = replace(spec, elastic=ElasticSettings(2, 16))
    assert not any("at least" in title for title in list_titles(least))
    alone = replace(least, configuration=Configuration.WORKERS_ONLY)
    assert "With 1 pod at least instead of 2" in list_titles(alone)


def test_other_pools_are_those_that_the_project_may_use(cast: Cast) -> None:
    spec = a_spec(cast.team_a, "pooled")
    spec = replace(spec, setup=replace(spec.setup, node_pools=("a100",)))
    labels = {name: ("pool", name) for name in ("a100", "h100", "t4")}
    assert "In node pool t4" in list_titles(spec, NodePools(labels))
    limited = NodePools(labels, default_names=("a100", "h100"))
    assert "In node pool h100" in list_titles(spec, limited)
    assert "In node pool t4" not in list_titles(spec, limited)
    found = find_spec_change(spec, limited, "pools-any")
    assert found is not None
    assert found.spec.setup.node_pools == ()
    assert find_spec_change(spec, limited, "pool-t4") is None


def test_what_takes_ports_of_nodes_can_leave_the_network_of_its_hosts(cast: Cast) -> None:
    spec = a_spec(cast.team_a, "wired", workers=1)
    assert find_spec_change(spec, NO_POOLS, "own-network") is None
    security = replace(spec.setup.security, host_network=True)
    wired = replace(spec, setup=replace(spec.setup, security=security))
    change = find_spec_change(wired, NO_POOLS, "own-network")
    assert change is not None
    assert change.spec == spec
    without_ports = replace(wired, framework=Framework.MPI)
    assert find_spec_change(without_ports, NO_POOLS, "own-network") is None


def test_a_sort_with_many_changes_leaves_room_for_the_others(cast: Cast) -> None:
    spec = with_gpus(a_spec(cast.team_a, "wide", workers=8), Gpus(8))
    spec = replace(
        spec,
        setup=replace(spec.setup, node_pools=("a100",)),
        lifecycle=replace(spec.lifecycle, preemptibility=Preemptibility.NON_PREEMPTIBLE),
    )
    pools = NodePools({name: ("pool", name) for name in ("a100", "b", "c", "d")})
    keys = [each.key for each in list_spec_changes(spec, pools, has_kai=True)]
    assert keys[:5] == ["preemptible", "priority", "pools-any", "workers-most", "gpus-half"]
    assert keys[5:8] == ["pool-b", "workers-half", "gpus-one"]
    assert {"pool-c", "pool-d", "workers-quarter"} == set(keys[8:])


@pytest.fixture
def waiting(cast: Cast) -> Workload:
    """Two GPUs, both taken: one by what the reader sees, one by what they do not."""
    Cluster.objects.filter(pk=cast.cluster.pk).update(
        last_seen_at=timezone.now(), unreachable_since=None
    )
    add_node(cast, gpus=2)
    add_workload(cast.team_a, "mine", node="node-1")
    add_workload(cast.team_b, "secret", node="node-1")
    for number in range(3):
        add_ended_run(cast.team_a, f"short{number}", 1.0)
    return add_waiting(cast)


def add_waiting(cast: Cast) -> Workload:
    spec = with_gpus(a_spec(cast.team_a, "waits", workers=1), Gpus(1))
    workload = add_workload(cast.team_a, "waits", spec=encode_spec(spec), max_pods=None)
    return load(workload)


def load(workload: Workload) -> Workload:
    loaded: Workload = Workload.objects.select_related("project__cluster").get(pk=workload.pk)
    return loaded


def play(workload: Workload, user: User) -> AnswerBoard:
    """Return the board once all is played."""
    *_, board = play_question(lambda: ask_for_workload(workload, user), user.pk)
    assert board.is_over
    return board


def test_it_names_what_the_reader_sees_and_no_other(cast: Cast, waiting: Workload) -> None:
    titles = {each.title for each in play(waiting, cast.bob).list_best()}
    assert "If mine (team-a) ended" in titles
    assert "If work of another project ended" in titles
    assert not any("secret" in title for title in titles)
    every = {each.title for each in play(waiting, cast.alice).list_best()}
    assert "If secret (team-b) ended" in every


def test_a_question_is_bounded(cast: Cast, waiting: Workload) -> None:
    for number in range(10):
        add_workload(cast.team_a, f"more{number}", node="node-1")
    question = ask_for_workload(waiting, cast.alice)
    ended = [each for each in question.places[0].alternatives if each.ended]
    assert len(ended) == MOST_ENDED
    assert question.places[0].alternatives[0].key == BASE


def test_what_is_refused_takes_no_place_of_another(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, waiting: Workload
) -> None:
    spec = with_gpus(a_spec(cast.team_a, "wide", workers=8), Gpus(4))
    wide = load(add_workload(cast.team_a, "wide", spec=encode_spec(spec), max_pods=None))
    monkeypatch.setattr(questions, "MOST_CHANGES", 2)
    before = {key for key, each in ask_for_workload(wide, cast.bob).offers.items() if each.change}
    assert len(before) == 2

    builder = questions._Builder
    judge = builder.judge

    def judge_smaller(self: questions._Builder, spec: Spec, key: str) -> Gang | None:
        return judge(self, spec, key) if spec.setup.compute.gpus.devices < 4 else None

    monkeypatch.setattr(builder, "judge", judge_smaller)
    after = {key for key, each in ask_for_workload(wide, cast.bob).offers.items() if each.change}
    assert after == {"gpus-half", "gpus-one"}


def add_project_elsewhere(cast: Cast) -> Project:
    """Create a project on another cluster that answers and has a free node."""
    cluster = Cluster.objects.create(
        name="other", server="https://127.0.0.1:2", last_seen_at=timezone.now()
    )
    node = Node.objects.get(cluster=cast.cluster)
    node.pk, node.cluster = None, cluster
    node.save(force_insert=True)
    return Project.objects.create(
        name="team-x",
        department=cast.research,
        cluster=cluster,
        namespace="muster-team-x",
        queue="team-x",
        gpu_quota=Decimal(2),
    )


@pytest.mark.parametrize(
    "setup",
    [
        {"volumes": (Claim(path="/data", claim="datasets"),)},
        {"volumes": (ConfigMap(path="/conf", name="settings"),)},
        {"volumes": (Secret(path="/keys", name="keys"),)},
        {"volumes": (Git(path="/code", repository="https://a.example/b", secret="deploy"),)},
        {"environment": Environment("image", pull_secrets=("registry",))},
        {
            "environment": Environment(
                "image", variables=(Variable("A", "", VariableSource.CONFIG_MAP, "settings", "a"),)
            )
        },
    ],
)
def test_what_a_namespace_elsewhere_may_not_have_is_not_offered(
    cast: Cast, waiting: Workload, setup: dict[str, Any]
) -> None:
    project = add_project_elsewhere(cast)
    spec = decode_spec(waiting.spec)
    assert has_named_objects(spec, project)
    assert not has_named_objects(replace(spec, setup=replace(spec.setup, **setup)), project)


def test_a_credential_for_use_there_gives_its_secret(cast: Cast) -> None:
    credential = Credential.objects.create(name="registry", kind="registry", project=cast.team_b)
    environment = Environment("image", pull_secrets=(secret_name(credential),))
    spec = a_spec(cast.team_a, "pulls")
    spec = replace(spec, setup=replace(spec.setup, environment=environment))
    assert has_named_objects(spec, cast.team_b)
    assert not has_named_objects(spec, cast.team_a)


def test_another_cluster_is_offered_where_data_sources_give_the_claim(
    cast: Cast, waiting: Workload
) -> None:
    project = add_project_elsewhere(cast)
    offer = f"project-{project.pk}"
    assert offer in ask_for_workload(waiting, cast.alice).offers
    spec = decode_spec(waiting.spec)
    volumes = (Claim(path="/data", claim="datasets"),)
    spec = replace(spec, setup=replace(spec.setup, volumes=volumes))
    Workload.objects.filter(pk=waiting.pk).update(spec=encode_spec(spec))
    assert offer not in ask_for_workload(load(waiting), cast.alice).offers
    DataSource.objects.create(
        name="data", kind="pvc", origin={"claim": "datasets"}, path="/data", project=project
    )
    assert offer in ask_for_workload(load(waiting), cast.alice).offers


def test_what_is_refused_is_not_offered(
    cast: Cast, waiting: Workload, django_assert_max_num_queries: object
) -> None:
    offers = ask_for_workload(waiting, cast.bob).offers
    assert "portion-half" not in offers or offers["portion-half"].project == cast.team_a.pk
    Cluster.objects.filter(pk=cast.cluster.pk).update(last_seen_at=None)
    with pytest.raises(CannotAsk, match="does not answer"):
        ask_for_workload(load(waiting), cast.bob)


def test_few_ask_at_once_and_the_newer_question_of_a_person_counts(
    cast: Cast, waiting: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build() -> Question:
        return ask_for_workload(waiting, cast.bob)

    def build_long() -> Question:
        # More than a pipe holds: its simulator waits for its reader.
        question = build()
        place = question.places[0]
        alternatives = [replace(each, key=each.key * 5_000) for each in place.alternatives]
        return replace(question, places=[replace(place, alternatives=alternatives)])

    first = [play_question(build_long, user_id) for user_id in range(1, AT_ONCE + 1)]
    try:
        for boards in first:
            next(boards)
        with pytest.raises(CannotAsk, match="Others are asking"):
            next(play_question(build, 99))
        assert list(play_question(build, 1))[-1].is_over
        with pytest.raises(CannotAsk, match="A newer question of yours"):
            list(first[0])
        later = time.monotonic() + SECONDS
        monkeypatch.setattr("workloads.alternatives.asking.time.monotonic", lambda: later)
        with pytest.raises(CannotAsk, match="Others wait to ask"):
            next(play_question(build, 2))
        monkeypatch.undo()
    finally:
        for boards in first:
            boards.close()  # type: ignore[attr-defined]
    assert list(play_question(build, 99))[-1].is_over


def test_a_simulator_that_fails_is_no_answer(cast: Cast, waiting: Workload) -> None:
    question = ask_for_workload(waiting, cast.bob)
    broken = replace(question, places=[replace(question.places[0], lengths=None)])  # type: ignore[arg-type]
    with pytest.raises(CannotAsk, match="log says why"):
        list(play_question(lambda: broken, 1))


def test_what_never_helps_is_not_shown(cast: Cast, waiting: Workload) -> None:
    keys = {each.key for each in play(waiting, cast.bob).list_best()}
    assert keys
    assert "portion-half" not in keys


def test_a_department_without_quota_rises_with_its_projects(cast: Cast, waiting: Workload) -> None:
    Project.objects.filter(pk=cast.team_a.pk).update(gpu_quota=1, gpu_limit=1)
    question = ask_for_workload(load(waiting), cast.bob)
    raised = next(each for each in question.places[0].alternatives if each.key == "quota")
    assert {queue.name for queue in raised.queues} >= {cast.team_a.queue}
    own = next(queue for queue in raised.queues if queue.name == cast.team_a.queue)
    assert (own.bounds[GPU].quota, own.bounds[GPU].limit) == (2, 2)


def test_other_quotas_help_nobody_without_kai(cast: Cast, waiting: Workload) -> None:
    Cluster.objects.filter(pk=cast.cluster.pk).update(capabilities={"served": []})
    question = ask_for_workload(load(waiting), cast.bob)
    assert "quota" not in {each.key for each in question.places[0].alternatives}


def test_who_may_not_launch_there_gets_no_copy(cast: Cast, waiting: Workload) -> None:
    offers = ask_for_workload(waiting, cast.vera).offers
    assert {offer.project for offer in offers.values() if offer.change} <= {None}


def read_events(client: Client, address: str) -> list[str]:
    answer = client.get(address, headers={"Accept": "text/event-stream"})
    body = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert body.rstrip().endswith("data: {}")
    return [json.loads(each) for each in re.findall(r"event: alternatives\ndata: (.*)", body)]


def test_the_page_streams_what_helps_with_a_button_for_a_copy(
    cast: Cast, waiting: Workload, client: Client
) -> None:
    client.force_login(cast.bob)
    address = f"/workloads/{waiting.pk}/alternatives"
    assert f'data-alternatives="{address}"' in client.get(address).content.decode()
    last = read_events(client, address)[-1]
    assert "If mine (team-a) ended" in last
    assert "secret" not in last
    assert "what others submit meanwhile is not in it" in " ".join(last.split())
    whole = client.get(f"{address}?played=1").content.decode()
    assert "If mine (team-a) ended" in whole
    client.force_login(cast.mallory)
    assert client.get(address).status_code == 404
    Workload.objects.filter(pk=waiting.pk).update(status="Running")
    client.force_login(cast.bob)
    nothing = read_events(client, address)[-1]
    assert "It does not wait any more." in nothing
    assert f'href="/workloads/{waiting.pk}"' in nothing
    assert f'href="{address}?played=1"' in nothing
    draft = Draft.objects.create(user=cast.bob)
    address = f"/workloads/new/{draft.pk}/alternatives"
    assert f'href="{address}"' in read_events(client, address)[-1]


def test_a_copy_is_filled_with_the_change(cast: Cast, waiting: Workload, client: Client) -> None:
    client.force_login(cast.bob)
    spec = with_gpus(a_spec(cast.team_a, "wide", workers=4), Gpus(2))
    wide = add_workload(cast.team_a, "wide", spec=encode_spec(spec))
    client.get(f"/workloads/new?copy={wide.pk}&change=workers-half&project={cast.team_a.pk}")
    draft = Draft.objects.latest("updated_at")
    assert draft.data["setup"]["workers"] == ["2"]
    client.get(f"/workloads/new?draft={draft.pk}&change=gpus-half")
    changed = Draft.objects.latest("updated_at")
    assert changed.pk != draft.pk
    assert changed.data["setup"]["gpu_devices"] == ["1"]
    client.get(f"/workloads/new?copy={wide.pk}&change=no-such")
    assert Draft.objects.latest("updated_at").data["setup"]["workers"] == ["4"]
    client.force_login(cast.mallory)
    assert client.get(f"/workloads/new?draft={draft.pk}").status_code == 404


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (60, "1 min"), (3442, "57 min"), (3720, "1 h 2 min"), (86430, "1 d")],
)
def test_how_much_sooner_is_in_whole_minutes(seconds: int | None, words: str) -> None:
    sooner_by = None if seconds is None else timedelta(seconds=seconds)
    view = AlternativeView("smaller", "With 4 GPUs", Outlook.STARTS, 20, sooner_by=sooner_by)
    assert view.gain == words

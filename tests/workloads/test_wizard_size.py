"""The wizard at its bounds.

The first step for a user of 500 projects on 50 clusters: what it sends and loads is bounded, and
any project is chosen by its name. The second with lists as long as they may be.
"""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from clusters.capabilities import Capabilities
from clusters.models import Cluster
from console.typed_forms import FormRows, build_row_values
from projects.models import Project
from tests.cast import Cast
from tests.workloads.wizarding import Walk
from workloads.forms.pod_form import build_setup_values
from workloads.forms.row_forms import VariableRow
from workloads.forms.wizard_draft import WizardDraft
from workloads.specs import EmptyDir, Environment, Pair, Setup, Variable
from workloads.specs.problem_reports import MAX_LIST_ITEMS
from workloads.specs.volume_problems import MAX_VOLUMES

PROJECTS, CLUSTERS = 500, 50
MOST_BYTES = 100 << 10


def add_projects(cast: Cast, projects: int, clusters: int, prefix: str = "crowd") -> None:
    capabilities = Capabilities(served=frozenset(("kubeflow.org/v1/pytorchjobs",))).to_json()
    made = Cluster.objects.bulk_create(
        [
            Cluster(name=f"{prefix}-{n}", server="https://127.0.0.1:1", capabilities=capabilities)
            for n in range(clusters)
        ]
    )
    Project.objects.bulk_create(
        [
            Project(
                name=f"{prefix}-{n:04}",
                department=cast.research,
                cluster=made[n % clusters],
                namespace=f"{prefix}-{n}",
                queue=f"{prefix}-{n}",
            )
            for n in range(projects)
        ],
        batch_size=500,
    )


@pytest.fixture
def last(cast: Cast) -> Project:
    add_projects(cast, PROJECTS, CLUSTERS)
    return Project.objects.get(name=f"crowd-{PROJECTS - 1:04}")


def test_the_step_sends_little_and_asks_as_often_as_for_few(cast: Cast, last: Project) -> None:
    walk = Walk(cast, "alice")
    with CaptureQueriesContext(connection) as few_queries:
        walk.see("start")
    assert len(walk.text.encode()) < MOST_BYTES
    assert walk.text.count("<option") <= CLUSTERS + 1 + 100
    # Clusters that say the same of a framework say it once.
    assert walk.text.count("data-why-on") <= 10
    add_projects(cast, 100, 10, "more")
    with CaptureQueriesContext(connection) as more:
        walk.see("start")
    assert len(more) == len(few_queries)
    clusters = [each["sql"] for each in more if "workloads" not in each["sql"]]
    assert not [each for each in clusters if "JOIN" in each and '"kubeconfig"' in each]


def test_any_of_many_projects_is_typed(cast: Cast, last: Project) -> None:
    walk = Walk(cast, "alice").send_start(project=last.name, cluster=str(last.cluster_id))
    assert walk.step == "setup", walk.text
    walk.see("start")
    assert re.search(rf'name="project" value="{last.name}"', walk.text)
    # What the control shows is sent back, and is the same project.
    assert walk.send(go="next").step == "setup"
    assert walk.draft.data["start"]["project"] == [last.name]


def test_a_name_that_no_project_has_stays_as_it_was_typed(cast: Cast, last: Project) -> None:
    walk = Walk(cast, "alice").send_start(project="nothing like it")
    assert walk.page.status_code == 422
    assert 'value="nothing like it"' in walk.text
    assert "You may launch in no project that is called nothing like it." in walk.text
    assert walk.draft.data["start"]["project"] == ["nothing like it"]
    assert 'value="nothing like it"' in walk.see("start").text


def test_a_typed_project_of_another_cluster_is_said(cast: Cast, last: Project) -> None:
    walk = Walk(cast, "alice").send_start(project=last.name, cluster=str(cast.cluster.pk))
    assert walk.page.status_code == 422
    assert f"{last.name} is on cluster {last.cluster.name}." in walk.text


def test_nobody_launches_in_a_project_by_typing_its_name(cast: Cast, last: Project) -> None:
    """Bob has a role in one project only, and is offered that one."""
    walk = Walk(cast).send_start(project=last.name)
    assert walk.page.status_code == 422
    assert "where you may not launch" in walk.text


def test_few_projects_are_options_still(cast: Cast) -> None:
    add_projects(cast, 20, 2)
    assert re.search(r'<select name="project"', Walk(cast, "alice").text)


def test_lists_as_long_as_they_may_be_are_sent(cast: Cast) -> None:
    variables = tuple(Variable(f"VARIABLE_{n}", str(n)) for n in range(MAX_LIST_ITEMS))
    volumes = tuple(EmptyDir(path=f"/volume-{n}") for n in range(MAX_VOLUMES))
    labels = tuple(Pair(f"label-{n}", str(n)) for n in range(MAX_LIST_ITEMS))
    environment = Environment("team/train:1", variables=variables)
    setup = Setup(environment, volumes=volumes, labels=labels)
    walk = Walk(cast).send_start()
    typed = build_setup_values(setup)
    answer = walk.client.post(f"/workloads/new/{walk.draft.pk}/setup/typed", typed)
    assert answer.status_code == 200, answer.content.decode()
    assert WizardDraft(walk.draft.data, cast.bob).build_spec().setup == setup


def test_a_row_of_a_form_has_no_values_of_other_rows() -> None:
    typed = build_row_values("variables", [{"name": f"V{n}", "value": ""} for n in range(20)])
    rows = FormRows("variables", VariableRow, typed)
    assert [list(row.data) for row in rows.all] == [
        [f"variables-{n}-name", f"variables-{n}-value"] for n in range(20)
    ]

"""The built-in templates: made once, and a workload of each with nothing but a name typed."""

import pytest

from environments import builtin_assets
from environments.models import Environment, Link, Template
from tests.api.calling import Caller, a_body
from tests.cast import Cast
from tests.workloads.templated import start_from_template, submit_and_decode
from workloads import builtin_templates
from workloads.models import Workload
from workloads.specs import Compute, DataDelivery, ElasticSettings, Gpus, Spec, decode_spec

pytestmark = pytest.mark.django_db
NAMES = pytest.mark.parametrize("name", builtin_templates.TEMPLATES)


def ensure_all() -> int:
    builtin_assets.ensure_builtin_assets()
    return builtin_templates.ensure_builtin_templates()


def test_they_are_made_once_and_stay_as_they_are(db: None) -> None:
    assert ensure_all() == len(builtin_templates.TEMPLATES)
    Template.objects.filter(name="elastic-training").update(description="of mine")
    assert ensure_all() == 0
    assert Template.objects.get(name="elastic-training").description == "of mine"
    assert Link.objects.count() == 2 * len(builtin_templates.TEMPLATES)


def test_one_whose_environment_is_somebody_elses_is_left_out(db: None) -> None:
    Environment.objects.create(name="elastic", image="team/other:1")
    assert ensure_all() == len(builtin_templates.TEMPLATES) - 1


def assert_is_of_template(spec: Spec, name: str) -> None:
    """Assert that the pods are as many as the template says, and what helps them."""
    if name == "slow-data":
        assert (spec.workers, spec.has_master, spec.elastic) == (1, True, None)
        assert spec.data_delivery == DataDelivery(
            4, 5120, Compute(cpu_request="0.1", memory_request="100M")
        )
    else:
        assert (spec.workers, spec.has_master, spec.elastic) == (3, True, ElasticSettings(2, 4))
        assert spec.data_delivery is None


@NAMES
def test_a_name_is_all_that_is_typed(cast: Cast, name: str) -> None:
    ensure_all()
    template = Template.objects.get(name=name)
    walk = start_from_template(cast, template, project=str(cast.team_a.pk))
    spec = submit_and_decode(walk)
    assert_is_of_template(spec, name)
    assert spec.is_preemptible
    assert spec.setup.compute == Compute(Gpus(1), cpu_request="0.1", memory_request="100M")
    assert spec.setup.volumes == (builtin_templates.CHECKPOINTS,)
    kind = builtin_templates.TEMPLATES[name]
    assert spec.setup.environment.args == kind.args
    assert spec.setup.environment.image.startswith("muster/")


@NAMES
def test_the_rest_api_submits_from_it(cast: Cast, name: str) -> None:
    ensure_all()
    template = Template.objects.get(name=name)
    body = a_body(cast) | {"templateId": str(template.pk), "spec": {}}
    Caller(cast.bob)("POST", "/workloads/distributed", body, 202)
    spec = decode_spec(Workload.objects.get().spec)
    assert_is_of_template(spec, name)
    assert spec.setup.volumes == (builtin_templates.CHECKPOINTS,)

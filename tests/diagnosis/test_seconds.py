"""How soon a sentence is right after its cause is in a real API, which a follower watches."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from clusters import connections as clients
from clusters import project_provisioning
from clusters.models import Node
from tests.cast import Cast, make_cast
from tests.cluster import LocalKube
from tests.conformance.api import Api
from tests.diagnosis.api_injection import ApiInjection
from tests.diagnosis.causes import FAILING, WAITING
from tests.diagnosis.injected import InjectedCause
from tests.diagnosis.injecting import create_cause, write_logs
from tests.diagnosis.measuring import (
    Measurement,
    describe_measurements,
    find_percentile,
    measure_sentence,
    wait_for_rows,
)
from tests.workloads.test_follow import following
from workloads.models import Workload

pytestmark = pytest.mark.django_db(transaction=True)
ENOUGH = 0.95


def measure_cause(cast: Cast, api: Api, cause: InjectedCause, name: str) -> Measurement:
    """Inject a cause into the API, and measure until its sentence is right."""
    kube = create_cause(cast, cause, name)
    observations = cause.build(kube)
    injection = ApiInjection(
        api, cast.team_a.namespace, observations, is_failing=cause.cause is not None
    )
    injection.create_objects()
    pods = sum(each.kind == "pod" for each in observations)
    rows = Workload.objects.filter(pk=kube.workload.pk)
    wait_for_rows(
        lambda: rows.get().job_uid != "" and rows.get().pods.count() == pods,
        lambda: (cause.name, list(rows.values()), list(rows.get().pods.values())),
    )
    write_logs(cause, kube.workload)
    injection.inject_cause()
    try:
        return measure_sentence(cast, cause, kube.workload, time.monotonic())
    finally:
        # What waits is counted in others' places.
        Workload.objects.filter(name__startswith=name).delete()
        Node.objects.all().delete()
        type(cast.team_a).objects.filter(pk=cast.team_a.pk).update(gpu_limit=None)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("title", "causes"), [("waiting", WAITING), ("failing", FAILING)])
def test_a_sentence_comes_soon_after_its_cause(
    tmp_path: Path, title: str, causes: Sequence[InjectedCause]
) -> None:
    with LocalKube(tmp_path / "kube", "--gpus", "4") as kube:
        cast = make_cast(kube.kubeconfig.read_text())
        project_provisioning.provision_project(cast.team_a)
        api = Api.from_kubeconfig(kube.kubeconfig)
        try:
            with following():
                found = [
                    measure_cause(cast, api, cause, f"w{number}-train")
                    for number, cause in enumerate(causes)
                ]
        finally:
            api.close()
            clients.close_all()
    table = describe_measurements(title, found)
    print(f"\n{table}")
    assert sum(each.seconds is not None for each in found) >= ENOUGH * len(found), table
    assert find_percentile(found) < 2, table

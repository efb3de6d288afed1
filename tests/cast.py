"""Who and what the console's tests are about: Alice runs it, Bob works in team-a, Vera looks on
there, Mallory is of team-b.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from django.contrib.auth.hashers import make_password

from clusters.models import Cluster
from projects.models import AccessRule, Department, Project, User
from projects.permissions import L1, PROJECT, VIEWER
from workloads.specs import Architecture, Compute, Environment, Framework, Gpus, Setup, Spec

NOWHERE = """apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: none}}]
"""
"""A kubeconfig of a cluster that does not answer."""
PASSWORD = "correct horse battery"


@cache
def _hash_password() -> str:
    """Hashed once a test process: a good hash is slow on purpose."""
    return make_password(PASSWORD)


@dataclass
class Cast:
    """Rows that most tests start from; nothing of it is in a cluster."""

    cluster: Cluster
    research: Department
    team_a: Project
    team_b: Project
    alice: User
    bob: User
    vera: User
    mallory: User

    @property
    def people(self) -> Iterator[User]:
        yield from (self.alice, self.bob, self.vera, self.mallory)


def make_cast(kubeconfig: str = NOWHERE) -> Cast:
    """The cast, in the database. Everybody's password is PASSWORD."""
    cluster = Cluster.objects.create(
        name="here", server="https://127.0.0.1:1", kubeconfig=kubeconfig, is_local=True
    )
    research = Department.objects.create(name="research")
    teams = [
        Project.objects.create(
            name=name,
            department=research,
            cluster=cluster,
            namespace=f"muster-{name}",
            queue=name,
            gpu_quota=Decimal(2),
        )
        for name in ("team-a", "team-b")
    ]
    alice = User.objects.create(
        username="alice", password=_hash_password(), is_staff=True, is_superuser=True
    )
    bob, vera, mallory = (
        User.objects.create(username=name, password=_hash_password())
        for name in ("bob", "vera", "mallory")
    )
    for user, team, role in (
        (bob, teams[0], L1),
        (vera, teams[0], VIEWER),
        (mallory, teams[1], PROJECT),
    ):
        AccessRule.objects.create(user=user, project=team, role=role)
    return Cast(cluster, research, teams[0], teams[1], alice, bob, vera, mallory)


def a_spec(project: Project, name: str = "train1", **changes: object) -> Spec:
    """A distributed PyTorch workload of a master and two workers, a tenth of a GPU each."""
    setup = Setup(
        environment=Environment(image="muster/allreduce"),
        compute=Compute(
            gpus=Gpus(devices=1, portion=Decimal("0.1")), cpu_request="0.1", memory_request="100M"
        ),
    )
    fields: dict[str, object] = {
        "name": name,
        "project": project.name,
        "namespace": project.namespace,
        "queue": project.queue,
        "setup": setup,
        "architecture": Architecture.DISTRIBUTED,
        "framework": Framework.PYTORCH,
        "workers": 2,
    }
    return Spec(**(fields | changes))  # type: ignore[arg-type]

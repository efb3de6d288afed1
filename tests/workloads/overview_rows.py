"""What the overview is made of: nodes, samples; and who looks at it."""

import re
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from clusters.models import Node
from projects.models import Project, User
from tests.cast import Cast
from workloads.models import Sample
from workloads.tasks.sampling import round_to_sample_time

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def html(user: User, address: str = "/overview") -> str:
    answer = client_of(user).get(address)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def tile(page: str, name: str) -> str:
    """The words of one tile."""
    tiles = re.findall(r'<li class="ch-tile[^>]*>(.*?)</li>', page, re.S)
    found = next(each for each in tiles if name in each)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found)).strip()


def a_node(cast: Cast, name: str, **fields: Any) -> None:
    Node.objects.create(cluster=cast.cluster, name=name, **({"is_ready": True, "gpus": 8} | fields))


def add_sample(project: Project, minutes: float = 0, **fields: Any) -> None:
    Sample.objects.create(
        project=project,
        at=round_to_sample_time(timezone.now() - timedelta(minutes=minutes), 60),
        **fields,
    )

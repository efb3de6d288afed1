"""What became of the GPU hours of two months, as the ledger of a busy console has them."""

import random
import uuid
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from clusters.models import NodePool
from projects.models import Project
from workloads.ledger import GPU_HOUR
from workloads.models import LedgerBookmark, LedgerEntry, Workload

SHARES = {
    "useful": 0.66,
    "waiting": 0.07,
    "idle": 0.11,
    "lost": 0.02,
    "starting": 0.03,
    "unknown": 0.11,
    "queued": 0.2,
    "preparing": 0.04,
}
WORKLOADS = (
    ("llama-finetune", "alice", 8),
    ("vit-base", "bob", 8),
    ("dlrm-nightly", "carla", 4),
    ("sweep-lr", "bob", 2),
    ("whisper-eval", "vera", 1),
    ("resnet-baseline", "alice", 4),
)


def create_ledger(projects: Sequence[Project], pool: NodePool, now: datetime) -> None:
    """Create entries of each workload and day of this month and the one before."""
    drawn = random.Random(11)
    first = (now.date().replace(day=1) - timedelta(days=1)).replace(day=1)
    days = [first + timedelta(days=number) for number in range((now.date() - first).days + 1)]
    entries = []
    for number, project in enumerate(projects):
        for name, user, gpus in WORKLOADS[number::2] + WORKLOADS[:1]:
            known = Workload.objects.filter(project=project, name=name).first()
            key = known.pk if known else uuid.UUID(int=drawn.getrandbits(128))
            began, length = drawn.randrange(len(days) // 2), drawn.randrange(12, 40)
            for day in days[began : began + length]:
                if drawn.random() < 0.85:
                    entry = _draw_entry(drawn, day, gpus)
                    entry.project, entry.user, entry.workload = project, user, key
                    entry.workload_name, entry.pool, entry.pool_name = name, pool.pk, pool.name
                    entry.price, entry.currency, entry.watts = Decimal("2.4"), "EUR", 700
                    entries.append(entry)
    LedgerEntry.objects.bulk_create(entries)
    LedgerBookmark.objects.create(
        cluster_id=pool.cluster_id, until=now - timedelta(minutes=4), looked_at=now
    )


def _draw_entry(drawn: random.Random, day: date, gpus: int) -> LedgerEntry:
    hours = gpus * drawn.uniform(6, 24)
    weights = {name: share * drawn.uniform(0.3, 1.7) for name, share in SHARES.items()}
    whole = sum(weights[name] for name in list(SHARES)[:6])
    amounts = {name: round(GPU_HOUR * hours * weight / whole) for name, weight in weights.items()}
    return LedgerEntry(day=day, **amounts)

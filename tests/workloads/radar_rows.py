"""Findings of the radar, written as the journal writes them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from workloads import journal
from workloads.models import RadarFinding, RadarWatch, Workload
from workloads.radar import Certainty, Finding, Kind, Proof

HOSTILE = "<script>alert(1)</script>\u202eright to left \"><img src=x onerror=alert(2)>'"


def build_finding(kind: Kind = Kind.HANG, **fields: Any) -> Finding:
    """Build a finding that began 6 minutes ago."""
    given: dict[str, Any] = {
        "certainty": Certainty.LIKELY,
        "sentence": "Rank 2 has said nothing for 6 min, while the 2 others wait at step 410.",
        "help": "Stop it to free what it holds.",
        "since": (timezone.now() - timedelta(minutes=6)).timestamp(),
        "rank": 2,
        "proofs": (
            Proof("Rank 2 printed last: step 410"),
            Proof("Rank 2: 0.01 cores in use.", "cpu"),
        ),
    }
    return Finding(kind, **(given | fields))


def record_findings(
    workload: Workload,
    *begun: Finding,
    over: Sequence[str] = (),
    at: datetime | None = None,
) -> list[RadarFinding]:
    """Write what a look at a workload brought; return its open findings, the newest first."""
    now = timezone.now() if at is None else at
    watch = RadarWatch(workload=workload, attempt=workload.attempt, looked_at=now)
    update = journal.RadarUpdate(workload.pk, workload.project_id, watch, begun=begun, over=over)
    journal.record_radar([update], now)
    workload.refresh_from_db()
    return list(RadarFinding.objects.filter(workload=workload, ended_at=None))

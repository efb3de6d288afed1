"""Logs as rows and files, and requests for their lines."""

import json
from typing import Any

from django.test import Client
from django.urls import reverse

from workloads.logbook import log_paths, stamps
from workloads.logbook.log_writer import LogWriter
from workloads.models import Log, Pod, Workload

START = 1_800_000_000 * stamps.SECOND
HOSTILE = [
    b"<script>alert(1)</script>",
    b"\x1b[31mred\x1b[0m and \x1b]0;title\x07\x1b[2Jplain",
    b"nul \x00 bell \x07",
    b"\xff\xfe bad",
    "rtl \u202e \U0001f600".encode(),
    b'"quotes" \\ {"json": 1}',
    b"progress\rdone\r",
]


def a_log(
    workload: Workload,
    texts: list[bytes],
    *,
    rank: int = 0,
    step: int = 1,
    state: str = Log.State.COMPLETE,
    **more: Any,
) -> Log:
    """Create a log with these lines, a microsecond apart times `step`.

    It begins `rank` microseconds late.
    """
    name = f"train1-{rank}"
    pod, _ = Pod.objects.get_or_create(
        workload=workload, uid=f"uid-{rank}", defaults={"name": name, "attempt": 1, "rank": rank}
    )
    path = log_paths.build_log_path(workload.pk, pod.uid, "main", 0)
    lines = [
        stamps.format_time(START + (number * step + rank) * 1000).encode() + b" " + text
        for number, text in enumerate(texts)
    ]
    with LogWriter(log_paths.local_path(path)) as writer:
        writer.append(lines)
        size = writer.size
    return Log.objects.create(pod=pod, container="main", path=path, size=size, state=state, **more)


def number_lines(count: int) -> list[bytes]:
    return [b"line %d" % number for number in range(count)]


def window(
    client: Client, workload: Workload, **query: Any
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    answer = client.get(reverse("log-window", args=[workload.pk]), query)
    assert answer.status_code == 200, answer.content
    head, *items = [json.loads(line) for line in answer.content.splitlines()]
    return head, items


def texts(items: list[dict[str, Any]]) -> list[str]:
    return [item["x"] for item in items if "x" in item]

"""Logs of one pod: waited for a little, then read by `muster logs`."""

import time
from collections.abc import Callable
from typing import Any

from muster_cli.actions import moments, workloads
from muster_cli.actions.log_lines import LATE_SECONDS
from muster_cli.dialects.arena_words import check_type
from muster_cli.dialects.parsing import run_muster, translate_flags
from muster_cli.dialects.tables import Call
from muster_cli.errors import NotFound, Refused, TimedOut, UsageProblem
from muster_cli.routes import GET_LOGS
from muster_cli.session import Session

WAIT_SECONDS = 60.0
POLL_SECONDS = 0.5
SILENT_SECONDS = 3.0
"""After so long it is said what is waited for."""
CHIEFS = ("master", "chief", "launcher")

Pod = dict[str, Any]


def show_runai_logs(call: Call) -> None:
    """Show the log of the pod that --pod names, or of the master's."""
    _show_logs(call, call.get_text("--pod"))


def show_arena_logs(call: Call) -> None:
    """Show the log of the instance that is named, or of the chief's."""
    _show_logs(call, call.get_text("--instance"))


def _show_logs(call: Call, pod_name: str) -> None:
    if call.get_text("--since") and call.get_text("--since-time"):
        raise UsageProblem("--since and --since-time exclude each other.")
    arguments, origins = translate_flags(call)
    arguments += _build_tail(call.get_text("--tail"))
    text = call.get_text("--wait-timeout")
    patience = float(moments.parse_duration(text)) if text else WAIT_SECONDS
    session = call.invocation.session
    workload = workloads.get_workload(session, call.get_name(), call.project)
    check_type(workload, call.get_text("--type"))
    pod = wait_for_log(
        session,
        str(workload["id"]),
        pod_name,
        container=call.get_text("--container"),
        patience=patience,
        report=call.invocation.notify,
    )
    run_muster("logs", [*arguments, f"--pod={pod['name']}", "--", str(workload["id"])], origins)


def _build_tail(text: str) -> list[str]:
    if text in ("", "-1"):
        return []
    if not (text.isascii() and text.isdigit()):
        raise UsageProblem(f"--tail is a number of lines, or -1 for all, and not {text}.")
    return [f"--tail={text}"]


def wait_for_log(
    session: Session,
    workload_id: str,
    pod_name: str,
    *,
    container: str,
    patience: float,
    report: Callable[[str], None],
) -> Pod:
    """Return a pod once its container has written, or will not within the patience.

    Where that takes long, it is reported once what it waits for. Raises NotFound for a pod that
    there will not be, and TimedOut where no container has started.
    """
    begun, is_reported = time.monotonic(), False
    deadline = begun + patience
    while True:
        workload = workloads.get_by_id(session, workload_id)
        pods = workloads.list_pods(session, workload_id)
        pod = choose_pod(pods, pod_name)
        size = None if pod is None else _measure_log(session, workload_id, pod, container)
        if pod is not None and (size or _is_settled(pod, workload)):
            return pod
        if pod is None and workload["phase"] in workloads.ENDED:
            pod_names = ", ".join(each["name"] for each in pods[:20])
            raise NotFound(
                f"{workload['name']} has no pod {pod_name} and gets none: it is "
                f"{workload['phase']}.",
                f"It has {pod_names}." if pod_names else "",
            )
        if time.monotonic() >= deadline:
            if pod is not None and size is not None:
                return pod
            pod_names = ", ".join(each["name"] for each in pods[:20])
            raise TimedOut(
                f"No container of {pod_name or workload['name']} has started within "
                f"{patience:g} s: it is {workload['phase']}.",
                workload.get("phaseMessage") or (f"Its pods are {pod_names}." if pod_names else ""),
            )
        if not is_reported and time.monotonic() - begun >= SILENT_SECONDS:
            is_reported = True
            report(
                f"{workload['name']} is {workload['phase']}; its log is waited for until "
                f"{patience:g} s are over. {workload.get('phaseMessage') or ''}".rstrip()
            )
        time.sleep(POLL_SECONDS)


def choose_pod(pods: list[Pod], name: str) -> Pod | None:
    """Return the pod of a name, or else the one that leads; None where it is not there yet.

    Of pods that have one name, as one that was made anew, it is the newest: the list's last.
    """
    pods = list({each["name"]: each for each in pods}.values())
    if name:
        return next((each for each in pods if each["name"] == name), None)
    leaders = [each for each in pods if each.get("role") in CHIEFS]
    ranked = sorted(pods, key=lambda each: (each.get("rank") is None, each.get("rank") or 0))
    return next(iter(leaders or ranked), None)


def _is_settled(pod: Pod, workload: workloads.Workload) -> bool:
    """Tell whether a pod has ended, or runs for so long that it need not be waited for."""
    # The log of a pod that ended quickly is captured a little later.
    if (end := pod.get("completedAt") or pod.get("deletedAt")) is not None:
        return (moments.compute_age(end) or 0.0) > LATE_SECONDS
    age = moments.compute_age(pod.get("startedAt"))
    return workload["phase"] in workloads.ENDED or (age is not None and age > WAIT_SECONDS)


def _measure_log(session: Session, workload_id: str, pod: Pod, container: str) -> int | None:
    """Return the size of the newest line of a log; None where there is no log yet."""
    query = {"tailLines": 1, "attempt": pod.get("attempt"), "container": container or None}
    try:
        answer = session.request(
            GET_LOGS, query=query, workload_id=workload_id, pod_id=str(pod["id"])
        )
    except Refused as refusal:
        if refusal.status == 404:
            return None
        raise
    return len(answer.content)

"""A workload in words: everything about it, or why it waits."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster_cli.actions import moments
from muster_cli.output.tables import TableColumn, build_rows, format_value, render_table
from muster_cli.output.terminal import PHASE_COLOURS, Terminal, clean_log_line, clean_text
from muster_cli.output.workload_columns import EVENT_COLUMNS, POD_COLUMNS, read_status
from muster_cli.resource_types import get_value

Item = Mapping[str, Any]
LABEL_WIDTH = 18
_ANSWERS = ("message", "clusterMessage", "limits", "podChanges", "findings")
"""What says why a workload is as it is."""
SHOWN_PODS = 50
_ENDED_SENTENCES = {
    "Completed": "It has completed.",
    "Failed": "Nothing is known of why. `muster logs {}` shows what its pods wrote.",
    "Stopped": "It was stopped, and holds nothing. `muster run {}` runs it again.",
}
"""What is said of a workload that has ended, and of which nothing else is known."""
_PASSING_PHASES = ("Creating", "Pending", "Initializing", "Resuming", "Stopping", "Deleting")
"""Phases that lead to another one."""
LONG_SECONDS = 60.0
"""How long a workload may stay in such a phase before that is worth a look."""

_FACTS = (
    ("Name", "name"),
    ("Id", "id"),
    ("Project", "projectName"),
    ("Department", "departmentName"),
    ("Namespace", "namespace"),
    ("Framework", "distributedFramework"),
    ("Submitted by", "submittedBy"),
    ("Created", "createdAt"),
    ("Completed", "completedAt"),
    ("Attempt", "additionalFields.attempt"),
    ("Pods", "requestedPods.number"),
    ("Fewest pods", "requestedPods.min"),
    ("Most pods", "requestedPods.max"),
    ("Running pods", "runningPods"),
    ("Priority", "priorityClassName"),
    ("Preemptible", "preemptible"),
    ("Node pools", "requestedNodePools"),
    ("Images", "images"),
    ("Command", "command"),
    ("Arguments", "arguments"),
    ("GPUs requested", "workloadRequestedResources.gpu.request"),
    ("GPUs held", "allocatedResources.gpu"),
    ("CPU of a pod", "podsRequestedResources.cpu"),
    ("Memory of a pod", "podsRequestedResources.cpuMemory"),
)
_ATTEMPT_COLUMNS = [
    TableColumn("ATTEMPT", lambda item: item.get("number")),
    TableColumn("STATUS", lambda item: item.get("phase")),
    TableColumn("BY", lambda item: item.get("requestedBy")),
    TableColumn("REQUESTED", lambda item: moments.format_moment(item.get("requestedAt"))),
    TableColumn(
        "RAN",
        lambda item: moments.describe_duration(
            moments.compute_age(item.get("startedAt"), item.get("endedAt"))
        ),
    ),
    TableColumn("MESSAGE", lambda item: item.get("phaseMessage")),
]
_SHOWN_EVENT_COLUMNS = [
    TableColumn(
        "AGE",
        lambda item: moments.describe_duration(moments.compute_age(item.get("createdAt"))),
    ),
    *(each for each in EVENT_COLUMNS if each.title != "WHEN"),
]


def describe_workload(
    workload: Item, pods: Sequence[Item], events: Sequence[Item], terminal: Terminal
) -> Iterator[str]:
    """Yield the lines of everything about a workload."""
    phase = read_status(workload)
    for label, path in _FACTS:
        text = format_value(get_value(workload, path))
        if text:
            yield f"{label + ':':<{LABEL_WIDTH}}{text}"
    painted = terminal.paint(phase, PHASE_COLOURS.get(phase, ""))
    yield f"{'Status:':<{LABEL_WIDTH}}{painted}"
    if message := clean_text(str(workload.get("phaseMessage") or "")):
        yield f"{'':<{LABEL_WIDTH}}{message}"
    for each in workload.get("findings") or []:
        yield f"{'Needs a look:':<{LABEL_WIDTH}}{_describe_finding(each)}"
    for each in workload.get("limits") or []:
        used = moments.describe_duration(each.get("usedSeconds"))
        limit = moments.describe_duration(each.get("limitSeconds"))
        yield f"{clean_text(str(each['name'])) + ':':<{LABEL_WIDTH}}{used or '-'} of {limit}"
    first_pods = list(pods[:SHOWN_PODS])
    yield from describe_part("Attempts", _ATTEMPT_COLUMNS, workload.get("attempts") or [], terminal)
    yield from describe_part("Pods", POD_COLUMNS, first_pods, terminal)
    if len(pods) > SHOWN_PODS:
        yield f"… and {len(pods) - SHOWN_PODS} more: `muster pods {workload['name']}`"
    yield from describe_part("Events", _SHOWN_EVENT_COLUMNS, events, terminal)


def describe_part(
    title: str, columns: Sequence[TableColumn], items: Sequence[Item], terminal: Terminal
) -> Iterator[str]:
    """Yield a heading and a table of items; nothing where there are none."""
    if not items:
        return
    yield ""
    yield terminal.paint(title, "bold")
    yield from render_table(*build_rows(columns, items, is_wide=False), terminal)


def describe_explanation(explanation: Item, terminal: Terminal) -> Iterator[str]:
    """Yield why a workload waits or failed, what is wrong with it, and what would help."""
    phase = read_status(explanation)
    yield f"{explanation['name']} is {terminal.paint(phase, PHASE_COLOURS.get(phase, ''))}."
    for name in ("message", "clusterMessage", "help"):
        if text := clean_text(str(explanation[name])):
            yield text
    if explanation["logLine"]:
        yield f"{clean_text(str(explanation['pod']))} wrote:"
        yield f"  {clean_log_line(str(explanation['logLine']))}"
    for text in (*explanation["limits"], *explanation["podChanges"]):
        yield clean_text(str(text))
    findings = explanation["findings"]
    for each in findings:
        yield ""
        yield from _describe_finding_at_length(each, terminal)
    is_healthy = phase == "Running" and not (explanation["message"] or findings)
    if is_healthy and not explanation["clusterMessage"]:
        yield _describe_watch(explanation["radar"] or {})
    elif not any(explanation[name] for name in _ANSWERS):
        yield _describe_silence(explanation)


def _describe_silence(explanation: Item) -> str:
    """Say that nothing is known to stand in the way, or since when nobody knows what does."""
    phase = read_status(explanation)
    if sentence := _ENDED_SENTENCES.get(phase):
        return sentence.format(explanation["name"])
    age = moments.compute_age(explanation["phaseUpdatedAt"])
    if phase not in _PASSING_PHASES or age is None or age < LONG_SECONDS:
        return "Nothing is known to stand in its way."
    # That no reason is known is no proof that there is none: Muster's own parts may be away.
    return (
        f"It has been {phase} since {moments.format_moment(explanation['phaseUpdatedAt'])} "
        f"({moments.describe_duration(age)}), and nothing is known of why.\n"
        f"`muster events {explanation['name']}` shows what happened so far. Where that does not "
        "say why either, ask who runs Muster whether its address /readyz says that all is well."
    )


def _describe_finding(finding: Item) -> str:
    return clean_text(f"{finding['title']} ({finding['certainty']}): {finding['message']}")


def _describe_finding_at_length(finding: Item, terminal: Terminal) -> Iterator[str]:
    """Yield what the radar found, what to do about it, what shows it, and of which pod it is."""
    yield terminal.paint(_describe_finding(finding), "yellow")
    if finding["help"]:
        yield clean_text(str(finding["help"]))
    for each in finding["evidence"]:
        yield f"  - {clean_text(str(each['text']))}"
    began, last_seen = (
        moments.describe_duration(moments.compute_age(finding[name]))
        for name in ("beganAt", "seenAt")
    )
    place = [f"pod {finding['podName']}"] if finding["podName"] else []
    place += [f"node {finding['nodeName']}"] if finding["nodeName"] else []
    where = f"; {', '.join(place)}" if place else ""
    yield clean_text(f"Began {began} ago, seen {last_seen} ago{where}.")


def _describe_watch(radar: Item) -> str:
    """Say that nothing is known to be wrong, and how far that can be known."""
    if radar.get("isOn") is False:
        return "It runs. Nobody looks whether anything is wrong: its radar is off."
    if radar.get("lookedAt"):
        ago = moments.describe_duration(moments.compute_age(radar["lookedAt"]))
        return f"It runs, and nothing is known to be wrong. The radar looked {ago} ago."
    return "It runs, and nothing is known to be wrong."


def describe_alternatives(answer: Mapping[str, Any]) -> Iterator[str]:
    """Describe what would let a workload start sooner, and when it starts as it is."""
    as_it_is, message = answer["asItIs"], answer["message"]
    if message and not as_it_is and not answer["alternatives"]:
        yield f"Nothing was played. {message}"
        return
    yield f"As it is: {_describe_start(as_it_is) if as_it_is else 'not known in the time played'}."
    for each in answer["alternatives"]:
        yield f"{each['title']}: {_describe_start(each)}{_describe_gain(each['soonerBySeconds'])}."
    if message:
        yield f"It was not played to its end. {message}"
    elif not answer["alternatives"] and as_it_is and not as_it_is["atOnce"]:
        yield "Nothing that was tried lets it start clearly sooner."


def _describe_start(start: Mapping[str, Any]) -> str:
    if start["atOnce"]:
        return "starts at once"
    if start["likelyAt"]:
        return f"likely {moments.format_moment(start['likelyAt'])}"
    words = {
        "never": "does not start by itself",
        "no-end": "nobody knows when what it waits for ends",
    }
    return words.get(start["outlook"], "not within 24 hours")


def _describe_gain(seconds: int | None) -> str:
    return f", {moments.describe_duration(seconds)} sooner" if seconds else ""


def describe_forecast(forecast: Mapping[str, Any]) -> Iterator[str]:
    """Describe when a workload is likely to start, with the forecast's age and its record."""
    yield forecast["message"]
    if forecast.get("madeAt"):
        ago = moments.describe_duration(moments.compute_age(forecast["madeAt"]))
        yield f"Forecast {ago} ago."
    if forecast.get("record"):
        yield forecast["record"]["message"]

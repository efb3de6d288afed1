"""Workloads: found by name, listed, stopped, run, deleted, explained."""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from muster_cli import routes
from muster_cli.actions import moments
from muster_cli.errors import (
    CliError,
    ForeignRefusal,
    NotFound,
    Refused,
    TimedOut,
    Unreachable,
    UsageProblem,
)
from muster_cli.session import Session

Workload = dict[str, Any]

UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
PHASES = (
    "Creating",
    "Initializing",
    "Resuming",
    "Pending",
    "Running",
    "Degraded",
    "Stopping",
    "Stopped",
    "Deleting",
    "Completed",
    "Failed",
)
"""What REST calls the statuses of workloads."""
ENDED = frozenset({"Completed", "Failed", "Stopped"})
"""Phases in which nothing of a workload runs any more."""
LISTED_AT_ONCE = 10_000
"""After how many the list begins anew: the longer an offset, the more REST has to pass over."""
POLL_SECONDS = 1.0
PATIENCE_SECONDS = 300.0
"""How long something that goes on for long waits for a server that does not answer."""
GOALS = {
    "completed": frozenset({"Completed"}),
    "failed": frozenset({"Failed"}),
    "running": frozenset({"Running", "Degraded"}),
    "stopped": frozenset({"Stopped"}),
    "ended": ENDED,
    "deleted": frozenset[str](),
}
"""What can be waited for, with the phases that mean it."""


def get_workload(session: Session, reference: str, project: str = "") -> Workload:
    """Return a workload by its id, its name, or `project/name`. Raises NotFound and UsageProblem.

    Without a project a name is looked for in all that the caller may see.
    """
    if UUID.fullmatch(reference):
        return get_by_id(session, reference)
    above, slash, name = reference.rpartition("/")
    # A comma would be a further condition, and no name a condition that all fulfil.
    for text in (name, *([above] if slash else [project] if project else [])):
        if not text.strip() or set(text) & set(",/=<>!") or not text.isprintable():
            raise UsageProblem(
                f"'{text}' in '{reference}' is not a name of a workload or project.",
                "It is a name as train1, PROJECT/NAME, or an id. A variable may be empty.",
            )
    conditions = [f"name=={name}"]
    if above or project:
        conditions.append(f"projectName=={above or project}")
    query = {"filterBy": ",".join(conditions)}
    matches = list(session.list_items(routes.LIST_WORKLOADS, "workloads", query=query, limit=20))
    if not matches:
        place = f" in {above or project}" if above or project else ""
        raise NotFound(
            f"There is no workload {name}{place} among those that you may see.",
            "`muster list` shows them; --all-projects shows those of all projects.",
        )
    if len(matches) > 1:
        places = ", ".join(f"{each['projectName']}/{name}" for each in matches)
        raise UsageProblem(f"Several projects have a workload {name}.", f"Say which: {places}.")
    return matches[0]


def get_by_id(session: Session, workload_id: str, patience: float = 0.0) -> Workload:
    """Return a workload with its attempts and limits. Raises NotFound and Refused."""
    try:
        workload: Workload = session.call(
            routes.GET_WORKLOAD, workload_id=workload_id, patience=patience
        )
    except ForeignRefusal:
        raise
    except Refused as refusal:
        if refusal.status == 404:
            raise NotFound(refusal.message) from None
        raise
    return workload


def parse_phases(texts: Sequence[str]) -> list[str]:
    """Return the phases that were typed, in any case of letters. Raises UsageProblem."""
    named = [each.capitalize() for each in texts]
    for text, name in zip(texts, named, strict=True):
        if name not in PHASES:
            raise UsageProblem(
                f"There is no status {text}.", f"It is one of {', '.join(PHASES).lower()}."
            )
    return named


def get_details(session: Session, reference: str, project: str = "") -> Workload:
    """Return a workload with its attempts, its limits and why it waits or failed."""
    workload = get_workload(session, reference, project)
    return workload if "attempts" in workload else get_by_id(session, str(workload["id"]))


def build_filter(
    *,
    project: str = "",
    phases: Sequence[str] = (),
    user: str = "",
    workload_type: str = "",
    conditions: Sequence[str] = (),
) -> str | None:
    """Return the `filterBy` of a list; one phase alone can be asked for there."""
    parts = list(conditions)
    parts += [f"projectName=={project}"] if project else []
    parts += [f"submittedBy=={user}"] if user else []
    parts += [f"phase=={phases[0]}"] if len(phases) == 1 else []
    parts += [f"type=={workload_type}"] if workload_type else []
    return ",".join(parts) or None


def list_workloads(
    session: Session,
    *,
    filter_by: str | None = None,
    phases: Sequence[str] = (),
    search: str = "",
    deleted: bool = False,
    limit: int | None = None,
    sort: str = "",
    patience: float = 0.0,
) -> Iterator[Workload]:
    """Yield the workloads, the newest first unless `sort` names a field (`-field` descends)."""
    query = {
        "filterBy": filter_by,
        "search": search or None,
        "deleted": deleted or None,
        "sortBy": sort.removeprefix("-") or None,
        "sortOrder": ("desc" if sort.startswith("-") else "asc") if sort else None,
    }
    wanted = None if len(phases) > 1 else limit
    if sort:
        workloads = session.list_items(
            routes.LIST_WORKLOADS, "workloads", query=query, limit=wanted, patience=patience
        )
    else:
        workloads = _list_by_age(session, query, wanted, patience)
    if len(phases) > 1:
        workloads = (each for each in workloads if each["phase"] in phases)
    for number, each in enumerate(workloads):
        if limit is not None and number >= limit:
            return
        yield each


def _list_by_age(
    session: Session, query: Mapping[str, Any], limit: int | None, patience: float
) -> Iterator[Workload]:
    """Yield workloads, the newest first, however many there are.

    Behind each so many the list begins anew at the moment where it is, and what came already is
    left out. Raises UsageProblem where that leads no further.
    """
    moment, repeated_ids, remaining = "", frozenset[str](), limit
    while remaining is None or remaining > 0:
        conditions = [query["filterBy"], f"createdAt<={moment}" if moment else None]
        narrowed = {**query, "filterBy": ",".join(filter(None, conditions)) or None}
        # Those of the same moment come once more.
        wanted = (
            LISTED_AT_ONCE
            if remaining is None
            else min(LISTED_AT_ONCE, remaining + len(repeated_ids))
        )
        listed, count, last = 0, 0, set[str]()
        for each in session.list_items(
            routes.LIST_WORKLOADS, "workloads", query=narrowed, limit=wanted, patience=patience
        ):
            listed += 1
            if each.get("createdAt") != moment:
                moment, last = str(each.get("createdAt") or ""), set()
            last.add(str(each["id"]))
            if each["id"] not in repeated_ids and (remaining is None or count < remaining):
                count += 1
                yield each
        remaining = None if remaining is None else remaining - count
        if listed < wanted:
            return
        if not count or not moment:
            raise UsageProblem(
                f"More than {LISTED_AT_ONCE} workloads were made at one moment: the server lists "
                "no more of them.",
                "Narrow the list, as with --project, --status or --search.",
            )
        repeated_ids = frozenset(last)


def fill_in_causes(session: Session, items: Iterable[Workload], most: int) -> None:
    """Give the first `most` workloads whose list does not say why they failed their own message.

    Which of several pods failed first is in their logs, which the server reads for one workload.
    """
    unexplained = [
        each
        for each in items
        if each["phase"] == "Failed"
        and not each.get("diagnosis")
        and ((each.get("requestedPods") or {}).get("number") or 0) > 1
    ]
    for each in unexplained[:most]:
        try:
            each["phaseMessage"] = get_by_id(session, str(each["id"])).get("phaseMessage")
        except CliError:
            # What the list says stands, as where it was deleted meanwhile.
            return


def list_pods(
    session: Session, workload_id: str, attempt: str = "", patience: float = 0.0
) -> list[dict[str, Any]]:
    """Return the pods of an attempt by rank: the present one, that of a number, or `all`."""
    query = {"attempt": attempt or None}
    return list(
        session.list_items(
            routes.LIST_WORKLOAD_PODS,
            "pods",
            query=query,
            patience=patience,
            workload_id=workload_id,
        )
    )


def list_events(session: Session, workload_id: str, limit: int) -> list[dict[str, Any]]:
    """Return the newest events, the oldest of them first."""
    events = session.list_items(routes.LIST_EVENTS, "events", limit=limit, workload_id=workload_id)
    return list(events)[::-1]


def list_history(session: Session, workload_id: str, limit: int) -> list[dict[str, Any]]:
    """Return the newest changes of status and events, the oldest of them first."""
    records = session.list_items(
        routes.LIST_HISTORY, "records", limit=limit, workload_id=workload_id
    )
    return list(records)[::-1]


def get_timeline(session: Session, workload_id: str, ranks: str = "") -> dict[str, Any]:
    """Return what is known of a workload's past, with lanes of these ranks or of all."""
    query = {"ranks": ranks or None}
    timeline: dict[str, Any] = session.call(
        routes.GET_TIMELINE, query=query, workload_id=workload_id
    )
    return timeline


def get_alternatives(session: Session, workload_id: str) -> dict[str, Any]:
    """Return what would let a workload that waits start sooner; takes up to 20 seconds."""
    answer: dict[str, Any] = session.call(routes.GET_ALTERNATIVES, workload_id=workload_id)
    return answer


def get_forecast(session: Session, workload_id: str) -> dict[str, Any]:
    """Return when a workload is likely to start, or why nobody can say."""
    forecast: dict[str, Any] = session.call(routes.GET_FORECAST, workload_id=workload_id)
    return forecast


def stop(session: Session, workload: Workload) -> str:
    """Stop a workload; return what the server says of it."""
    return _act(session, routes.get_kind_routes(workload["type"]).stop, workload)


def run_again(session: Session, workload: Workload) -> str:
    """Run a workload again, as a new attempt; return what the server says of it."""
    return _act(session, routes.get_kind_routes(workload["type"]).run, workload)


def delete(session: Session, workload: Workload) -> str:
    """Delete a workload; return what the server says of it."""
    return _act(session, routes.get_kind_routes(workload["type"]).delete, workload)


def _act(session: Session, route: routes.Route, workload: Workload) -> str:
    answer = session.call(route, workload_id=str(workload["id"]))
    message = answer.get("message") if isinstance(answer, dict) else None
    if not isinstance(message, str):
        raise Refused(
            200,
            f"The server took the request about {workload['name']}, and its answer does not say "
            "what became of it: this is no Muster, or a proxy.",
            (),
            "`muster get` shows how it stands.",
        )
    return message


def list_prunable(
    session: Session, seconds: int, phases: Iterable[str], project: str = ""
) -> list[Workload]:
    """Return the workloads that have ended so long ago, in these phases."""
    wanted, before = sorted(set(phases)), moments.format_ago(seconds, session.get_time())
    workloads: list[Workload] = []
    for phase in wanted:
        # What was stopped has no end of its own: it is as old as its phase.
        moment = "phaseUpdatedAt" if phase == "Stopped" else "completedAt"
        filter_by = build_filter(
            project=project, phases=[phase], conditions=[f"{moment}<={before}"]
        )
        workloads += list_workloads(session, filter_by=filter_by)
    return workloads


def explain(workload: Workload) -> dict[str, Any]:
    """Return why a workload waits or failed, what is wrong with it, and what would help."""
    diagnosis = workload.get("diagnosis") or {}
    cluster_message = workload.get("clusterMessage") or ""
    # To REST, what is said of the cluster is the end of what is said of the workload.
    phase_message = (workload.get("phaseMessage") or "").removesuffix(cluster_message).rstrip()
    return {
        "name": workload["name"],
        "phase": workload["phase"],
        "phaseUpdatedAt": workload.get("phaseUpdatedAt"),
        "dataDelivery": workload.get("dataDelivery"),
        # It begins with the diagnosis, and also says what is asked for and not done yet.
        "message": phase_message or diagnosis.get("message") or "",
        "help": diagnosis.get("help") or "",
        "pod": diagnosis.get("pod") or "",
        "container": diagnosis.get("container") or "",
        "logLine": diagnosis.get("logLine") or "",
        "cause": diagnosis.get("cause") or "",
        "rank": diagnosis.get("rank"),
        "confidence": diagnosis.get("confidence") or "",
        "queuePosition": diagnosis.get("queuePosition"),
        "queueLength": diagnosis.get("queueLength"),
        "clusterMessage": cluster_message,
        "limits": [each["message"] for each in workload.get("limits", []) if each.get("message")],
        "podChanges": [each["message"] for each in _list_pod_changes(workload)],
        "findings": workload.get("findings") or [],
        "radar": workload.get("radar"),
    }


def _list_pod_changes(workload: Workload) -> list[dict[str, Any]]:
    """Return what changed how many pods it has, in its newest attempt.

    REST also has those of earlier attempts, whose sentences hold no longer.
    """
    attempts = workload.get("attempts") or [{}]
    begin = moments.parse_moment(attempts[0].get("requestedAt"))
    return [
        each
        for each in workload.get("podChanges", [])
        if begin is None
        or (moment := moments.parse_moment(each["createdAt"])) is None
        or moment >= begin
    ]


def wait_for(
    session: Session,
    workload_id: str,
    goal: str,
    *,
    timeout: float | None = None,
    report: Callable[[Workload], None] = lambda workload: None,
) -> Workload | None:
    """Wait until a workload has reached a goal, or never will; None once it is deleted.

    `report` is called with each new phase or sentence. Raises TimedOut.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    last_news: tuple[str, str] | None = None
    while True:
        patience = PATIENCE_SECONDS
        if deadline is not None:
            patience = min(patience, max(0.0, deadline - time.monotonic()))
        try:
            workload = get_by_id(session, workload_id, patience=patience)
            is_gone = goal == "deleted" and bool(workload.get("deletedAt"))
            if is_gone and not _is_listed(session, workload, patience):
                return None
        except NotFound:
            return None
        except (Refused, Unreachable) as error:
            is_passing = isinstance(error, Unreachable) or error.is_temporary
            if is_passing and deadline is not None and time.monotonic() >= deadline:
                raise TimedOut(
                    f"Whether it is {goal} is not known after {timeout:g} s: {error.message}",
                    error.hint,
                ) from None
            raise
        news = (workload["phase"], workload.get("phaseMessage") or "")
        if news != last_news:
            report(workload)
            last_news = news
        if workload["phase"] in GOALS[goal] or is_out_of_reach(workload["phase"], goal):
            return workload
        if deadline is not None and time.monotonic() >= deadline:
            raise TimedOut(
                f"{workload['name']} is {workload['phase']} after {timeout:g} s, and not {goal}.",
                workload.get("phaseMessage") or "",
            )
        time.sleep(POLL_SECONDS)


def _is_listed(session: Session, workload: Workload, patience: float) -> bool:
    """Tell whether something of a deleted workload is still in its cluster."""
    filter_by = build_filter(
        project=str(workload["projectName"]), conditions=[f"name=={workload['name']}"]
    )
    workloads = list_workloads(session, filter_by=filter_by, patience=patience)
    return workload["id"] in (each["id"] for each in workloads)


def is_out_of_reach(phase: str, goal: str) -> bool:
    """Tell whether a workload in this phase can no longer reach the goal by itself."""
    return goal != "deleted" and (phase in ENDED or phase == "Deleting")


def build_page_address(session: Session, workload: Workload) -> str:
    """Return the address of a workload's page."""
    return f"{session.settings.server}/workloads/{workload['id']}"

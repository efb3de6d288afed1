"""Why Kueue holds a job back, by the events about its Workload object. Pure."""

import re
from collections.abc import Sequence

from workloads.diagnosis.events import find_newest, get_text
from workloads.diagnosis.result import Diagnosis, build_sentence
from workloads.diagnosis.word_forms import WordForm
from workloads.kube_objects import KUEUE_QUEUE, Object, clean_text, get_involved_object, nested_dict

WORKLOAD = "Workload"
"""The kind of Kueue's object for a job."""
_PENDING = frozenset(
    {
        "Pending",
        "AdmissionGated",
        "ExceedsMaxQuota",
        "Misconfigured",
        "NoMatchingFlavor",
        "PendingEvaluation",
        "Suspended",
        "TopologyPlacementFailed",
        "WaitingForPodsReady",
        "WaitingForPreemptedWorkloads",
        "WaitingForQuota",
    }
)
"""Reasons of a try that reserved no quota.

With its gate UnadmittedWorkloadsObservability Kueue has one for each cause (engine facts 4),
without it only the first.
"""
_STARTS_WITH_QUOTA = "It starts by itself as soon as the queue has quota for it."
_ASK_QUEUE = "Ask the administrator of the cluster about the queue."
_ASK_CHECK = "Ask the administrator of the cluster about the check."


_RESOURCE = r"(?P<resource>[A-Za-z0-9./_-]{1,253})"
_FLAVOR = r"flavor (?P<flavor>[a-z0-9.-]{1,253})"
_NAME = r"(?P<name>[A-Za-z0-9.-]{1,253})"
_POD_SET = re.compile(r"(?:^|; )couldn't assign flavors to pod set ")
_NEVER_FITS = re.compile(
    rf"insufficient quota for {_RESOURCE} in {_FLAVOR}, [^>]{{0,200}}> maximum capacity "
    r"\((?:[^)>]{1,40} > )?(?P<most>[^)>]{1,40})\)"
)
_UNUSED = re.compile(
    rf"insufficient unused quota(?: in cohort)? for {_RESOURCE} in {_FLAVOR}, "
    r"(?P<more>\S{1,20}) more needed"
)
_SHORTAGE = WordForm(
    _UNUSED,
    "its queue lacks {shortages}, which other work uses",
    f"{_STARTS_WITH_QUOTA} To start sooner, ask for less or stop another workload.",
    is_queued=True,
)
MOST_FLAVORS = 3
"""Flavors that a sentence names."""
_FORMS: Sequence[WordForm] = (
    WordForm(
        re.compile(r"Pending the preemption of \d{1,6} workload"),
        "other work is asked to give way for it",
        "Nothing needs to be done: others are given time to end.",
        is_queued=True,
    ),
    _SHORTAGE,
    WordForm(
        re.compile(rf"borrowing limit for {_RESOURCE} in {_FLAVOR} exceeded"),
        "its queue may borrow no more {resource} of the flavor {flavor}",
        _STARTS_WITH_QUOTA,
        is_queued=True,
    ),
    WordForm(
        re.compile(r"doesn't allow to fit|allows to fit only (?P<some>\d+) out of (?P<all>\d+)"),
        "no part of its topology has room for all of its pods",
        "It starts by itself as soon as one has; or ask for the topology as a preference.",
        is_queued=True,
    ),
    WordForm(
        re.compile(
            r"Flavor \"(?P<flavor>[^\"]{1,253})\" (?:does not support TopologyAwareScheduling|"
            r"information missing in TAS cache|does not contain the requested level)"
        ),
        "the flavor {flavor} of its queue does not have the topology that it asks for",
        "Ask for another topology, or none, or ask the administrator of the cluster which ones "
        "the queue has.",
    ),
    WordForm(
        re.compile(r"no topology domains at level: (?P<level>\S{1,253})"),
        "no node of its queue has the level {level} of its topology",
        "Ask for another topology, or none, or ask the administrator of the cluster to label the "
        "nodes.",
    ),
    WordForm(
        re.compile(r"Flavor \"(?P<flavor>[^\"]{1,253})\" supports only TopologyAwareScheduling"),
        "the flavor {flavor} of its queue takes only what asks for a topology",
        "Ask for a topology; the administrator of the cluster knows which ones the queue has.",
    ),
    # Of several flavors each has its clause: it can never start only where none of them can
    # take it later.
    WordForm(
        _NEVER_FITS,
        "it asks for more {resource} than the flavor {flavor} of its queue can ever have ({most})",
        "Ask for less, or ask an administrator for a larger queue: as it is, it can never start.",
    ),
    WordForm(
        re.compile(rf"insufficient quota for {_RESOURCE} in {_FLAVOR}"),
        "it asks for more {resource} than the flavor {flavor} of its queue can ever have",
        "Ask for less, or ask an administrator for a larger queue: as it is, it can never start.",
    ),
    WordForm(
        re.compile(rf"untolerated taint .{{0,200}}in {_FLAVOR}"),
        "the nodes of the flavor {flavor} have a taint that it does not tolerate",
        "Add a toleration for it, or ask for another node type.",
    ),
    WordForm(
        re.compile(rf"{_FLAVOR} doesn't match (?:with )?node affinity"),
        "the flavor {flavor} of its queue has not the labels that it asks its nodes for",
        "Choose another node type, node selector or node pools, or none.",
    ),
    WordForm(
        re.compile(rf"resource {_RESOURCE} unavailable in ClusterQueue"),
        "its queue gives no {resource} at all",
        "Ask for none of it, or ask the administrator to add it to the queue.",
    ),
    WordForm(
        re.compile(rf"{_FLAVOR} not found"),
        "the flavor {flavor} of its queue does not exist",
        _ASK_QUEUE,
    ),
    WordForm(
        re.compile(
            r"(?:resources? validation failed|LimitRange constraints): (?P<why>.{1,400})",
            re.DOTALL,
        ),
        "its pods ask for what they may not: {why}",
        "Stay within what the namespace allows one pod (LimitRange), and request no more than "
        "the limits of its pods.",
    ),
    WordForm(
        re.compile(r"has failed admission checks"),
        "an admission check rejected it",
        _ASK_CHECK,
    ),
    WordForm(
        re.compile(r"requires preemption, but it's gated"),
        "it could start in place of other work, and may not take its quota yet",
        _ASK_QUEUE,
    ),
    WordForm(
        re.compile(rf"(?P<sort>LocalQueue|ClusterQueue) {_NAME} (?:doesn't exist|not found)"),
        "the {sort} {name} does not exist",
        _ASK_QUEUE,
    ),
    WordForm(
        re.compile(
            rf"(?P<sort>LocalQueue|ClusterQueue)(?: {_NAME})? is (?:inactive|stopped|on hold)"
        ),
        "the {sort} {name} is stopped, and admits nothing",
        _ASK_QUEUE,
    ),
    WordForm(
        re.compile(r"namespace doesn't match ClusterQueue selector"),
        "its queue takes no work of the project's namespace",
        _ASK_QUEUE,
    ),
    WordForm(
        re.compile(r"waiting for all admitted workloads"),
        "Kueue starts one after another, and waits until the pods of those before it are ready",
        "It starts by itself as soon as they are.",
        is_queued=True,
    ),
    WordForm(
        re.compile(
            r"no longer fits|skipped|overlapping preemption targets|were prioritized",
        ),
        "other work of its queue came before it",
        _STARTS_WITH_QUOTA,
        is_queued=True,
    ),
)

_EVICTIONS: Sequence[tuple[str, str, str]] = (
    (
        "RequeuingLimitExceeded",
        "it was put back so often that Kueue tries it no more",
        "Find out why its pods do not become ready, and run it again.",
    ),
    (
        "DeactivatedDueToAdmissionCheck",
        "an admission check rejected it, and Kueue tries it no more",
        _ASK_CHECK,
    ),
    (
        "DueToAdmissionCheck",
        "an admission check wants it to be tried again later, so that it lost its quota",
        f"Kueue tries it again by itself. If it lasts: {_ASK_CHECK[0].lower()}{_ASK_CHECK[1:]}",
    ),
    (
        "MaximumExecutionTimeExceeded",
        "it ran for as long as it may, and Kueue tries it no more",
        "Run it again, from its last checkpoint.",
    ),
    (
        "PodsReadyTimeout",
        "its pods were not ready in time, so that it lost its quota and waits again",
        "Look at why its pods start slowly: the image, its volumes, a node without a device.",
    ),
    ("ClusterQueueStopped", "its queue was stopped, and took its quota back", _ASK_QUEUE),
    ("LocalQueueStopped", "its queue was stopped, and took its quota back", _ASK_QUEUE),
    (
        "NodeFailures",
        "its nodes failed, and no others take their place",
        "It starts by itself as soon as nodes are back.",
    ),
    (
        "Deactivated",
        "it was deactivated, and Kueue tries it no more",
        "Whoever deactivated it can activate it again; or run it again.",
    ),
    (
        "Preempted",
        "other work took its quota, and it waits for some again",
        _STARTS_WITH_QUOTA,
    ),
)
_REASONS_BEFORE = (*_PENDING, "QuotaReserved", "Preempted")
"""Reasons of events that come before another cluster takes a job, or when it has it no more."""
_LATER_TRY = "SecondPassFailed"
"""The reason of a try to place what has quota already, within its topology."""
_REASONS = (
    *_REASONS_BEFORE,
    "Admitted",
    "AdmissionCheckRejected",
    "AdmissionCheckUpdated",
    "FailedCreate",
    "Started",
    _LATER_TRY,
)
_CHECK_WORDS = re.compile(
    r"(?:with message:? |in (?:Retry|Rejected) state: )(?P<words>.{1,400})", re.DOTALL
)
"""What an admission check says, within an event of Kueue about it."""
_DISPATCHED = "MultiKueue"
_PLACE = re.compile(r'(?:got reservation|was admitted) on "(?P<name>[^"]{1,253})"')
"""The reason and the words of the event by which MultiKueue has a place on another cluster."""


def diagnose_kueue(job: Object, events: Sequence[Object]) -> Diagnosis | None:
    """Return why Kueue holds a job back; None of a job that is in no queue of Kueue's."""
    queue = clean_text(nested_dict(job, "metadata", "labels").get(KUEUE_QUEUE), 253)
    if not queue:
        return None
    own_events = [each for each in events if _is_from_kueue(each)]
    newest = find_newest(own_events, *_REASONS, *_list_evictions(own_events))
    lead = f"Kueue holds it in the queue {queue}"
    if newest is None:
        namespace = clean_text(nested_dict(job, "metadata").get("namespace"), 253)
        place = f" -n {namespace}" if namespace else ""
        return Diagnosis(
            build_sentence(f"{lead}, and has not looked at it yet"),
            "If this lasts for more than a minute, the LocalQueue or its ClusterQueue may be "
            "stopped or not there at all, of which Kueue writes no event, or Kueue itself is "
            f"missing or down: kubectl describe localqueue {queue}{place} says which. "
            f"{_ASK_QUEUE}",
        )
    reason, text = str(newest.get("reason")), get_text(newest)
    if reason in _PENDING or reason == _LATER_TRY:
        return _diagnose_pending(lead, text)
    if reason == "FailedCreate":
        return Diagnosis(
            build_sentence(f"{lead}: an admission check cannot begin: {text}"), _ASK_CHECK
        )
    if reason == "AdmissionCheckRejected":
        return _diagnose_eviction(lead, "DeactivatedDueToAdmissionCheck", text)
    if reason in ("QuotaReserved", "AdmissionCheckUpdated"):
        return Diagnosis(
            build_sentence(
                f"{lead}: its quota is reserved, and an admission check is not done yet"
                f"{_quote_check(text) if ' to Pending' in text else ''}"
            ),
            "Nothing needs to be done: a check may wait for new nodes. If it lasts, ask the "
            "administrator of the cluster.",
        )
    if reason in ("Admitted", "Started"):
        return Diagnosis(
            "Kueue has admitted it: its pods are made now.",
            "If this lasts for more than a minute, the training operator may be missing or down.",
        )
    return _diagnose_eviction(lead, reason, text)


def diagnose_on_other_cluster(events: Sequence[Object]) -> Diagnosis | None:
    """Return on which cluster a job is by MultiKueue; None of one that is to run in its own."""
    own_events = [each for each in events if _is_from_kueue(each)]
    newest = find_newest(own_events, _DISPATCHED, *_REASONS_BEFORE, *_list_evictions(own_events))
    place = _PLACE.search(get_text(newest)) if newest is not None else None
    if newest is None or place is None or newest.get("reason") != _DISPATCHED:
        return None
    return Diagnosis(
        build_sentence(
            f"Kueue has given it to another cluster, {clean_text(place['name'], 253)}: it waits or "
            "runs there"
        ),
        "Nothing needs to be done. Its pods and logs are in that cluster, and Muster sees them "
        "only where that cluster is connected; it ends here when it has ended there.",
    )


def _list_evictions(events: Sequence[Object]) -> list[str]:
    """Return the reasons of events with which Kueue takes its quota back."""
    reasons = (str(each.get("reason")) for each in events)
    return [reason for reason in reasons if reason.startswith("Evicted")]


def _is_from_kueue(event: Object) -> bool:
    """Return whether Kueue wrote an event: other controllers suspend and start jobs, too."""
    kind = get_involved_object(event).get("kind")
    return kind == WORKLOAD or (kind != "Pod" and event.get("reason") == "Started")


def _diagnose_pending(lead: str, text: str) -> Diagnosis:
    # All pod sets start together: one that can never start decides over those that wait.
    matches = [each for part in _POD_SET.split(text) if (each := _match_form(part)) is not None]
    if not matches:
        return Diagnosis(build_sentence(f"{lead}: {text}"), _ASK_QUEUE)
    form, match = min(matches, key=lambda each: (each[0].is_queued, _FORMS.index(each[0])))
    more = {"shortages": _describe_shortages(match.string)} if form is _SHORTAGE else {}
    words = form.describe(match, **more)
    return Diagnosis(build_sentence(f"{lead}: {words}"), form.help, is_queued=form.is_queued)


def _describe_shortages(text: str) -> str:
    """Describe what each flavor lacks that may take a pod set later: any of them would do."""
    useless = _find_useless_flavors(text)
    amounts: dict[str, list[str]] = {}
    for match in _UNUSED.finditer(text):
        if match["flavor"] not in useless:
            amounts.setdefault(match["flavor"], []).append(f"{match['more']} {match['resource']}")
    parts = [
        f"{' and '.join(missing)} of the flavor {flavor}"
        for flavor, missing in list(amounts.items())[:MOST_FLAVORS]
    ]
    if left_out := len(amounts) - len(parts):
        parts.append(f"something of {left_out} other flavor{'s' * (left_out > 1)}")
    return ", or ".join(parts)


def _find_useless_flavors(text: str) -> set[str]:
    """Return the flavors that can never take a pod set: of a resource they have too little."""
    return {match["flavor"] for match in _NEVER_FITS.finditer(text)}


def _match_form(text: str) -> tuple[WordForm, re.Match[str]] | None:
    """Return the form of what a pod set waits for, and its match; None of unknown words.

    A flavor that has too little of one resource in all is of no use once it has room for others.
    """
    useless = _find_useless_flavors(text)
    for form in _FORMS:
        for match in form.pattern.finditer(text):
            if not (form.is_queued and match.groupdict().get("flavor") in useless):
                return form, match
    return None


def _diagnose_eviction(lead: str, reason: str, text: str) -> Diagnosis:
    for part, words, advice in _EVICTIONS:
        if part in reason:
            is_queued = part == "Preempted"
            behind = _quote_check(text) if "AdmissionCheck" in part else ""
            return Diagnosis(
                build_sentence(f"{lead}: {words}{behind}"), advice, is_queued=is_queued
            )
    return Diagnosis(build_sentence(f"{lead}: it lost its quota ({reason})"), _STARTS_WITH_QUOTA)


def _quote_check(text: str) -> str:
    """Return what an admission check says, to stand at the end of a sentence; "" for nothing."""
    match = _CHECK_WORDS.search(text)
    return f": {match['words']}" if match else ""

"""The state that a page of logs shows beside the lines."""

import uuid
from collections.abc import Sequence

from django.template.loader import get_template

from projects.models import User
from workloads.logbook.attempt_state import AttemptState
from workloads.models import Log, Workload
from workloads.overview.attention import WaitingWorkload
from workloads.queries import waiting
from workloads.states import ENDING, Status
from workloads.views import logchoice
from workloads.views.logchoice import LogChoice, PodTab
from workloads.views.loglines import Item

TEMPLATE = "workloads/logs/_tab.html"
ENDED_TEXT = "It has ended, and what it wrote is being fetched."


def is_over(current: AttemptState, choice: LogChoice, logs: Sequence[Log]) -> bool:
    """Return whether nothing more will be written to the chosen logs, whose rows are `logs`."""
    return (
        current.is_settled
        if choice.log is None
        else all(log.state != Log.State.CAPTURING for log in logs)
    )


def render_tab(workload: uuid.UUID, pod_tab: PodTab, *, pane: bool) -> str:
    """Render a tab, the same on the page and when it comes later."""
    return str(
        get_template(TEMPLATE).render({"tab": pod_tab, "workload": workload, "pane": pane})
    ).strip()


class StateReporter:
    """Reports the state to one viewer: all of it at first, then the changes."""

    def __init__(self, user: User, choice: LogChoice, *, pane: bool = False) -> None:
        self._user = user
        self._choice = choice
        self._pane = pane
        self._sent_appearances: dict[int, tuple[object, ...]] = {}
        self._empty_text: tuple[tuple[object, ...], str] = ((), "")
        self._sent_state: Item = {}

    def build_state(
        self, current: AttemptState, logs: Sequence[Log], *, is_over: bool
    ) -> Item | None:
        """Return the state to send; None when all of it was sent before.

        `order` is the ids of the pods that have a tab, `pods` how many pods there are, `tabs` the
        HTML of the tabs that have changed, `over` that nothing more will be written of what was
        chosen, `settled` that no tab will change either, `nothing` the text where there is no line.
        """
        tabs = logchoice.list_tabs(current, self._choice)
        changed = [
            each for each in tabs if self._sent_appearances.get(each.pod.pk) != each.appearance
        ]
        self._sent_appearances |= {each.pod.pk: each.appearance for each in changed}
        state: Item = {
            "order": [each.pod.pk for each in tabs],
            "pods": current.pod_count,
            "over": is_over,
            "settled": current.is_settled,
            "nothing": self._describe_empty(current, logs, is_over),
        }
        if not changed and state == self._sent_state:
            return None
        self._sent_state = state
        return state | {
            "tabs": {
                str(each.pod.pk): render_tab(current.workload.pk, each, pane=self._pane)
                for each in changed
            }
        }

    def _describe_empty(self, current: AttemptState, logs: Sequence[Log], is_over: bool) -> str:
        # To find out why something waits takes some queries: once for each change of the workload.
        about = (
            current.workload.status,
            current.workload.changed,
            current.is_at_rest,
            bool(current.pods),
            bool(logs),
            is_over,
        )
        if about != self._empty_text[0]:
            self._empty_text = about, describe_empty_log(current, logs, self._user, is_over=is_over)
        return self._empty_text[1]


def describe_empty_log(
    current: AttemptState, logs: Sequence[Log], user: User, *, is_over: bool
) -> str:
    """Describe why there is no line. Queries only while there is no log and the workload waits."""
    if logs:
        return "It wrote nothing." if is_over else "Nothing was written yet."
    if current.is_at_rest:
        if not is_over:
            return ENDED_TEXT
        return "It wrote nothing." if current.pods else "It had no pod, and so wrote nothing."
    status = Status(current.workload.status)
    if status in ENDING:
        return status.meaning
    return (
        f"{'No pod has begun to write yet.' if current.pods else 'There is no pod yet.'} "
        f"{_describe_waiting(current.workload, status, user)}"
    )


def _describe_waiting(workload: Workload, status: Status, user: User) -> str:
    row = (
        Workload.objects.select_related("project").defer("spec").filter(pk=workload.pk).first()
        if status in waiting.WAITING_STATUSES
        else None
    )
    if row is None:
        return status.meaning
    reasons = waiting.diagnose_waiting_workloads([row], user).get(row.pk)
    return WaitingWorkload(row, reasons[0] if reasons else None).sentence

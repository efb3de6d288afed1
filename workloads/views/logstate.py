"""What a page of logs tells beside the lines: the pods that there are, whether more may come, and
why there is nothing to read.
"""

import uuid
from collections.abc import Sequence

from django.template.loader import get_template

from projects.models import User
from workloads.logbook.standing import Standing
from workloads.models import Log, Workload
from workloads.overview.attention import Waiting
from workloads.queries import waiting
from workloads.states import LEAVING, Status
from workloads.views import logchoice
from workloads.views.logchoice import Choice, Tab
from workloads.views.loglines import Item

TEMPLATE = "workloads/logs/_tab.html"
ENDED = "It has ended, and what it wrote is being fetched."


def is_over(now: Standing, choice: Choice, logs: Sequence[Log]) -> bool:
    """Whether nothing more will be written of what was chosen, whose rows are `logs`."""
    return (
        now.settled if choice.log is None else all(log.state != Log.State.CAPTURING for log in logs)
    )


def tab(workload: uuid.UUID, one: Tab, *, pane: bool) -> str:
    """A tab as HTML, the same on the page and when it comes later."""
    return str(
        get_template(TEMPLATE).render({"tab": one, "workload": workload, "pane": pane})
    ).strip()


class Teller:
    """Tells one viewer how things stand: all of it at first, then what has changed since."""

    def __init__(self, user: User, choice: Choice, *, pane: bool = False) -> None:
        self._user = user
        self._choice = choice
        self._pane = pane
        self._faces: dict[int, tuple[object, ...]] = {}
        self._nothing: tuple[tuple[object, ...], str] = ((), "")
        self._told: Item = {}

    def news(self, now: Standing, logs: Sequence[Log], *, over: bool) -> Item | None:
        """None when all of it was told before.

        `order` is the pods' ids, `tabs` the HTML of those that have changed, `over` that nothing
        more will be written of what was chosen, `settled` that no tab will change either, `nothing`
        what to say where there is no line.
        """
        found = logchoice.tabs(now, self._choice)
        fresh = [each for each in found if self._faces.get(each.pod.pk) != each.face]
        self._faces |= {each.pod.pk: each.face for each in fresh}
        said: Item = {
            "order": [each.pod.pk for each in found],
            "over": over,
            "settled": now.settled,
            "nothing": self._words(now, logs, over),
        }
        if not fresh and said == self._told:
            return None
        self._told = said
        return said | {
            "tabs": {
                str(each.pod.pk): tab(now.workload.pk, each, pane=self._pane) for each in fresh
            }
        }

    def _words(self, now: Standing, logs: Sequence[Log], over: bool) -> str:
        # To find out why something waits takes some queries: once for each change of the workload.
        about = (
            now.workload.status,
            now.workload.changed,
            now.at_rest,
            bool(now.pods),
            bool(logs),
            over,
        )
        if about != self._nothing[0]:
            self._nothing = about, nothing(now, logs, self._user, over=over)
        return self._nothing[1]


def nothing(now: Standing, logs: Sequence[Log], user: User, *, over: bool) -> str:
    """What is to be said where there is no line. Queries only while there is no log and the
    workload waits.
    """
    if logs:
        return "It wrote nothing." if over else "Nothing was written yet."
    if now.at_rest:
        if not over:
            return ENDED
        return "It wrote nothing." if now.pods else "It had no pod, and so wrote nothing."
    status = Status(now.workload.status)
    if status in LEAVING:
        return status.meaning
    return (
        f"{'No pod has begun to write yet.' if now.pods else 'There is no pod yet.'} "
        f"{_why(now.workload, status, user)}"
    )


def _why(workload: Workload, status: Status, user: User) -> str:
    row = (
        Workload.objects.select_related("project").defer("spec").filter(pk=workload.pk).first()
        if status in waiting.WAITING
        else None
    )
    if row is None:
        return status.meaning
    told = waiting.why([row], user).get(row.pk)
    return Waiting(row, told[0] if told else None).sentence

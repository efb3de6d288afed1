"""The form of a quota trial: quotas, limits, weights and numbers of nodes, as they are at first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.safestring import SafeString

from projects.models import Department, Project
from projects.quotas import SharesForm, format_number
from workloads.elastic.cluster_state import MOST_NODES
from workloads.trials import Change, ChangeKind, NodeKind
from workloads.trials.changes import COUNT_FIELD, SHARE_FIELDS
from workloads.trials.node_kinds import MOST_OF_A_KIND

NOTHING_CHANGED = (
    "Nothing is changed, so nothing would come out. Change a quota, a limit, a weight or a number "
    "of nodes."
)


class TrialSharesForm(SharesForm):
    """Quota, limit and weight of GPUs: those rules of the real form that need no other field."""

    def __init__(self, *args: Any, is_department: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.needs_quota = not is_department
        for name in [name for name in self.fields if name not in SHARE_FIELDS]:
            del self.fields[name]
        placeholder = "Sum" if is_department else "Unlimited"
        self.fields["gpu_quota"].widget.attrs["placeholder"] = placeholder
        self.fields["over_quota_weight"].widget.attrs["placeholder"] = "1"


class NodeCountForm(forms.Form):
    """How many nodes of one kind there are; as many as there are now are always allowed."""

    def __init__(self, *args: Any, present: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        most = max(MOST_OF_A_KIND, present)
        self.fields[COUNT_FIELD] = forms.IntegerField(
            label="Nodes",
            min_value=0,
            max_value=most,
            error_messages={"max_value": f"It must be at most {most:,}."},
        )


@dataclass(frozen=True, slots=True)
class TrialCell:
    """A field in a table, where its row and its column name it."""

    control: SafeString
    error_id: str
    errors: Sequence[str]
    present: str | None
    """The value of now, where another one is shown; "" is none."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A row of the form: of what it is, and its fields with the names of what they are of."""

    kind: ChangeKind
    id: str
    name: str
    present: Mapping[str, str]
    """The values as they are now, as they are typed."""
    form: forms.Form

    @property
    def cells(self) -> Iterator["TrialCell"]:
        """Yield the fields as they stand in the table."""
        for field, present in self.present.items():
            bound = self.form[field]
            value = bound.value()
            label = f"{bound.label} of {self.name}"
            attributes: dict[str, str | bool] = {"aria-label": label}
            if bound.errors:
                attributes |= {
                    "aria-invalid": "true",
                    "aria-describedby": f"{bound.auto_id}_error",
                }
            is_changed = str("" if value is None else value) != present
            yield TrialCell(
                bound.as_widget(attrs=attributes),
                f"{bound.auto_id}_error",
                [str(each) for each in bound.errors],
                present if is_changed else None,
            )

    @property
    def changes(self) -> Iterator[Change]:
        """Yield what differs from the present; the form must be valid."""
        for field, present in self.present.items():
            value = self.form.cleaned_data[field]
            if not _is_same(value, present):
                after = "" if value is None else str(format_number(value))
                yield Change(self.kind, self.id, self.name, field, present, after)


class TrialForm:
    """All rows together. What is not given stays as it is.

    `other_nodes` is how many nodes there are of the kinds that have no row.
    """

    def __init__(
        self,
        departments: Iterable[Department],
        projects: Iterable[Project],
        kinds: Iterable[NodeKind],
        *,
        other_nodes: int = 0,
        data: Mapping[str, Any] | None = None,
        tried: Iterable[Change] = (),
    ) -> None:
        self._data = data
        self._other_nodes = other_nodes
        self._tried = {(change.kind, change.id, change.field): change.after for change in tried}
        self.departments = [self._build_shares(ChangeKind.DEPARTMENT, row) for row in departments]
        self.projects = [self._build_shares(ChangeKind.PROJECT, row) for row in projects]
        self.nodes = [self._build_count(kind) for kind in kinds]
        self.problem = ""
        """What is wrong with the whole of it."""

    @property
    def rows(self) -> Sequence[TrialRow]:
        return [*self.departments, *self.projects, *self.nodes]

    def is_valid(self) -> bool:
        """Check all rows, and that anything is changed and not too many nodes."""
        are_valid = [row.form.is_valid() for row in self.rows]
        if not all(are_valid):
            return False
        counts = [row.form.cleaned_data[COUNT_FIELD] for row in self.nodes]
        if (total := self._other_nodes + sum(counts)) > MOST_NODES:
            self.problem = (
                f"Muster plays at most {MOST_NODES:,} nodes, and these are {total:,} in all. Give "
                "fewer."
            )
        elif not self.changes:
            self.problem = NOTHING_CHANGED
        return not self.problem

    @property
    def changes(self) -> Sequence[Change]:
        return [change for row in self.rows for change in row.changes]

    @property
    def problems(self) -> Sequence[tuple[TrialRow, str, str]]:
        """What is wrong with which field of which row."""
        return [
            (row, field, " ".join(str(each) for each in errors))
            for row in self.rows
            for field, errors in row.form.errors.items()
        ]

    def _build_shares(self, kind: ChangeKind, row: Department | Project) -> TrialRow:
        present = {
            name: "" if (value := getattr(row, name)) is None else str(format_number(value))
            for name in SHARE_FIELDS
        }
        data, initial, prefix = self._complete(kind, str(row.pk), present)
        form = TrialSharesForm(
            data, initial=initial, prefix=prefix, is_department=kind is ChangeKind.DEPARTMENT
        )
        return TrialRow(kind, str(row.pk), row.name, present, form)

    def _build_count(self, kind: NodeKind) -> TrialRow:
        present = {COUNT_FIELD: str(kind.count)}
        data, initial, prefix = self._complete(ChangeKind.NODES, kind.key, present)
        form = NodeCountForm(data, initial=initial, prefix=prefix, present=kind.count)
        return TrialRow(ChangeKind.NODES, kind.key, kind.label, present, form)

    def _complete(
        self, kind: ChangeKind, key: str, present: Mapping[str, str]
    ) -> tuple[Mapping[str, Any] | None, dict[str, Any], str]:
        """Return the data of a row's form, what it begins with, and its prefix."""
        prefix = f"{kind.value}-{key}"
        initial: dict[str, Any] = {
            name: self._tried.get((kind, key, name), value) for name, value in present.items()
        }
        if self._data is None:
            return None, initial, prefix
        # A row that came while the form was open is not in what was sent: it keeps its values.
        data = {
            f"{prefix}-{name}": self._data.get(f"{prefix}-{name}", value)
            for name, value in present.items()
        }
        return data, initial, prefix


def _is_same(value: Decimal | int | None, present: str) -> bool:
    if value is None or not present:
        return value is None and not present
    return Decimal(value) == Decimal(present)

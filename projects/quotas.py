"""Forms and values of quotas and limits, shared by projects and departments, pages and the API."""

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Any

from django import forms

from projects import durations, seams
from projects.models import Department, Project

GIB = 1 << 30
MIN_SECONDS = 60
"""The shortest limit, in seconds: the sweep that checks limits cannot tell shorter ones apart."""
DURATION_EXAMPLES = "As 2h, 90m or 7d."
_UNITS = {
    "mb": Decimal(10**6),
    "gb": Decimal(10**9),
    "mib": Decimal(1 << 20),
    "gib": Decimal(GIB),
    "bytes": Decimal(1),
}
_WITH_UNIT = re.compile(r"([0-9.eE+-]{1,40})\s*(mb|gb|mib|gib|bytes)", re.IGNORECASE)
HUNDREDTH = Decimal("0.01")
_MOST = 10**7
"""The largest amount of a quota or limit."""

AMOUNT_FIELDS = ("gpu_quota", "gpu_limit", "over_quota_weight", "cpu_quota", "cpu_limit")
MEMORY_FIELDS = ("memory_quota", "memory_limit")
LIMIT_COLUMNS = {"time_limit": "time_limit_seconds", "idle_limit": "idle_limit_seconds"}
"""Each field of a form with the column of the row."""
_LIMIT_NAMES = {"time_limit": "time limit", "idle_limit": "idle limit"}
_UNIT_NAMES = {"gpu": "GPUs", "cpu": "cores", "memory": "GiB"}


class GibField(forms.DecimalField):
    """An amount of memory in GiB; "512 MB" is understood too."""

    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]
        match = _WITH_UNIT.fullmatch(str(value).strip()) if value is not None else None
        if match is None:
            return super().to_python(value)
        amount = super().to_python(match[1])
        try:
            return None if amount is None else amount * _UNITS[match[2].lower()] / GIB
        except ArithmeticError:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare as amounts, however they are written."""
        try:
            return bool(self.to_python(initial) != self.to_python(data))
        except forms.ValidationError:
            return True


class DurationField(forms.CharField):
    """A duration that cleans to seconds; None for an empty one."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            required=False,
            max_length=40,
            widget=forms.TextInput({"placeholder": "None", "autocomplete": "off"}),
            **more,
        )

    def clean(self, value: Any) -> int | None:
        text = super().clean(value)
        if not text:
            return None
        try:
            seconds = durations.parse_duration(text)
        except ValueError:
            raise forms.ValidationError("Give a duration as 2h, 90m or 7d; at most 366d.") from None
        if seconds < MIN_SECONDS:
            raise forms.ValidationError(
                f"It must be at least {durations.describe_duration(MIN_SECONDS)}."
            )
        return seconds


def make_amount_field(
    label: str,
    help_text: str,
    places: int | None = 2,
    minimum: str = "0",
    field_class: type[forms.DecimalField] = forms.DecimalField,
) -> Any:
    """Return a form field for an amount; an empty one is unlimited."""
    return field_class(
        label=label,
        required=False,
        min_value=Decimal(minimum),
        max_value=Decimal(_MOST),
        error_messages={"max_value": f"It must be at most {_MOST:,}."},
        max_digits=10 if places is not None else None,
        decimal_places=places,
        help_text=help_text,
        widget=forms.NumberInput({"placeholder": "Unlimited"}),
    )


class SharesForm(forms.Form):
    """A quota and limits. `row` is the row that is edited; None for a new one."""

    description = forms.CharField(
        required=False, max_length=250, widget=forms.TextInput({"autocomplete": "off"})
    )
    gpu_quota = make_amount_field(
        "GPU quota",
        (
            "GPUs that are its own, fractions too. Empty is without limit; 0 runs on what others "
            "leave idle."
        ),
    )
    gpu_limit = make_amount_field(
        "GPU limit",
        (
            "GPUs that it may hold at most, with what others leave idle. 0 allows work without "
            "GPUs only."
        ),
    )
    over_quota_weight = forms.DecimalField(
        label="Over-quota weight",
        required=False,
        min_value=Decimal(0),
        max_digits=6,
        decimal_places=2,
        help_text=(
            "Its part of what is idle, against the others: 2 gets twice as much as 1, 0 gets none. "
            "Empty is 1."
        ),
    )
    cpu_quota = make_amount_field("CPU quota", "Cores that are its own.", 3)
    memory_quota = make_amount_field(
        "Memory quota (GiB)", "Memory that is its own.", None, field_class=GibField
    )
    time_limit = DurationField(
        label="Time limit",
        help_text=f"How long a workload may be in Running, over all its runs. {DURATION_EXAMPLES}",
    )
    idle_limit = DurationField(
        label="Idle limit",
        help_text=(
            "How long a workload may leave its GPUs unused, where the cluster tells their use. "
            f"{DURATION_EXAMPLES}"
        ),
    )

    def __init__(self, *args: Any, row: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.row = row

    def clean_description(self) -> str:
        return str(self.cleaned_data["description"]).replace("\x00", "").strip()

    def clean_over_quota_weight(self) -> Decimal:
        weight: Decimal | None = self.cleaned_data["over_quota_weight"]
        return Decimal(1) if weight is None else weight

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self._keep_exact_memory(cleaned)
        for resource, unit in _UNIT_NAMES.items():
            quota, limit = cleaned.get(f"{resource}_quota"), cleaned.get(f"{resource}_limit")
            if limit is None or {f"{resource}_quota", f"{resource}_limit"} & self.errors.keys():
                continue
            if quota is not None and quota > limit:
                self.add_error(
                    f"{resource}_limit",
                    (
                        f"It must be at least the quota, {_format_rounded_up(quota)} {unit}. Leave "
                        "it empty for no limit."
                    ),
                )
            elif quota is None and self.needs_quota:
                self.add_error(
                    f"{resource}_quota",
                    (
                        f"It may hold {_format_rounded_up(limit)} {unit} at most, so its quota "
                        "cannot be unlimited. Give a number."
                    ),
                )
        time, idle = cleaned.get("time_limit"), cleaned.get("idle_limit")
        if time is not None and idle is not None and idle >= time:
            problem = (
                f"It must be shorter than the time limit, {durations.describe_duration(time)}: it "
                "would never be reached before that."
            )
            self.add_error("idle_limit", problem)
        if self.row is not None and not self.errors:
            self._check_allocated(cleaned)
        return cleaned

    def _keep_exact_memory(self, cleaned_data: dict[str, Any]) -> None:
        """Keep memory that the user did not touch exact to the byte.

        The form shows a rounded amount.
        """
        for name in MEMORY_FIELDS:
            if (
                self.row is not None
                and name in self.initial
                and name in cleaned_data
                and name not in self.changed_data
            ):
                amount = getattr(self.row, name)
                cleaned_data[name] = None if amount is None else Decimal(amount) / GIB

    needs_quota = True
    """Whether a limit requires a quota: an empty quota is unlimited, which no limit goes with."""

    def _check_allocated(self, cleaned_data: Mapping[str, Any]) -> None:
        """Check that no quota falls below what non-preemptible workloads use now.

        Nothing may interrupt them.
        """
        present = {
            "gpu": self.row.gpu_quota,
            "cpu": self.row.cpu_quota,
            "memory": self.row.memory_quota,
        }
        present["memory"] = None if present["memory"] is None else Decimal(present["memory"]) / GIB
        lowered = [
            name
            for name, quota in present.items()
            if (new := cleaned_data.get(f"{name}_quota")) is not None
            and (quota is None or new < quota)
        ]
        if not lowered:
            return
        allocated = seams.QUOTA_USAGE.get().sum_non_preemptible(list_project_ids(self.row))
        amounts = {
            "gpu": allocated.gpus,
            "cpu": allocated.cpu,
            "memory": Decimal(allocated.memory) / GIB,
        }
        for name in lowered:
            if amounts[name] > cleaned_data[f"{name}_quota"]:
                self.add_error(
                    f"{name}_quota",
                    f"Non-preemptible workloads use {format_number(round(amounts[name], 3))} "
                    f"{_UNIT_NAMES[name]} now, and nothing may interrupt "
                    f"them. Give at least as much, or stop some of them first.",
                )

    def fill_row(self, row: Any) -> None:
        """Set the cleaned values on a row."""
        row.description = self.cleaned_data["description"]
        for name in AMOUNT_FIELDS:
            if name in self.fields:
                setattr(row, name, self.cleaned_data[name])
        for name in MEMORY_FIELDS:
            if name in self.fields:
                amount = self.cleaned_data[name]
                setattr(row, name, None if amount is None else round(amount * GIB))
        for name, column in LIMIT_COLUMNS.items():
            setattr(row, column, self.cleaned_data[name])


def list_project_ids(row: Department | Project) -> list[int]:
    """Return the ids of the projects that share the quota of the row."""
    return (
        [row.pk]
        if isinstance(row, Project)
        else list(row.projects.there().values_list("pk", flat=True))
    )


def initial_values(row: Department | Project) -> dict[str, Any]:
    """Return the form values of a row: the fields of `SharesForm` and of a project."""
    values: dict[str, Any] = {"description": row.description}
    values |= {
        name: format_number(getattr(row, name)) for name in AMOUNT_FIELDS if hasattr(row, name)
    }
    values |= {
        name: format_number(bytes_to_gib(getattr(row, name)))
        for name in MEMORY_FIELDS
        if hasattr(row, name)
    }
    return values | {
        name: durations.format_duration(getattr(row, column))
        for name, column in LIMIT_COLUMNS.items()
    }


def exact_values(row: Department | Project) -> dict[str, Any]:
    """Return the form values with memory exact to the byte.

    The audit log records them, and a partial change keeps them.
    """
    return initial_values(row) | {
        name: _format_exact_memory(getattr(row, name))
        for name in MEMORY_FIELDS
        if hasattr(row, name)
    }


def _format_exact_memory(amount: int | None) -> str | None:
    short = bytes_to_gib(amount)
    return (
        format_number(short)
        if amount is None or short is None or round(short * GIB) == amount
        else f"{amount} bytes"
    )


def _format_rounded_up(amount: Decimal) -> str:
    """Format an amount rounded up to three decimals."""
    return format_number(amount.quantize(Decimal("0.001"), ROUND_CEILING))  # type: ignore[no-any-return]


def to_form_data(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return values as a browser would send them, for the seal of `console.edit_conflicts`."""
    lists = {
        name: value if isinstance(value, list | tuple) else [value]
        for name, value in values.items()
    }
    return {
        name: [str(each) for each in several if each not in (None, "")]
        for name, several in lists.items()
    }


def find_laxer_limits(limits: Mapping[str, Any], department: Department) -> list[tuple[str, str]]:
    """Return the limits of a project that exceed its department's, as (field, problem)."""
    problems = []
    for name, column in LIMIT_COLUMNS.items():
        own, above = limits.get(name), getattr(department, column)
        if own is not None and above is not None and own > above:
            problem = (
                f"{durations.describe_duration(own)} is more than the {_LIMIT_NAMES[name]} of "
                f"department {department.name}, {durations.describe_duration(above)}."
            )
            problems.append(
                (
                    name,
                    (
                        f"{problem} A project can only be stricter: give less, or leave it empty "
                        "for the department's."
                    ),
                )
            )
    return problems


def bytes_to_gib(amount: int | None) -> Decimal | None:
    """Return bytes as GiB, rounded as they are typed."""
    return None if amount is None else (Decimal(amount) / GIB).quantize(HUNDREDTH)


def format_number(value: Any) -> Any:
    """Format a number without trailing zeros; other values stay as they are."""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


class DepartmentForm(SharesForm):
    """A department. Its quota is that of its Queue on each cluster where it has projects."""

    name = forms.CharField(
        max_length=40,
        widget=forms.TextInput({"autocomplete": "off"}),
        help_text="At most 40 characters.",
    )
    field_order = ("name", "description")
    needs_quota = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for resource in ("gpu", "cpu", "memory"):
            field = self.fields[f"{resource}_quota"]
            field.widget.attrs["placeholder"] = "Sum of its projects"
            field.help_text = (
                "What is its projects' together, on each cluster. Empty: the sum of theirs."
            )
        self.fields["gpu_limit"].help_text = "GPUs that its projects may hold at most, together."
        self.fields[
            "over_quota_weight"
        ].help_text = "Its part of what is idle, against other departments. Empty is 1."
        self.fields[
            "time_limit"
        ].help_text = (
            f"Of every workload in its projects, which may be stricter. {DURATION_EXAMPLES}"
        )

    def clean_name(self) -> str:
        name = " ".join(str(self.cleaned_data["name"]).replace("\x00", "").split())
        others = (
            Department.objects.there()
            .filter(name=name)
            .exclude(pk=self.row.pk if self.row else None)
        )
        if others.exists():
            raise forms.ValidationError(
                "There is a department of this name already. Choose another name."
            )
        return name

    @staticmethod
    def values(department: Department) -> dict[str, Any]:
        """Return the form values of a department."""
        return {"name": department.name} | initial_values(department)

"""Data sources of a workload: cards to tick.

Each has a field for the path at which this workload mounts its files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.forms import BoundField

from console.typed_forms import TypedForm, TypedValues
from environments.forms import text_field
from environments.models import DataSource
from workloads import asset_rules
from workloads.forms.setup_descriptions import describe_volume
from workloads.specs import Volume

DATA_SOURCES_FIELD = "data_sources"
PATH_PREFIX = "source_path-"
"""The beginning of the name of a data source's path field; its id follows."""


@dataclass(frozen=True)
class SourceCard:
    """A data source to choose, with its description and the field for its path."""

    key: str
    source: DataSource
    about: str
    is_chosen: bool
    path: BoundField


class SourceFields(TypedForm):
    """The data sources of a setup. Their volumes come after those of its rows."""

    data_sources = forms.MultipleChoiceField(
        label="Data sources",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        error_messages={
            "invalid_choice": (
                "One of those chosen is not for use here any more. Go on without it, or choose "
                "another."
            )
        },
    )

    def offer_sources(self, sources: Sequence[DataSource]) -> None:
        """Let these data sources be chosen."""
        self.sources = {str(each.pk): each for each in sources}
        self.fields[DATA_SOURCES_FIELD].choices = [  # type: ignore[attr-defined]
            (key, each.name) for key, each in self.sources.items()
        ]
        for key, source in self.sources.items():
            self.fields[f"{PATH_PREFIX}{key}"] = text_field(
                "Container path", "Empty: as the data source has it."
            )
            self.fields[f"{PATH_PREFIX}{key}"].widget.attrs["placeholder"] = source.path

    @property
    def chosen_sources(self) -> Sequence[DataSource]:
        """Return the ticked data sources, in the order of the page."""
        chosen = set(self.read(DATA_SOURCES_FIELD, ()))
        return [source for key, source in self.sources.items() if key in chosen]

    @property
    def source_volumes(self) -> tuple[Volume, ...]:
        return tuple(
            build_source_volume(source, self.read(f"{PATH_PREFIX}{source.pk}", ""))
            for source in self.chosen_sources
        )

    @property
    def source_cards(self) -> Sequence[SourceCard]:
        chosen = set(self[DATA_SOURCES_FIELD].value() or ())
        return [
            SourceCard(
                key,
                source,
                describe_volume(build_source_volume(source)),
                key in chosen,
                self[f"{PATH_PREFIX}{key}"],
            )
            for key, source in self.sources.items()
        ]

    def add_source_error(self, number: int, field: str, text: str) -> None:
        """Add a problem of the n-th chosen data source's volume.

        The error stands beside its path, or beside the choice where it is not about the path.
        """
        chosen = self.chosen_sources
        if not 0 <= number < len(chosen):
            self.add_error_once(None, text)
        elif field == "path":
            self.add_error_once(f"{PATH_PREFIX}{chosen[number].pk}", text)
        else:
            self.add_error_once(DATA_SOURCES_FIELD, f"{chosen[number].name}: {text}")


def build_source_volume(source: DataSource, path: str = "") -> Volume:
    """Return the volume that a workload mounts of a data source.

    At this path, or where the data source says.
    """
    volume = asset_rules.build_volume(vars(source) | {"credential": source.credential})
    return replace(volume, path=path) if path else volume


def match_sources(
    volumes: Sequence[Volume], sources: Sequence[DataSource]
) -> tuple[TypedValues, tuple[Volume, ...]]:
    """Return the data sources that give some of these volumes, and the other volumes.

    The data sources are returned as if they had been ticked.
    """
    unmatched, typed, chosen = list(volumes), dict[str, list[str]](), list[str]()
    for source in sources:
        source_volume = build_source_volume(source)
        matching = next(
            (each for each in unmatched if _is_same_except_path(each, source_volume)), None
        )
        if matching is None:
            continue
        unmatched.remove(matching)
        chosen.append(str(source.pk))
        if matching.path != source_volume.path:
            typed[f"{PATH_PREFIX}{source.pk}"] = [matching.path]
    return typed | ({DATA_SOURCES_FIELD: chosen} if chosen else {}), tuple(unmatched)


def _is_same_except_path(one: Volume, other: Volume) -> bool:
    moved: Any = replace(one, path=other.path)
    return bool(moved == other)

"""Figures as text in Prometheus' format, family by family, so that processes can be put together.

The text is made where figures are counted. A scrape only joins what many processes have made.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
from prometheus_client import Metric, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_SNAPSHOT_BYTES = 16 << 20
"""Bytes of one process's figures as text; a process of every address has about one tenth."""
_HEAD = "# HELP "


class Family(msgspec.Struct, frozen=True, array_like=True):
    """All samples of one metric: `head` is its HELP and TYPE, `samples` are lines."""

    name: str
    head: str
    samples: str


class MetricSource(Protocol):
    """Whatever collects metrics."""

    def collect(self) -> Iterable[Metric]:
        """Return the metrics with their samples of now."""


class _LabelledSource:
    """A source whose samples all get some more labels."""

    def __init__(self, source: MetricSource, labels: Mapping[str, str]) -> None:
        self._source = source
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        for metric in self._source.collect():
            labelled = Metric(metric.name, metric.documentation, metric.type)
            for sample in metric.samples:
                labelled.add_sample(sample.name, {**sample.labels, **self._labels}, sample.value)
            yield labelled


def render_families(source: MetricSource, labels: Mapping[str, str] | None = None) -> list[Family]:
    """Render what a source has now; every sample gets these labels, too."""
    registry = _LabelledSource(source, labels or {})
    # A CollectorRegistry is asked for nothing but `collect`.
    text = generate_latest(registry).decode()
    return [_parse_family(part) for part in text.split(_HEAD)[1:]]


def _parse_family(part: str) -> Family:
    help_line, type_line, *samples = part.splitlines()
    return Family(
        help_line.partition(" ")[0],
        f"{_HEAD}{help_line}\n{type_line}\n",
        "".join(f"{line}\n" for line in samples),
    )


def join_families(snapshots: Iterable[Sequence[Family]]) -> str:
    """Join the figures of many processes: each family once, with the samples of all."""
    joined: dict[str, list[str]] = {}
    for family in (each for families in snapshots for each in families):
        joined.setdefault(family.name, [family.head]).append(family.samples)
    return "".join(part for name in sorted(joined) for part in joined[name])


def pack_families(families: Sequence[Family]) -> bytes:
    """Return the figures as bytes to store; they repeat themselves, so they become a twentieth."""
    return zlib.compress(msgspec.json.encode(families), level=1)


def unpack_families(content: bytes) -> list[Family]:
    """Return stored figures. Raises ValueError for what is damaged or too large."""
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(content, MAX_SNAPSHOT_BYTES)
        return msgspec.json.decode(text, type=list[Family])
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"figures that cannot be read: {error}") from error

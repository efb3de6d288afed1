"""Content negotiation: the Accept header, parsed as the real server parses it."""

from collections.abc import Sequence
from dataclasses import dataclass

from localkube import errors

SUPPORTED_MEDIA_TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
)
"""The media types that an error names.

Protobuf is in the list of the real server; this one never produces it, and clients fall back to
JSON.
"""

MAX_RANGES = 64

META_VERSIONS = ("v1", "v1beta1")
"""Versions of meta.k8s.io. They have the same Tables; older clients know only the second."""

TABLES = tuple(("Table", "meta.k8s.io", version) for version in META_VERSIONS)
PARTIALS = tuple(("PartialObjectMetadata", "meta.k8s.io", version) for version in META_VERSIONS)
PARTIAL_LISTS = tuple(
    ("PartialObjectMetadataList", "meta.k8s.io", version) for version in META_VERSIONS
)
DISCOVERY_V2 = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
DISCOVERY_V2BETA1 = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1")

ConversionForm = tuple[str, str, str]
PLAIN_FORM: ConversionForm = ("", "", "")


@dataclass(frozen=True, slots=True)
class AcceptedMedia:
    """The chosen answer: YAML or JSON, and the form as (as, group, version).

    The form is PLAIN_FORM for the object itself.
    """

    yaml: bool = False
    form: ConversionForm = PLAIN_FORM


@dataclass(frozen=True, slots=True)
class _MediaRange:
    media: str
    form: ConversionForm
    quality: float


def choose_media(header: str, forms: Sequence[ConversionForm] = ()) -> AcceptedMedia:
    """Return the best answer for an Accept header among JSON, YAML and `forms`.

    Raises ApiError 406 when nothing fits.
    """
    if not header.strip():
        return AcceptedMedia()
    ranges = [_parse_media_range(text) for text in header.split(",")[:MAX_RANGES]]
    for candidate in sorted(ranges, key=lambda r: -r.quality):
        if candidate.quality <= 0 or (candidate.form != PLAIN_FORM and candidate.form not in forms):
            continue
        if candidate.media in ("application/json", "application/*", "*/*"):
            return AcceptedMedia(False, candidate.form)
        if candidate.media == "application/yaml":
            return AcceptedMedia(True, candidate.form)
    raise errors.not_acceptable_error(SUPPORTED_MEDIA_TYPES)


def _parse_media_range(text: str) -> _MediaRange:
    media, *parameters = (part.strip() for part in text.split(";"))
    values = {}
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        values[name.strip().lower()] = value.strip().strip('"')
    form = (
        (values["as"], values.get("g", ""), values.get("v", "")) if values.get("as") else PLAIN_FORM
    )
    try:
        quality = float(values.get("q", "1"))
    except ValueError:
        quality = 0.0
    return _MediaRange(media.lower(), form, quality)

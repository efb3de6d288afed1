"""Which form the client wants its answer in: the Accept header, read as the real server reads
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from localkube import errors

SUPPORTED_MEDIA_TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
)
"""What a refusal names. Protobuf is in the list of the real server; this one never produces it, and
clients fall back to JSON.
"""

MAX_RANGES = 64

TABLE = ("Table", "meta.k8s.io", "v1")
PARTIAL = ("PartialObjectMetadata", "meta.k8s.io", "v1")
PARTIAL_LIST = ("PartialObjectMetadataList", "meta.k8s.io", "v1")
DISCOVERY_V2 = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
DISCOVERY_V2BETA1 = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1")

ConversionForm = tuple[str, str, str]
PLAIN_FORM: ConversionForm = ("", "", "")


@dataclass(frozen=True, slots=True)
class AcceptedMedia:
    """The chosen answer: YAML or JSON, and the form as (as, group, version), PLAIN for the object
    itself.
    """

    yaml: bool = False
    form: ConversionForm = PLAIN_FORM


@dataclass(frozen=True, slots=True)
class _MediaRange:
    media: str
    form: ConversionForm
    quality: float


def choose_media(header: str, forms: Sequence[ConversionForm] = ()) -> AcceptedMedia:
    """The best answer for an Accept header among JSON, YAML and `forms`. Raises ApiError 406 when
    nothing fits.
    """
    if not header.strip():
        return AcceptedMedia()
    ranges = [_parse_media_range(text) for text in header.split(",")[:MAX_RANGES]]
    for wanted in sorted(ranges, key=lambda r: -r.quality):
        if wanted.quality <= 0 or (wanted.form != PLAIN_FORM and wanted.form not in forms):
            continue
        if wanted.media in ("application/json", "application/*", "*/*"):
            return AcceptedMedia(False, wanted.form)
        if wanted.media == "application/yaml":
            return AcceptedMedia(True, wanted.form)
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

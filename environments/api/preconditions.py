"""ETag and If-Match of assets: a change of a version that is not there any more is 412.

An asset's ETag is its version in quotes.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from console.errors import Invalid, UserError
from environments.api import late_changes
from environments.kinds import AssetKind
from environments.models import Asset
from projects.api import schemas

CHANGED, PRECONDITION_FAILED = 409, 412
MAX_HEADER_CHARS = 2000
_TAG = re.compile(r'\s*(?:W/)?"([\x21\x23-\x7e]{0,64})"\s*')
PARAMETER = OpenApiParameter(
    "If-Match",
    schemas.TEXT,
    OpenApiParameter.HEADER,
    description="The ETag of what is changed, or several with commas: 412 where it has another.",
)

TAG = OpenApiParameter(
    "ETag",
    schemas.TEXT,
    OpenApiParameter.HEADER,
    response=[200, 201, 202],
    description="The version in quotes, for If-Match of a later change.",
)
"""The header of answers that have an asset."""


@dataclass(frozen=True, slots=True)
class ExpectedVersion:
    """The version that a request changes, None for any; and what is answered for another."""

    version: int | None = None
    status: int = CHANGED

    def narrow(self, body_version: int | None) -> "ExpectedVersion":
        """Return the same with the version that the body names, which is answered by 409."""
        if body_version is None or body_version == self.version:
            return self
        return ExpectedVersion(body_version)


def require_match(request: Request, kind: AssetKind, asset: Asset) -> ExpectedVersion:
    """Return the version that If-Match asks for; any without the header, and for "*".

    Whoever changes the asset checks it again, with the row locked. Raises UserError with 412 where
    the asset has another version now, and Invalid for a header that cannot be understood.
    """
    header = request.headers.get("If-Match", "").strip()
    if header in ("", "*"):
        return ExpectedVersion()
    tags = _parse_tags(header)
    if str(asset.version) not in tags:
        raise UserError(_describe_mismatch(kind, asset, tags), status=PRECONDITION_FAILED)
    return ExpectedVersion(asset.version, PRECONDITION_FAILED)


def _describe_mismatch(kind: AssetKind, asset: Asset, tags: Collection[str]) -> str:
    """Say what changed since the newest version of these tags, or that they are of none."""
    numbers = [int(tag) for tag in tags if re.fullmatch(r"[1-9][0-9]{0,8}", tag, re.ASCII)]
    edited = max((number for number in numbers if number < asset.version), default=0)
    if edited:
        return late_changes.describe_changes(kind, asset, asset.version, edited)
    return (
        f"If-Match is not an ETag that {asset.name} has or had, so nothing was changed: its ETag "
        f'is "{asset.version}". Get it again and repeat your change.'
    )


def build_tagged_response(body: dict[str, Any], status: int = 200) -> Response:
    """Return the answer with an asset and its ETag."""
    return Response(body, status=status, headers={"ETag": f'"{body["meta"]["version"]}"'})


def _parse_tags(header: str) -> set[str]:
    """Return what stands in the quotes of an If-Match.

    A weak tag is taken for a strong one: proxies that compress answers make it weak.
    """
    tags, place = set(), 0
    while len(header) <= MAX_HEADER_CHARS and (match := _TAG.match(header, place)):
        tags.add(match[1])
        place = match.end()
        if place == len(header):
            return tags
        if header[place] != ",":
            break
        place += 1
    raise Invalid(
        [("If-Match", 'If-Match must be an ETag in quotes as "3", several with commas, or *.')]
    )

"""What our credentials may do in a cluster, asked verb by verb."""

import math
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from clusters.capabilities import Capabilities
from clusters.capability_probe import USED_RESOURCES
from clusters.kube import discovery
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Unauthorized, Unavailable
from clusters.kube.resources import Resource
from clusters.permissions import NEEDED, Need
from clusters.prerequisites import is_served


@dataclass(frozen=True, slots=True)
class VerbReview:
    """One verb on one kind; `is_allowed` is None where it was not checked."""

    name: str
    why: str
    is_allowed: bool | None


@dataclass(frozen=True, slots=True)
class KindReview:
    """The verbs on one kind; `skipped` says why they were not checked."""

    name: str
    verbs: tuple[VerbReview, ...]
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class PermissionReview:
    """The answers, by kind ("pods/log") and verb. `skipped` says why a kind was not checked,
    `trouble` why the rest was not.

    `user` is the user name of the credentials in the cluster.
    """

    answers: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""
    user: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values for a database row."""
        answers = {kind: dict(verbs) for kind, verbs in self.answers.items()}
        return {
            "answers": answers,
            "skipped": dict(self.skipped),
            "trouble": self.trouble,
            "user": self.user,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "PermissionReview":
        """Parse what `to_json` stored."""
        return cls(
            data.get("answers", {}),
            data.get("skipped", {}),
            str(data.get("trouble", "")),
            str(data.get("user", "")),
        )

    @property
    def kinds(self) -> list[KindReview]:
        """Everything that is needed, with its answers. A verb that an older release did not check
        counts as not checked.
        """
        return [
            self._build_kind(name, list(needs))
            for name, needs in groupby(NEEDED, key=lambda need: need.kind)
        ]

    @property
    def refused_needs(self) -> list[Need]:
        """What is needed and not allowed."""
        return [need for need in NEEDED if self.answers.get(need.kind, {}).get(need.verb) is False]

    @property
    def is_complete(self) -> bool:
        """Whether everything was answered or skipped for a reason."""
        return all(
            need.kind in self.skipped or need.verb in self.answers.get(need.kind, {})
            for need in NEEDED
        )

    def _build_kind(self, name: str, needs: list[Need]) -> KindReview:
        answers = self.answers.get(name, {})
        skipped = self.skipped.get(name, "") or (
            "" if answers else self.trouble or "Not checked yet."
        )
        return KindReview(
            name,
            tuple(VerbReview(need.verb, need.why, answers.get(need.verb)) for need in needs),
            skipped,
        )


def review_permissions(
    client: Client, can: Capabilities, deadline: float = math.inf, *, at_once: int = 1
) -> PermissionReview:
    """Ask for each needed verb in all namespaces, one request each, so many `at_once`.

    Kinds that the cluster does not serve are skipped. After `deadline`, a moment of the monotonic
    clock, the rest is not asked. Raises Unavailable or Unauthorized for a cluster that does not
    answer.
    """
    user = _fetch_username(client)
    served = [need for need in NEEDED if _is_any_version_served(can, need.resource)]
    skipped = {need.kind: "The cluster does not serve it." for need in NEEDED if need not in served}
    results = _review_needs(client, served, deadline, at_once)
    errors = [each for each in results if isinstance(each, KubeError)]
    for error in errors:
        if isinstance(error, Unavailable | Unauthorized):
            raise error
    answers: dict[str, dict[str, bool]] = {}
    for need, result in zip(served, results, strict=True):
        if isinstance(result, bool):
            answers.setdefault(need.kind, {})[need.verb] = result
    trouble = ""
    if errors:
        trouble = f"The cluster does not say what these credentials may do: {errors[0].message}."
    elif None in results:
        trouble = "There was no time to ask for the rest."
    return PermissionReview(answers, skipped, trouble, user)


def _review_needs(
    client: Client, needs: Sequence[Need], deadline: float, at_once: int
) -> list[bool | KubeError | None]:
    """Return for each need whether it is allowed, the error, or None where it was not asked.

    After the first error nothing more is asked.
    """
    over = threading.Event()

    def review(need: Need) -> bool | KubeError | None:
        if over.is_set() or time.monotonic() > deadline:
            return None
        try:
            return discovery.review_access(
                client, need.verb, need.resource, subresource=need.subresource
            )
        except KubeError as error:
            over.set()
            return error

    with ThreadPoolExecutor(at_once, thread_name_prefix="permission review") as pool:
        return list(pool.map(review, needs))


def build_grant_commands(review: PermissionReview) -> list[str]:
    """Return the kubectl commands that grant the missing verbs: a role for each set of verbs, and
    its binding to the user.
    """
    by_verbs: dict[str, list[str]] = {}
    for kind, needs in groupby(review.refused_needs, key=lambda need: need.kind):
        by_verbs.setdefault(",".join(need.verb for need in needs), []).append(kind)
    lines = []
    for number, (verbs, kinds) in enumerate(by_verbs.items(), start=1):
        role = f"muster-missing-{number}"
        lines.append(
            f"kubectl create clusterrole {role} --verb={verbs} --resource={','.join(kinds)}"
        )
        lines.append(
            f"kubectl create clusterrolebinding {role} --clusterrole={role} "
            f"--user={shlex.quote(review.user or 'NAME')}"
        )
    return lines


def _fetch_username(client: Client) -> str:
    try:
        return discovery.fetch_username(client)
    except (Unavailable, Unauthorized):
        raise
    except KubeError:
        # Before 1.28 one could not ask; the page then leaves the name to the reader.
        return ""


def _is_any_version_served(can: Capabilities, wanted: Resource) -> bool:
    """Return whether the kind is served in any version: permissions know no versions."""
    return any(
        is_served(can, each)
        for each in USED_RESOURCES
        if (each.group, each.plural) == (wanted.group, wanted.plural)
    )

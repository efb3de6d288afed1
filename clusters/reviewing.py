"""What our credentials may do in a cluster, asked verb by verb."""

import math
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from clusters.capabilities import Capabilities
from clusters.kube import discovery
from clusters.kube.client import Client
from clusters.kube.errors import KubeError, Unauthorized, Unavailable
from clusters.kube.resources import Resource
from clusters.permissions import NEEDED, Need
from clusters.prerequisites import serves
from clusters.probing import USED


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb on one kind; `is_allowed` is None where it was not checked."""

    name: str
    why: str
    is_allowed: bool | None


@dataclass(frozen=True, slots=True)
class Kind:
    """The verbs on one kind; `skipped` says why they were not checked."""

    name: str
    verbs: tuple[Verb, ...]
    skipped: str = ""

    @property
    def refused(self) -> tuple[Verb, ...]:
        return tuple(each for each in self.verbs if each.is_allowed is False)


@dataclass(frozen=True, slots=True)
class Review:
    """The answers, by kind ("pods/log") and verb. `skipped` says why a kind was not asked for,
    `trouble` why the rest was not.

    `user` is who the credentials are in the cluster.
    """

    answers: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""
    user: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values for a database row."""
        answers = {kind: dict(verbs) for kind, verbs in self.answers.items()}
        return {
            "answers": answers,
            "skipped": dict(self.skipped),
            "trouble": self.trouble,
            "user": self.user,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Review":
        """What `to_json` stored."""
        return cls(
            data.get("answers", {}),
            data.get("skipped", {}),
            str(data.get("trouble", "")),
            str(data.get("user", "")),
        )

    @property
    def kinds(self) -> list[Kind]:
        """Everything that is needed, with what was answered; what this release needs and an older
        check did not ask is not checked.
        """
        return [
            self._kind(name, list(needs))
            for name, needs in groupby(NEEDED, key=lambda need: need.kind)
        ]

    @property
    def refused(self) -> list[Need]:
        """What is needed and not allowed."""
        return [need for need in NEEDED if self.answers.get(need.kind, {}).get(need.verb) is False]

    @property
    def is_complete(self) -> bool:
        """Whether everything was answered or left out for a reason."""
        return all(
            need.kind in self.skipped or need.verb in self.answers.get(need.kind, {})
            for need in NEEDED
        )

    def _kind(self, name: str, needs: list[Need]) -> Kind:
        answers = self.answers.get(name, {})
        skipped = self.skipped.get(name, "") or (
            "" if answers else self.trouble or "Not checked yet."
        )
        return Kind(
            name,
            tuple(Verb(need.verb, need.why, answers.get(need.verb)) for need in needs),
            skipped,
        )


def review(client: Client, can: Capabilities, until: float = math.inf) -> Review:
    """Ask for each verb in all namespaces: one request each. Kinds that the cluster does not serve
    are left out, and said to be.

    After the moment `until` of the monotonic clock the rest is left unasked. Raises Unavailable or
    Unauthorized for a cluster that does not answer.
    """
    answers: dict[str, dict[str, bool]] = {}
    skipped: dict[str, str] = {}
    user = _user(client)
    for need in NEEDED:
        if not _is_served(can, need.resource):
            skipped[need.kind] = "The cluster does not serve it."
            continue
        if time.monotonic() > until:
            return Review(answers, skipped, "There was no time to ask for the rest.", user)
        try:
            answer = discovery.access_review(
                client, need.verb, need.resource, subresource=need.subresource
            )
        except (Unavailable, Unauthorized):
            raise
        except KubeError as error:
            return Review(
                answers,
                skipped,
                f"The cluster does not say what these credentials may do: {error.message}.",
                user,
            )
        answers.setdefault(need.kind, {})[need.verb] = answer
    return Review(answers, skipped, user=user)


def commands(found: Review) -> list[str]:
    """What grants the verbs that are missing: a role for each set of verbs, and its binding to the
    user.
    """
    by_verbs: dict[str, list[str]] = {}
    for kind, needs in groupby(found.refused, key=lambda need: need.kind):
        by_verbs.setdefault(",".join(need.verb for need in needs), []).append(kind)
    lines = []
    for number, (verbs, kinds) in enumerate(by_verbs.items(), start=1):
        role = f"muster-missing-{number}"
        lines.append(
            f"kubectl create clusterrole {role} --verb={verbs} --resource={','.join(kinds)}"
        )
        lines.append(
            f"kubectl create clusterrolebinding {role} --clusterrole={role} "
            f"--user={shlex.quote(found.user or 'NAME')}"
        )
    return lines


def _user(client: Client) -> str:
    try:
        return discovery.user(client)
    except (Unavailable, Unauthorized):
        raise
    except KubeError:
        # Before 1.28 one could not ask; the page then leaves the name to the reader.
        return ""


def _is_served(can: Capabilities, wanted: Resource) -> bool:
    """In whatever version: rights know none."""
    return any(
        serves(can, each)
        for each in USED
        if (each.group, each.plural) == (wanted.group, wanted.plural)
    )

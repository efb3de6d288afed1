"""Asking a cluster whether it would take objects, within a few seconds while a person waits."""

import logging
import threading
import uuid
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from clusters import connections
from clusters.kube import calls
from clusters.kube.client import Client
from clusters.kube.errors import (
    Conflict,
    Gone,
    KubeError,
    NotServed,
    Rejected,
    Unauthorized,
    Unavailable,
)
from clusters.kube.resources import PODS
from clusters.kube.sockets import Cancellation
from projects.models import Project
from workloads import workload_manifests
from workloads.judgement import Judgement
from workloads.kube_objects import Object, clean_text
from workloads.preflight.questions import MOST_QUESTIONS, POD, Question, list_questions
from workloads.tasks.objects import resource_of_manifest
from workloads.tasks.retrying import describe_failure, describe_refusal, find_failed_webhook

logger = logging.getLogger(__name__)

SECONDS = 3.0
"""How long a person waits for all answers at most."""
AT_ONCE = 32
"""Checks of one process at once."""
AT_ONCE_EACH = 3
"""Checks of one cluster at once."""

_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="preflight")
_lock = threading.Lock()
_running: Counter[uuid.UUID] = Counter()


class Answer(StrEnum):
    """What a cluster said of an object."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class ObjectCheck:
    """What a cluster said of one object, in its own words where it refuses it."""

    kind: str
    name: str
    answer: Answer
    message: str


def check_submission(judgement: Judgement) -> list[ObjectCheck]:
    """Ask the cluster of an acceptable submission about each of its objects. Raises CannotBuild.

    Two queries, then at most `SECONDS` of waiting; not to be called within a transaction.
    """
    objects = workload_manifests.build_for_spec(judgement.spec, judgement.project, judgement.pools)
    return check_objects(judgement.project, objects)


def check_objects(project: Project, objects: Sequence[Object]) -> list[ObjectCheck]:
    """Ask a project's cluster whether it would take these objects, and a pod of each kind.

    What could not be asked, or was not answered in time, is said to be unchecked, and why.
    """
    questions = list_questions(objects)
    why = ""
    if project.synced_at is None:
        why = f"The project {project.name} is not made in the cluster yet: that comes first."
    elif not project.cluster.is_enabled:
        why = f"The cluster {project.cluster.name} is disabled."
    if why:
        return _leave_unchecked(questions, why)
    try:
        client = connections.get_client(project.cluster)
    except Unauthorized as error:
        return _leave_unchecked(questions, _finish_sentence(error.message))
    if not _take_turn(project.cluster_id):
        return _leave_unchecked(
            questions, "Others are asking this cluster just now: look again in a few seconds."
        )
    first_questions, rest = questions[:MOST_QUESTIONS], questions[MOST_QUESTIONS:]
    return [
        *_ask_in_time(client, first_questions, project.cluster_id),
        *_leave_unchecked(rest, f"Muster asks about {MOST_QUESTIONS} objects at most."),
    ]


def _take_turn(cluster: uuid.UUID) -> bool:
    """Take a place among the checks of a cluster, if there is one."""
    with _lock:
        is_full = _running[cluster] >= AT_ONCE_EACH or _running.total() >= AT_ONCE
        _running[cluster] += not is_full
        return not is_full


def _give_turn_back(cluster: uuid.UUID) -> None:
    with _lock:
        _running[cluster] -= 1
        if not _running[cluster]:
            del _running[cluster]


def _ask_in_time(
    client: Client, questions: Sequence[Question], cluster: uuid.UUID
) -> list[ObjectCheck]:
    checks: list[ObjectCheck] = []
    why = f"The cluster did not answer within {SECONDS:.0f} s."
    cancellation = Cancellation()
    future = _threads.submit(_check_all, client, questions, checks, cancellation)
    # A thread that waits for a cluster keeps its place, whether or not anybody waits for it.
    future.add_done_callback(lambda _: _give_turn_back(cluster))
    try:
        future.result(timeout=SECONDS)
    except TimeoutError:
        done = list(checks)
        cancellation.cancel()
        return [*done, *_leave_unchecked(questions[len(done) :], why)]
    except Exception:
        # Whatever goes wrong with the check, the submission itself can go on.
        logger.exception("the objects of a submission cannot be checked")
        why = "It could not be checked: the reason is in Muster's log."
    finished_checks = list(checks)
    return [*finished_checks, *_leave_unchecked(questions[len(finished_checks) :], why)]


def _check_all(
    client: Client,
    questions: Sequence[Question],
    checks: list[ObjectCheck],
    cancellation: Cancellation,
) -> None:
    """Ask one question after the other, until cancelled; `checks` gets the answers."""
    for number, question in enumerate(questions):
        if cancellation.is_cancelled:
            return
        try:
            checks.append(_check_object(client, question, cancellation))
        except (Unavailable, Unauthorized) as error:
            checks += _leave_unchecked(questions[number:], _finish_sentence(error.message))
            return


def _check_object(client: Client, question: Question, cancellation: Cancellation) -> ObjectCheck:
    """Ask whether the cluster would take an object. Raises Unavailable and Unauthorized."""
    manifest = question.manifest
    if manifest is None:
        why = "They are made of the operator's own template: not checked."
        return ObjectCheck(question.kind, question.name, Answer.UNCHECKED, why)
    resource = PODS if question.kind == POD else resource_of_manifest(manifest)
    namespace = manifest["metadata"].get("namespace")
    answer, message = Answer.ACCEPTED, "The cluster would take it."
    warnings: list[str] = []
    try:
        made = calls.create(
            client,
            resource,
            manifest,
            namespace=namespace,
            dry_run=True,
            cancellation=cancellation,
            warnings=warnings,
        )
        if made.get("kind") != manifest["kind"]:
            # Something else at the address, such as a proxy, agrees to whatever it is sent.
            answer, message = Answer.UNCHECKED, "What answers is no API server of Kubernetes."
        elif warnings:
            texts = clean_text("; ".join(warnings)).rstrip(".")
            message = f"The cluster would take it, and warns: {texts}."
    except Unauthorized:
        raise
    except Unavailable as error:
        # A webhook is for some kinds of objects: the others can be asked about.
        if not find_failed_webhook(error):
            raise
        answer, message = Answer.UNCHECKED, describe_failure(error)
    except Conflict as error:
        answer, message = Answer.UNCHECKED, _finish_sentence(error.message)
        if error.already_exists:
            answer, message = Answer.REFUSED, "There is one of this name already."
    except Gone:
        answer, message = Answer.UNCHECKED, f"The namespace {namespace} is not there yet."
    except NotServed:
        answer, message = Answer.REFUSED, f"The cluster does not serve {question.kind} objects."
    except Rejected as error:
        answer, message = _judge_refusal(question, error)
    except KubeError as error:
        answer, message = Answer.UNCHECKED, _finish_sentence(error.message)
    return ObjectCheck(question.kind, question.name, answer, message)


def _judge_refusal(question: Question, error: Rejected) -> tuple[Answer, str]:
    """Return what a refusal says: that the cluster would refuse the object, or nothing of it."""
    if "does not support dry run" in error.message:
        return Answer.UNCHECKED, f"Its webhook cannot be asked: {error.message}"
    # The operator makes the pods: whether Muster may does not matter.
    if (
        question.kind == POD
        and error.status == 403
        and 'cannot create resource "pods"' in (error.message)
    ):
        return Answer.UNCHECKED, "Muster's credentials may not ask about pods in this cluster."
    return Answer.REFUSED, describe_refusal(error)


def _leave_unchecked(questions: Sequence[Question], why: str) -> list[ObjectCheck]:
    return [ObjectCheck(each.kind, each.name, Answer.UNCHECKED, why) for each in questions]


def _finish_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."

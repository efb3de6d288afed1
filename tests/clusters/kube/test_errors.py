"""Which answer becomes which error, and what its text may hold."""

from typing import Any

import pytest

from clusters.kube.errors import (
    MAX_TEXT,
    Conflict,
    ContainerNotStarted,
    Expired,
    Gone,
    KubeError,
    NotServed,
    Rejected,
    Unauthorized,
    Unavailable,
    error_from_answer,
    error_from_frame,
)
from tests.clusters.kube.faults import status

NAMED: dict[str, Any] = {"details": {"name": "p", "kind": "pods"}}


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        (404, status(404, "NotFound", **NAMED), Gone),
        (
            404,
            status(404, "NotFound", "the server could not find the requested resource", details={}),
            NotServed,
        ),
        (404, b"404 page not found\n", NotServed),
        (409, status(409, "AlreadyExists", **NAMED), Conflict),
        (400, status(400, "BadRequest"), Rejected),
        (
            400,
            status(
                400, "BadRequest", 'container "c" in pod "p" is waiting to start: ContainerCreating'
            ),
            ContainerNotStarted,
        ),
        (403, status(403, "Forbidden"), Rejected),
        (405, status(405, "MethodNotAllowed"), Rejected),
        (413, b"", Rejected),
        (415, status(415, "UnsupportedMediaType"), Rejected),
        (422, status(422, "Invalid"), Rejected),
        (410, status(410, "Expired"), Expired),
        (401, status(401, "Unauthorized"), Unauthorized),
        (429, b"Too many requests, please try again later.", Unavailable),
        (500, status(500, "InternalError"), Unavailable),
        (503, b"<html>", Unavailable),
        (302, b"", Unavailable),
    ],
)
def test_an_answer_becomes_the_error_to_react_to(
    code: int, body: bytes, kind: type[KubeError]
) -> None:
    error = error_from_answer(code, {}, body)
    assert type(error) is kind
    assert error.status == code


@pytest.mark.parametrize("code", [401, 404, 410])
@pytest.mark.parametrize(
    "message",
    [
        'admission webhook "w.example" denied the request: runtimes.trainer "torch" not found',
        "jobs \"a\" is forbidden: ValidatingAdmissionPolicy 'cost' with binding 'all' denied "
        "request: no cost centre",
    ],
    ids=["webhook", "policy"],
)
def test_what_an_admission_denies_is_refused_whatever_its_code(code: int, message: str) -> None:
    error = error_from_answer(code, {}, status(code, "NotFound", message, **NAMED))
    assert type(error) is Rejected
    assert error.message == message


def test_a_taken_name_and_a_stale_version_are_told_apart() -> None:
    taken, stale = (
        error_from_answer(409, {}, status(409, "AlreadyExists")),
        error_from_answer(409, {}, status(409, "Conflict")),
    )
    assert isinstance(taken, Conflict)
    assert isinstance(stale, Conflict)
    assert (taken.already_exists, stale.already_exists) == (True, False)


def test_causes_come_by_field_without_the_one_that_is_none() -> None:
    causes = [
        {"field": "spec.runPolicy", "message": "wrong"},
        {"field": "<nil>", "message": "some validation rules were not checked"},
    ]
    error = error_from_answer(422, {}, status(422, "Invalid", details={"causes": causes}))
    assert isinstance(error, Rejected)
    assert error.causes == (("spec.runPolicy", "wrong"),)


def test_an_expired_list_carries_the_token_to_go_on_with() -> None:
    error = error_from_answer(410, {}, status(410, "Expired", metadata={"continue": "fresh"}))
    assert isinstance(error, Expired)
    assert error.continue_token == "fresh"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("17", 17.0),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("9e9", 3600.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_read_with_care(header: str, seconds: float | None) -> None:
    error = error_from_answer(429, {"Retry-After": header}, b"")
    assert isinstance(error, Unavailable)
    assert error.retry_after == seconds


def test_a_body_that_is_no_status_is_not_shown() -> None:
    error = error_from_answer(502, {}, b"<html>password=hunter2</html>")
    assert "hunter2" not in f"{error} {error.detail} {error.reason}"


def test_a_server_error_keeps_its_words_for_the_log() -> None:
    error = error_from_answer(
        500, {}, status(500, "InternalError", "dial tcp 10.1.2.3:10250: connection refused")
    )
    assert "10.1.2.3" not in str(error)
    assert "10.1.2.3" in error.detail


def test_a_text_is_one_bounded_line() -> None:
    error = error_from_answer(403, {}, status(403, "Forbidden", "a\n\x1b[31m" + "b" * 100_000))
    assert len(str(error)) == MAX_TEXT
    assert str(error).isprintable()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"\xff\xfe",
        b"null",
        b'{"kind":"Status","code":"x"}',
        b'{"kind":"Status","details":3}',
    ],
)
def test_a_hostile_body_is_only_an_unexplained_refusal(body: bytes) -> None:
    assert str(error_from_answer(400, {}, body)) == "the cluster answered 400"


def test_an_error_frame_carries_its_own_code() -> None:
    assert isinstance(error_from_frame(status(410, "Expired")), Expired)
    assert isinstance(error_from_frame(b"{}"), Unavailable)

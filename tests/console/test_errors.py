"""What a database in trouble looks like to a person and to a program."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.exception import response_for_exception
from django.db import InterfaceError, OperationalError, connection
from django.http import Http404, HttpResponse
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext

from console.errors import UserErrorMiddleware
from console.rest_errors import handle_api_exception
from projects.models import User

TROUBLES = [
    (OperationalError("database or disk is full"), 507, "The disk of the database is full."),
    (
        OperationalError('could not extend file "base/1": No space left on device'),
        507,
        "The disk of the database is full.",
    ),
    (OperationalError("database is locked"), 503, "The database does not answer as it should."),
    (
        InterfaceError("connection already closed"),
        503,
        "The database does not answer as it should.",
    ),
]


@pytest.mark.parametrize(("error", "status", "text"), TROUBLES)
def test_a_database_in_trouble_is_told_in_words(error: Exception, status: int, text: str) -> None:
    request = RequestFactory().post("/workloads/bulk")
    request.user = AnonymousUser()
    page = UserErrorMiddleware(lambda _: HttpResponse()).process_exception(request, error)
    assert page is not None
    assert (page.status_code, text in page.content.decode()) == (status, True)
    answer = handle_api_exception(error, {})
    assert answer is not None
    assert (answer.status_code, answer.data["code"], text in answer.data["message"]) == (
        status,
        status,
        True,
    )


def test_what_nobody_expected_is_not_explained_away() -> None:
    assert (
        UserErrorMiddleware(lambda _: HttpResponse()).process_exception(
            RequestFactory().get("/"), ValueError("x")
        )
        is None
    )


@pytest.mark.django_db(transaction=True)
def test_an_error_page_of_a_thread_without_a_request_gives_its_connection_back() -> None:
    """As Django renders the errors of the event loop's views; what such threads kept was lost to
    the pool.
    """
    request = RequestFactory().get("/workloads/nothing")
    request.user = User.objects.create(username="somebody")
    SessionMiddleware(lambda _: HttpResponse()).process_request(request)

    def render_page() -> tuple[int, bool, bool]:
        with CaptureQueriesContext(connection) as queries:
            status = response_for_exception(request, Http404()).status_code
        return status, len(queries) > 0, connection.connection is None

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(render_page).result() == (404, True, True)

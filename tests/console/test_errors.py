"""What a database in trouble looks like to a person and to a program."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse
from django.test import RequestFactory

from console.errors import ForPeople, for_programs

TROUBLES = [
    (OperationalError("database or disk is full"), 507, "The disk of the database is full."),
    (OperationalError('could not extend file "base/1": No space left on device'), 507, "The disk of the database is full."),
    (OperationalError("database is locked"), 503, "The database does not answer as it should."),
    (InterfaceError("connection already closed"), 503, "The database does not answer as it should."),
]


@pytest.mark.parametrize(("error", "status", "text"), TROUBLES)
def test_a_database_in_trouble_is_told_in_words(error: Exception, status: int, text: str) -> None:
    request = RequestFactory().post("/workloads/bulk")
    request.user = AnonymousUser()
    page = ForPeople(lambda asked: HttpResponse()).process_exception(request, error)
    assert page is not None
    assert (page.status_code, text in page.content.decode()) == (status, True)
    answer = for_programs(error, {})
    assert answer is not None
    assert (answer.status_code, answer.data["code"], text in answer.data["message"]) == (status, status, True)


def test_what_nobody_expected_is_not_explained_away() -> None:
    assert ForPeople(lambda asked: HttpResponse()).process_exception(RequestFactory().get("/"), ValueError("x")) is None

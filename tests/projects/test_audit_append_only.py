"""The database itself keeps the audit log as it was written, on either engine, and lets the
retention take what is old.
"""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from projects import append_only, audit_retention
from projects.audit import Event, record
from projects.models import AuditEntry, KnownAddress, User
from projects.tasks import forget
from tests.cast import Cast

STATEMENTS = [
    "UPDATE projects_auditentry SET subject = 'nobody'",
    "UPDATE projects_auditentry SET user_id = NULL WHERE entity = 'thing'",
    "DELETE FROM projects_auditentry",
    "DELETE FROM projects_auditentry WHERE entity = 'thing'",
]
OF_ONE = {
    "sqlite": [
        f"{verb} INTO projects_auditentry SELECT * FROM projects_auditentry"
        for verb in ("INSERT OR REPLACE", "REPLACE")
    ],
    "postgresql": ["TRUNCATE projects_auditentry", "TRUNCATE projects_auditentry CASCADE"],
}


def run(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def an_entry(days: float = 0, entity: str = "thing") -> AuditEntry:
    return AuditEntry.objects.create(
        event=Event.CREATE, entity=entity, subject="bob", at=timezone.now() - timedelta(days=days)
    )


@pytest.mark.parametrize("number", range(len(STATEMENTS) + 2))
def test_no_statement_changes_or_deletes_an_entry(db: None, number: int) -> None:
    before = [*map(str, AuditEntry.objects.filter(pk=an_entry(days=1000).pk).values())]
    with pytest.raises(IntegrityError, match="append-only"):
        run((STATEMENTS + OF_ONE[connection.vendor])[number])
    assert [*map(str, AuditEntry.objects.values())] == before


def test_nor_does_the_program(db: None) -> None:
    entry = an_entry(days=1000)
    entry.subject = "nobody"
    for act in (
        entry.save,
        entry.delete,
        lambda: AuditEntry.objects.update(text="x"),
        AuditEntry.objects.all().delete,
    ):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            act()
    assert AuditEntry.objects.get().subject == "bob"


def test_deleting_a_user_changes_no_entry(db: None) -> None:
    user = User.objects.create(username="gone")
    record(Event.CREATE, "thing", by=user)
    key = user.pk
    user.delete()
    assert AuditEntry.objects.get().user_id == key


def test_the_retention_takes_what_is_old_and_says_so(db: None, settings: Any) -> None:
    settings.OPTIONS = settings.OPTIONS.model_copy(update={"audit_days": 30})
    kept = [an_entry(days).pk for days in (0, 29)]
    for days in (31, 400, 4000):
        an_entry(days)
    forget()
    entry = AuditEntry.objects.get(entity="audit-log")
    assert (entry.event, entry.subject, (entry.after or {})["entries"]) == ("delete", "Muster", 3)
    assert set(AuditEntry.objects.values_list("pk", flat=True)) == {*kept, entry.pk}
    forget()
    assert AuditEntry.objects.count() == 3


def test_however_much_is_old_it_goes_in_batches(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_retention, "BATCH", 10)
    AuditEntry.objects.bulk_create(
        AuditEntry(event="create", entity="thing", at=timezone.now() - timedelta(days=999))
        for _ in range(25)
    )
    assert audit_retention.delete_old_entries() == 25
    assert sorted((entry.after or {})["entries"] for entry in AuditEntry.objects.all()) == [
        5,
        10,
        10,
    ]


def test_nothing_young_goes_even_while_old_entries_may(db: None) -> None:
    an_entry(days=0.5)
    with pytest.raises(IntegrityError, match="append-only"), append_only.allow_deletion(connection):
        AuditEntry.objects.all().delete()
    assert AuditEntry.objects.count() == 1


def test_after_the_retention_the_door_is_shut(db: None) -> None:
    an_entry(days=1000)
    with append_only.allow_deletion(connection):
        pass
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditEntry.objects.all().delete()
    with pytest.raises(RuntimeError), append_only.allow_deletion(connection):
        raise RuntimeError
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AuditEntry.objects.all().delete()


def test_addresses_that_were_not_seen_for_as_long_are_forgotten(cast: Cast) -> None:
    long_ago = timezone.now() - timedelta(days=999)
    KnownAddress.objects.create(user=cast.bob, address="203.0.113.1", last_at=long_ago)
    KnownAddress.objects.create(user=cast.bob, address="203.0.113.2")
    forget()
    assert KnownAddress.objects.get().address == "203.0.113.2"


@pytest.mark.django_db(transaction=True)
def test_emptying_the_whole_database_is_possible_and_leaves_the_guard() -> None:
    an_entry()
    call_command("flush", verbosity=0, interactive=False)
    assert not AuditEntry.objects.exists()
    an_entry()
    with pytest.raises(IntegrityError, match="append-only"):
        run(STATEMENTS[0])

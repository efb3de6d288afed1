"""The database refuses to change the audit log: see `projects.append_only`."""

from typing import Any

from django.db import migrations

from projects import append_only


def create_triggers(apps: Any, editor: Any) -> None:
    append_only.create_triggers(editor.connection)


def drop_triggers(apps: Any, editor: Any) -> None:
    append_only.drop_triggers(editor.connection)


class Migration(migrations.Migration):
    dependencies = [("projects", "0001_first_release")]

    operations = [migrations.RunPython(create_triggers, drop_triggers, elidable=False)]

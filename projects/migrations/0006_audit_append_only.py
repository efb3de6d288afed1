"""From here on the database refuses to change the audit log: see `projects.append_only`."""

from typing import Any

from django.db import migrations

from projects import append_only


def put(apps: Any, editor: Any) -> None:
    append_only.create_triggers(editor.connection)


def take(apps: Any, editor: Any) -> None:
    append_only.drop_triggers(editor.connection)


class Migration(migrations.Migration):
    dependencies = [("projects", "0005_no_memberships")]

    operations = [migrations.RunPython(put, take, elidable=False)]

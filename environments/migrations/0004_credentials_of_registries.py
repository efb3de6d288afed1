"""The image registries of projects are credentials of theirs, which take the registries' place in the projects' namespaces."""

import json
from typing import Any

from django.db import migrations


def credentials(apps: Any, editor: Any) -> None:
    credential = apps.get_model("environments", "Credential")
    for each in apps.get_model("projects", "Registry").objects.iterator():
        credential.objects.create(
            name=each.name,
            project_id=each.project_id,
            kind="registry",
            public={"server": each.server, "username": each.username},
            secret=json.dumps({"password": each.password}),
            created_by_id=each.created_by_id,
            created_at=each.created_at,
        )


class Migration(migrations.Migration):
    dependencies = [("environments", "0003_every_asset"), ("projects", "0005_no_memberships")]

    operations = [migrations.RunPython(credentials, migrations.RunPython.noop)]

"""Every membership of a project is an access rule there. Of its own: PostgreSQL alters no table that it has just written to."""

from typing import Any

from django.db import migrations

ROLES = {"administrator": "project-administrator", "member": "l1-researcher", "viewer": "viewer"}


def rules(apps: Any, editor: Any) -> None:
    rule = apps.get_model("projects", "AccessRule")
    found = apps.get_model("projects", "Membership").objects.iterator()
    made = (
        rule(
            user_id=each.user_id,
            project_id=each.project_id,
            role=ROLES[each.role],
            key=f"user:{each.user_id} {ROLES[each.role]} project:{each.project_id}",
            created_at=each.created_at,
        )
        for each in found
    )
    rule.objects.bulk_create(made, batch_size=500)


class Migration(migrations.Migration):
    dependencies = [("projects", "0003_access_audit_limits")]

    operations = [migrations.RunPython(rules, migrations.RunPython.noop)]

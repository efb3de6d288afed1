"""Credentials have taken the place of registries."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("projects", "0006_audit_append_only"), ("environments", "0004_credentials_of_registries")]

    operations = [migrations.DeleteModel(name="Registry")]

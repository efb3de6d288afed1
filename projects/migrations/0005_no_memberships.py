"""Access rules have taken the place of memberships."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("projects", "0004_rules_of_memberships")]

    operations = [migrations.DeleteModel(name="Membership")]

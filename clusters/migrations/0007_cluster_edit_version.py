"""Count the changes that people make to a cluster, for the second of two editors."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0006_gpu_prices'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='edit_version',
            field=models.PositiveIntegerField(db_default=1, default=1, editable=False),
        ),
    ]

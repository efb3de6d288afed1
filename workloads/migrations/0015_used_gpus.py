"""Keep how many of the allocated GPUs were in use."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workloads', '0014_metrics'),
    ]

    operations = [
        migrations.AddField(
            model_name='sample',
            name='gpus_used',
            field=models.DecimalField(decimal_places=3, max_digits=12, null=True),
        ),
    ]

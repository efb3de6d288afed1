"""Choose one cluster's series in a Prometheus that has those of several."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0004_metrics'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='prometheus_matcher',
            field=models.CharField(blank=True, db_default='', default='', max_length=250),
        ),
    ]

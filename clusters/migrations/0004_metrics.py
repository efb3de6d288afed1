"""Keep how Muster signs in to a Prometheus, and when a cluster was measured."""

import console.encryption
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0003_capture_lease'),
    ]

    operations = [
        migrations.CreateModel(
            name='PrometheusSignIn',
            fields=[
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='prometheus_sign_in', serialize=False, to='clusters.cluster')),
                ('way', models.CharField(max_length=16)),
                ('secrets', console.encryption.EncryptedTextField()),
            ],
        ),
        migrations.AddField(
            model_name='cluster',
            name='measured_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='cluster',
            name='metrics_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='cluster',
            name='metrics_problem',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=500),
        ),
    ]

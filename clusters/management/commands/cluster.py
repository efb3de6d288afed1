"""`manage.py cluster NAME FILE`: adds a Kubernetes cluster by its kubeconfig, or replaces the
kubeconfig of a known one.
"""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from clusters import actions, cluster_twins, tasks
from clusters.cluster_forms import ClusterForm
from clusters.models import Cluster
from console.errors import UserError


class Command(BaseCommand):
    help = (
        "Registers a cluster by its kubeconfig (credentials inline), or gives a registered one a "
        "new kubeconfig, and asks it how it is."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="as pages and the API show it")
        parser.add_argument("kubeconfig", help="a file, or - for standard input")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            text = _read_kubeconfig(options["kubeconfig"])
            # What an old key encrypted is of no interest: the new credentials stand in its place.
            cluster = (
                Cluster.objects.there().filter(name=options["name"]).defer("kubeconfig").first()
            )
            if cluster is None:
                cluster = actions.register(
                    ClusterForm.base_fields["name"].clean(options["name"]), text
                )
            else:
                actions.reconnect(cluster, text)
        except ValidationError as refusal:
            raise CommandError(
                f"The name cannot be used. {' '.join(refusal.messages)}"
            ) from refusal
        except UserError as refusal:
            raise CommandError(str(refusal)) from refusal
        # A refusal is shown at once, to the person who waits for it.
        tasks.heartbeat(str(cluster.pk), tasks.REFUSAL_RECHECKS)
        cluster = Cluster.objects.defer("kubeconfig").get(pk=cluster.pk)
        if cluster.unreachable_since is not None:
            raise CommandError(
                f"{cluster.name} is registered, but it does not answer: {cluster.trouble}"
            )
        twins = cluster_twins.find_twins(cluster, Cluster.objects.there())
        if warning := cluster_twins.describe_twins(twins):
            self.stderr.write(self.style.WARNING(warning))
        self.stdout.write(
            f"{cluster.name} at {cluster.server} answers (Kubernetes {cluster.version}). Make a "
            "project on it to use it."
        )


def _read_kubeconfig(path: str) -> str:
    """Return the text of a file, or of standard input for "-". Raises CommandError."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise CommandError(
            f"The kubeconfig {path} cannot be read: {why}. Give the path of a kubeconfig that you "
            "may read, or - for standard input."
        ) from error

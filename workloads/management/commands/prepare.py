"""Bring an installation up to date: database, first administrator, built-in assets, embedded
cluster.
"""

import secrets
import sqlite3
import time
from argparse import ArgumentParser
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

from clusters import actions, project_provisioning
from clusters.models import Cluster
from console.checks import OPTIONS_TAG
from environments import builtin_assets
from projects.models import Department, Project, User
from workloads import builtin_templates

ADMINISTRATOR = "admin"
LOCALKUBE = "localkube"
DEPARTMENT = "research"
PROJECTS = ("team-a", "team-b")
QUOTA = Decimal(2)
CLUSTER_SECONDS = 120.0
UNRELEASED_MIGRATION = ("projects", "0001_initial")
"""A migration that every database from before the first release has, and no later one."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class Command(BaseCommand):
    help = "Migrates the database and makes what a new installation starts with. Safe to run again."
    requires_system_checks = (OPTIONS_TAG,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--localkube",
            metavar="KUBECONFIG",
            type=Path,
            help="register the embedded cluster, once it has written this",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            migrate_database()
            builtin_assets.ensure_builtin_assets()
            builtin_templates.ensure_builtin_templates()
            if sign_in_text := create_first_administrator(settings.OPTIONS.admin_password):
                self.stdout.write(sign_in_text)
            if options["localkube"]:
                register_localkube(wait_for_kubeconfig(options["localkube"], CLUSTER_SECONDS))
        except OperationalError as error:
            raise CommandError(
                f"The database does not answer, or not as it should: {error}"
            ) from error
        except DatabaseError as error:
            raise CommandError(
                describe_damage(error) or f"The database could not be brought up to date: {error}"
            ) from error


def migrate_database() -> None:
    """Apply outstanding migrations.

    Raises CommandError for a database of a later release, and for one from before the first: its
    migrations were replaced by one initial set.
    """
    executor = MigrationExecutor(connection)
    known_migrations = executor.loader.disk_migrations or {}
    applied_migrations = executor.loader.applied_migrations
    if UNRELEASED_MIGRATION in applied_migrations:
        raise CommandError(
            f"The database {connection.settings_dict['NAME']} was made by a version from before "
            "the first release, which this one cannot read. Move it away to begin with an empty "
            "one, or go on with the version that made it."
        )
    our_apps = {app for app, _ in known_migrations}
    if unknown_migrations := sorted(
        f"{app}.{name}"
        for app, name in applied_migrations
        if app in our_apps and (app, name) not in known_migrations
    ):
        raise CommandError(
            f"The database is of a later release: it has {', '.join(unknown_migrations)}, which "
            "this one does not know. "
            "Run that release, or restore the backup from before the upgrade."
        )
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", interactive=False, verbosity=0)


def describe_damage(error: DatabaseError) -> str:
    """Describe what to do about a damaged database file; "" for any other trouble."""
    if (
        connection.vendor != "sqlite"
        or getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED
    ):
        return ""
    return (
        f"{connection.settings_dict['NAME']} is damaged, or no database: {error}. It is left as "
        "it is. "
        "Put it back from its backup, or move it away to begin with an empty one."
    )


def create_first_administrator(password: str) -> str:
    """Create the administrator if there is none. Return how to sign in.

    The text contains the password if it was generated here.
    """
    if User.objects.filter(is_superuser=True).exists():
        return ""
    chosen = password or secrets.token_urlsafe(15)
    User.objects.create_superuser(ADMINISTRATOR, password=chosen)
    if password:
        return f"Sign in as {ADMINISTRATOR} with the password of MUSTER_ADMIN_PASSWORD."
    return f"Sign in as {ADMINISTRATOR} with the password {chosen}  (shown only this once)"


def wait_for_kubeconfig(file: Path, timeout: float) -> str:
    """Return the kubeconfig that the embedded cluster writes when it serves.

    `timeout` is in seconds. Raises CommandError when the file does not appear.
    """
    deadline = time.monotonic() + timeout
    while not file.exists():
        if time.monotonic() > deadline:
            raise CommandError(f"The embedded cluster has not written {file} within {timeout:g} s.")
        time.sleep(0.05)
    return file.read_text()


def register_localkube(text: str) -> None:
    """Register the embedded cluster, or update its address and credentials.

    In a new installation, also create a department and projects on it.
    """
    # Credentials that a lost key encrypted are of no interest: new ones stand in their place.
    cluster = Cluster.objects.there().filter(name=LOCALKUBE).defer("kubeconfig").first()
    if cluster is None:
        cluster = actions.register(LOCALKUBE, text, is_local=True)
    else:
        actions.reconnect(cluster, text, is_edit=False)
    if not Project.objects.exists():
        department, _ = Department.objects.there().get_or_create(name=DEPARTMENT)
        for name in PROJECTS:
            Project.objects.create(
                name=name,
                department=department,
                cluster=cluster,
                namespace=f"muster-{name}",
                queue=name,
                gpu_quota=QUOTA,
            )
    for project in Project.objects.filter(cluster=cluster).select_related("cluster", "department"):
        project_provisioning.provision_project(project)

"""`manage.py reencrypt` encrypts all stored secrets anew, by the newest key, so that older keys can
be taken away.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.reencryption import Renewal, renew_fields
from projects import second_factor

MOST_NAMED = 20


class Command(BaseCommand):
    help = (
        "Encrypts the stored credentials and the secrets of second factors anew, by the first key "
        "of MUSTER_ENCRYPTION_KEYS. Older keys can then be taken away."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError where something cannot be read; everything else is done then."""
        renewal = Renewal()
        renew_fields(renewal)
        second_factor.renew_secrets(renewal)
        self.stdout.write(
            f"Encrypted anew: {renewal.renewed}. With the newest key already: {renewal.current}."
        )
        if renewal.unreadable:
            named = ", ".join(renewal.unreadable[:MOST_NAMED])
            more = len(renewal.unreadable) - MOST_NAMED
            raise CommandError(
                f"These cannot be read with the keys of MUSTER_ENCRYPTION_KEYS: {named}"
                f"{f' and {more} more' if more > 0 else ''}. Add the key that they were stored "
                "with, and run this again, or enter them anew."
            )
        self.stdout.write("The keys behind the first are needed for older backups alone.")

"""Programs that wait until somebody confirms that they may act for them."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class SignInRequest(models.Model):
    """A program that asks to act for whoever confirms its code.

    The program holds a secret, of which the digest is here; the person reads and confirms the code.
    """

    secret_digest = models.CharField(max_length=64, unique=True)
    code = models.CharField(max_length=9, unique=True)
    client = models.CharField(max_length=60)
    """What the program says of itself."""
    address = models.GenericIPAddressField(null=True)
    network = models.CharField(max_length=50)
    """The address under which requests are counted: of IPv6 its /64, of which one host has all."""
    created_at = models.DateTimeField(default=timezone.now, db_index=True, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True)
    """Who decided; None while it waits."""
    is_denied = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"{self.client} at {self.address}"

"""How many requests each user's tokens made."""

from django.db import models

from projects.models.people import User


class RequestCount(models.Model):
    """The requests of one user over REST in one minute, as the processes added them up."""

    user = models.ForeignKey(
        User, models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    minute = models.BigIntegerField(db_index=True)
    """Since 1970."""
    requests = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "minute"], name="request_count_once")
        ]

    def __str__(self) -> str:
        return f"{self.requests} of {self.user_id} in {self.minute}"

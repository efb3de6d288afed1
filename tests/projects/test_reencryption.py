"""`manage.py reencrypt`: afterwards everything is read with the newest key alone."""

import io

import pytest
from allauth.mfa.models import Authenticator
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from clusters.models import Cluster, PrometheusSignIn
from console import encryption, reencryption
from environments.models import Credential
from projects.models import User
from tests.cast import Cast

OLD, NEW, LOST = (Fernet.generate_key() for _ in range(3))


def reencrypt() -> str:
    written = io.StringIO()
    call_command("reencrypt", stdout=written)
    return written.getvalue()


def add_credential(cast: Cast, name: str, secret: str) -> Credential:
    return Credential.objects.create(
        name=name, project=cast.team_a, kind=Credential.Kind.GENERIC, secret=secret
    )


def add_second_factor(user: User) -> None:
    for kind, key in (("totp", "secret"), ("recovery_codes", "seed")):
        Authenticator.objects.create(
            user=user, type=kind, data={key: encryption.encrypt(f"the {key}"), "last_step": 7}
        )


def test_older_keys_can_be_taken_away_afterwards(
    cast: Cast, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reencryption, "BATCH_SIZE", 2)
    settings.ENCRYPTION_KEYS = [OLD]
    Cluster.objects.filter(pk=cast.cluster.pk).update(kubeconfig="a kubeconfig")
    PrometheusSignIn.objects.create(cluster=cast.cluster, way="bearer", secrets="a token")
    for number in range(5):
        add_credential(cast, f"key-{number}", f"secret {number}")
    add_second_factor(cast.bob)
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    add_credential(cast, "newer", "of the new key")
    assert "Encrypted anew: 9. With the newest key already: 1." in reencrypt()
    assert "Encrypted anew: 0. With the newest key already: 10." in reencrypt()

    settings.ENCRYPTION_KEYS = [NEW]
    assert Cluster.objects.get(pk=cast.cluster.pk).kubeconfig == "a kubeconfig"
    assert PrometheusSignIn.objects.get().secrets == "a token"
    secrets = set(Credential.objects.values_list("secret", flat=True))
    assert secrets == {"of the new key", *(f"secret {number}" for number in range(5))}
    rows = Authenticator.objects.order_by("pk").values_list("data", flat=True)
    assert [encryption.decrypt(data.get("secret") or data["seed"]) for data in rows] == [
        "the secret",
        "the seed",
    ]
    assert all(data["last_step"] == 7 for data in rows)


def test_what_cannot_be_read_is_named_and_stays(cast: Cast, settings: LazySettings) -> None:
    Cluster.objects.update(kubeconfig="")
    settings.ENCRYPTION_KEYS = [LOST]
    lost = add_credential(cast, "lost", "of a lost key")
    settings.ENCRYPTION_KEYS = [OLD]
    add_credential(cast, "old", "of the old key")
    add_second_factor(cast.bob)
    settings.ENCRYPTION_KEYS = [NEW]
    with pytest.raises(CommandError, match="second factor of bob"):
        reencrypt()
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    with pytest.raises(
        CommandError, match=rf"MUSTER_ENCRYPTION_KEYS: credential {lost.pk}\. Add the key"
    ):
        reencrypt()
    settings.ENCRYPTION_KEYS = [NEW, LOST]
    assert set(Credential.objects.values_list("secret", flat=True)) == {
        "of a lost key",
        "of the old key",
    }

"""The forms of a cluster: its name, and one of three ways to reach it."""

import os
from typing import Any

from django import forms
from django.conf import settings
from django.core.validators import RegexValidator

from clusters import connections
from clusters.form_inputs import PLAIN_INPUT
from clusters.kube import in_cluster
from clusters.kube.access import (
    MAX_KUBECONFIG,
    MAX_TOKEN,
    BadKubeconfig,
    ClusterAccess,
    build_kubeconfig,
    check_token,
    parse_kubeconfig,
)
from clusters.models import Cluster, ConnectionWay
from clusters.prometheus_form import PrometheusForm

NAME_VALIDATOR = RegexValidator(
    r"^[A-Za-z0-9]([-._ A-Za-z0-9]*[A-Za-z0-9])?$",
    (
        "Use letters, digits, dashes, dots, underscores and spaces; start and end with a letter "
        "or a digit."
    ),
)
STORED_WAY = "stored"
"""The fourth way, of a known cluster: its stored credentials."""


class ClusterForm(forms.Form):
    """The form of a new cluster. Its `credentials` are what `actions.register` takes."""

    name = forms.CharField(
        max_length=63,
        validators=[NAME_VALIDATOR],
        widget=forms.TextInput(PLAIN_INPUT),
        help_text="As pages and the API show it; it can be changed later.",
    )
    way = forms.ChoiceField(
        label="How it is reached",
        widget=forms.RadioSelect,
        error_messages={"required": "Choose one of the ways."},
    )
    kubeconfig = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_KUBECONFIG,
        widget=forms.Textarea({"rows": 10, "class": "mu-mono", **PLAIN_INPUT}),
        help_text=(
            "What `kubectl config view --raw --minify --flatten` prints. Only data inside it "
            "counts: programs that fetch credentials, files of another machine and other "
            "providers are refused."
        ),
    )
    server = forms.CharField(
        label="Address of the API server",
        required=False,
        max_length=255,
        widget=forms.TextInput(
            {"placeholder": "https://203.0.113.7:6443", "inputmode": "url", **PLAIN_INPUT}
        ),
    )
    token = forms.CharField(
        required=False,
        max_length=MAX_TOKEN,
        widget=forms.PasswordInput(
            PLAIN_INPUT | {"autocomplete": "new-password"}, render_value=True
        ),
        help_text=(
            "Of a service account that may do what Muster does. `kubectl apply -k "
            "deploy/kustomize/overlays/remote-cluster` makes one; docs/production.md says how to "
            "read its token."
        ),
    )
    ca = forms.CharField(
        label="Certificate authority",
        required=False,
        strip=False,
        max_length=MAX_KUBECONFIG,
        widget=forms.Textarea({"rows": 5, "class": "mu-mono", **PLAIN_INPUT}),
        help_text=(
            "PEM text. Empty where the server's certificate is signed by an authority that this "
            "machine trusts."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ways = [
            (ConnectionWay.KUBECONFIG.value, "Paste a kubeconfig"),
            (ConnectionWay.TOKEN.value, "Give its address and a token"),
        ]
        if in_cluster.is_in_cluster(os.environ, settings.SERVICE_ACCOUNT):
            ways.append((ConnectionWay.INSIDE.value, "The cluster that Muster runs in"))
        self.fields["way"].choices = ways  # type: ignore[attr-defined]
        self.fields["way"].initial = ways[0][0]

    def clean(self) -> dict[str, Any]:
        cleaned_data = super().clean() or {}
        if not self.errors.keys() & {"way", "kubeconfig", "server", "token", "ca"}:
            {
                ConnectionWay.KUBECONFIG.value: self._clean_kubeconfig,
                ConnectionWay.TOKEN.value: self._clean_token,
            }.get(cleaned_data.get("way", ""), _check_nothing)()
        return cleaned_data

    @property
    def credentials(self) -> tuple[str, str]:
        """The way, and the kubeconfig of it. Only of a valid form."""
        cleaned_data = self.cleaned_data
        if cleaned_data["way"] == ConnectionWay.TOKEN.value:
            return cleaned_data["way"], build_kubeconfig(
                cleaned_data["server"], cleaned_data["token"], cleaned_data["ca"].strip()
            )
        return cleaned_data["way"], cleaned_data["kubeconfig"] if cleaned_data[
            "way"
        ] == ConnectionWay.KUBECONFIG.value else ""

    def _clean_kubeconfig(self) -> None:
        if not self.cleaned_data["kubeconfig"].strip():
            self.add_error("kubeconfig", "Paste the kubeconfig.")
            return
        try:
            connections.address_policy().check_server(
                parse_kubeconfig(self.cleaned_data["kubeconfig"]).server
            )
        except BadKubeconfig as error:
            self.add_error("kubeconfig", str(error))

    def _clean_token(self) -> None:
        server, token, ca = (self.cleaned_data[name] for name in ("server", "token", "ca"))
        for name, value in (("server", server), ("token", token)):
            if not value:
                self.add_error(name, "Give the address." if name == "server" else "Give the token.")
        if self.errors.keys() & {"server", "token"}:
            return
        field = "token"
        try:
            check_token(token)
            field = "server"
            ClusterAccess(server, token=token)
            connections.address_policy().check_server(server)
            field = "ca"
            ClusterAccess(server, token=token, ca=ca.strip() or None)
        except BadKubeconfig as error:
            self.add_error(field, str(error))


class ClusterChangeForm(PrometheusForm, ClusterForm):
    """The form of a known cluster. Its credentials are never shown; they are kept or replaced."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields["way"].choices  # type: ignore[attr-defined]
        self.fields["way"].choices = [(STORED_WAY, "Keep the stored credentials"), *choices]  # type: ignore[attr-defined]

    @staticmethod
    def values(cluster: Cluster) -> dict[str, str]:
        """Return the form's values of a cluster, which keep the stored credentials."""
        return {
            "name": cluster.name,
            "way": STORED_WAY,
            "prometheus_url": cluster.prometheus_url,
            "prometheus_matcher": cluster.prometheus_matcher,
        }

    @property
    def keeps_credentials(self) -> bool:
        """Whether the stored credentials stay. Only of a valid form."""
        return bool(self.cleaned_data["way"] == STORED_WAY)


def _check_nothing() -> None:
    """Check nothing: the other ways have no fields."""

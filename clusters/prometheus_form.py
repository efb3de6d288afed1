"""The part of a cluster's form about its Prometheus: where it is, and how Muster signs in to it."""

from typing import Any
from urllib.parse import urlsplit

from django import forms

from clusters.form_inputs import PLAIN_INPUT
from clusters.kube.access import MAX_TOKEN, is_loopback
from clusters.metrics.matchers import MAX_MATCHERS, parse_matchers
from clusters.metrics.sign_in import MAX_PEM, SignIn, SignInWay
from console import url_safety

STORED_SIGN_IN = "stored"
"""Keep what is stored to sign in with."""
MAX_HEADER_TEXT = 16 << 10
_WAY_LABELS = {
    SignInWay.NONE: "It does not ask who asks",
    SignInWay.BASIC: "User and password",
    SignInWay.BEARER: "Bearer token",
    SignInWay.CERTIFICATE: "Client certificate",
}
_FIELDS = {
    "user": "prometheus_user",
    "password": "prometheus_password",
    "token": "prometheus_token",
    "certificate": "prometheus_certificate",
    "key": "prometheus_key",
    "ca": "prometheus_ca",
    "headers": "prometheus_headers",
}
"""The fields of a SignIn, and those of the form."""
_OWN_FIELDS = {
    SignInWay.NONE: (),
    SignInWay.BASIC: ("user", "password"),
    SignInWay.BEARER: ("token",),
    SignInWay.CERTIFICATE: ("certificate", "key"),
}
"""What each way needs; what was typed for another one does not count."""


def _build_pem_field(label: str, help_text: str = "") -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=MAX_PEM,
        widget=forms.Textarea({"rows": 4, "class": "mu-mono", **PLAIN_INPUT}),
        help_text=help_text,
    )


def _build_secret_field(label: str, help_text: str = "") -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        strip=False,
        max_length=MAX_TOKEN,
        widget=forms.PasswordInput(
            PLAIN_INPUT | {"autocomplete": "new-password"}, render_value=True
        ),
        help_text=help_text,
    )


class PrometheusForm(forms.Form):
    """The address of a Prometheus and one way of signing in. Stored secrets are never shown."""

    prometheus_url = forms.CharField(
        label="Address of Prometheus",
        required=False,
        max_length=255,
        widget=forms.TextInput(
            {
                "placeholder": "https://prometheus.example.com:9090",
                "inputmode": "url",
                **PLAIN_INPUT,
            }
        ),
        help_text=(
            "One that has the figures of NVIDIA's DCGM exporter, and of cAdvisor. It is asked "
            "every few seconds what pods and nodes use. Empty: only CPU and memory are known, "
            "from the metrics server, and idle limits stop nothing."
        ),
    )
    prometheus_matcher = forms.CharField(
        label="Only series with",
        required=False,
        max_length=MAX_MATCHERS,
        widget=forms.TextInput({"placeholder": 'cluster="prod-1"', **PLAIN_INPUT}),
        help_text=(
            "Where it has the series of several clusters, as Mimir and Thanos do: "
            'cluster="prod-1", with commas between several labels. Empty: all of them.'
        ),
    )
    prometheus_way = forms.ChoiceField(
        label="How Muster signs in to Prometheus", required=False, widget=forms.RadioSelect
    )
    prometheus_user = forms.CharField(
        label="User",
        required=False,
        max_length=255,
        widget=forms.TextInput(PLAIN_INPUT),
    )
    prometheus_password = _build_secret_field("Password")
    prometheus_token = _build_secret_field(
        "Token", "On OpenShift that of a service account with the role cluster-monitoring-view."
    )
    prometheus_certificate = _build_pem_field("Client certificate", "PEM text.")
    prometheus_key = _build_pem_field("Key of the client certificate", "PEM text, not encrypted.")
    prometheus_ca = _build_pem_field(
        "Certificate authority of Prometheus",
        "PEM text. Empty where this machine trusts the server's certificate.",
    )
    prometheus_headers = forms.CharField(
        label="Headers",
        required=False,
        max_length=MAX_HEADER_TEXT,
        widget=forms.Textarea(
            {
                "rows": 2,
                "class": "mu-mono",
                "placeholder": "X-Scope-OrgID: my-tenant",
                **PLAIN_INPUT,
            }
        ),
        help_text="One a line, sent with every request: the tenant of Mimir, say.",
    )

    def __init__(
        self, *args: Any, is_local: bool = False, stored_way: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._is_local = is_local
        self._stored_url = str((kwargs.get("initial") or {}).get("prometheus_url", ""))
        choices = [(way.value, label) for way, label in _WAY_LABELS.items()]
        if stored_way:
            choices.insert(0, (STORED_SIGN_IN, "Keep what is stored"))
        self.fields["prometheus_way"].choices = choices  # type: ignore[attr-defined]
        self.fields["prometheus_way"].initial = choices[0][0]
        self._default_way = choices[0][0]

    def clean_prometheus_url(self) -> str:
        url: str = self.cleaned_data["prometheus_url"].strip()
        if url and (
            why := url_safety.find_url_problem(
                url, url_safety.build_cluster_policy(is_local=self._is_local)
            )
        ):
            raise forms.ValidationError(f"The address of Prometheus {why}.")
        return url

    def clean_prometheus_matcher(self) -> str:
        try:
            return parse_matchers(self.cleaned_data["prometheus_matcher"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None

    def clean_prometheus_way(self) -> str:
        return self.cleaned_data["prometheus_way"] or self._default_way

    def clean(self) -> dict[str, Any]:
        cleaned_data = super().clean() or {}
        if self.errors.keys() & {"prometheus_url", "prometheus_way", *_FIELDS.values()}:
            return cleaned_data
        url = cleaned_data["prometheus_url"]
        if cleaned_data["prometheus_way"] == STORED_SIGN_IN:
            # Whoever may name another server may not be sent what is kept for this one.
            if url and urlsplit(url)[:2] != urlsplit(self._stored_url)[:2]:
                self.add_error(
                    "prometheus_way",
                    "What is stored is for the address before. Choose how Muster signs in here.",
                )
            return cleaned_data
        try:
            self._sign_in = self._read_sign_in()
        except ValueError as error:
            self.add_error("prometheus_headers", str(error))
            return cleaned_data
        if problem := self._sign_in.find_problem():
            field, text = problem
            self.add_error(_FIELDS[field], text)
        elif self._sign_in.has_secrets and _is_in_the_clear(url):
            self.add_error(
                "prometheus_url",
                "It starts with http, so credentials and headers would travel in the clear. Give "
                "its https address.",
            )
        return cleaned_data

    @property
    def matcher(self) -> str:
        """What the cluster's series have; "" without an address. Only of a valid form."""
        cleaned_data = self.cleaned_data
        return str(cleaned_data["prometheus_matcher"]) if cleaned_data["prometheus_url"] else ""

    @property
    def sign_in(self) -> SignIn | None:
        """How Muster signs in; None where what is stored stays. Only of a valid form."""
        if not self.cleaned_data["prometheus_url"]:
            return SignIn()
        is_unchanged = self.cleaned_data["prometheus_way"] == STORED_SIGN_IN
        return None if is_unchanged else self._sign_in

    def _read_sign_in(self) -> SignIn:
        cleaned_data = self.cleaned_data
        way = SignInWay(cleaned_data["prometheus_way"])
        texts = {
            name: cleaned_data[_FIELDS[name]]
            if name == "password"
            else cleaned_data[_FIELDS[name]].strip()
            for name in (*_OWN_FIELDS[way], "ca")
        }
        return SignIn(way=way, headers=_parse_headers(cleaned_data["prometheus_headers"]), **texts)


def _parse_headers(text: str) -> dict[str, str]:
    """Return the headers of lines `Name: value`. Raises ValueError."""
    headers: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError("Write one header a line, as Name: value.")
        headers[name.strip()] = value.strip()
    return headers


def _is_in_the_clear(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")

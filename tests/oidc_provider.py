"""An OpenID Connect provider on loopback, as the standard says: discovery, authorization with PKCE,
tokens, keys and userinfo.

It is strict where a client could be wrong (the redirect address, its secret, the verifier, a code
used twice), and tests make it wrong itself by its attributes.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "muster-console", "s3cret-of-the-client"
WELL_KNOWN = "/.well-known/openid-configuration"
Claims = dict[str, Any]


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Provider:
    """Use it in a with block. `people` are those who can sign in there, by their `sub`; `who` is
    the one at the browser now.
    """

    def __init__(self) -> None:
        self.key, self.kid = _new_key(), "key-1"
        self.people: dict[str, Claims] = {}
        self.who = ""
        self.secret = SECRET
        self.auth_methods = {"client_secret_basic", "client_secret_post"}
        """How the client is registered to send its secret; "none" where it has none."""
        self.redirects = [f"{origin}/sign-on/callback" for origin in ("http://testserver",)]
        self.asks = False
        """Whether a page asks who it is, as for a person; otherwise it is `who`."""
        self.change_document: Callable[[Claims], None] = lambda document: None
        self.change_claims: Callable[[Claims], None] = lambda claims: None
        """Changes the claims of an ID token before it is signed."""
        self.change_user_info: Callable[[Claims], None] = lambda claims: None
        """Changes what userinfo answers."""
        self.signed: Callable[[Claims], str] = self.sign
        self.refusal = {"error": "access_denied"}
        """What somebody who is not known is sent back with."""
        self.token_refusal = {
            "error": "invalid_client",
            "error_description": "the client is not known by this",
        }
        """What a client is answered with that does not prove itself."""
        self.broken: set[str] = set()
        """Paths that answer with 500."""
        self.answers: dict[str, bytes] = {}
        """What paths answer instead, as it is."""
        self.content_type = "application/json"
        """The media type of `answers`."""
        self.asked_paths: list[str] = []
        """Paths that were asked for."""
        self.queries: list[dict[str, str]] = []
        """What came with the requests for authorization."""
        self._codes: dict[str, dict[str, str]] = {}
        self._tokens: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def __enter__(self) -> "Provider":
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def options(self, **more: object) -> dict[str, object]:
        """For `settings.OPTIONS.model_copy`."""
        return {
            "oidc_issuer": self.url,
            "oidc_client_id": CLIENT,
            "oidc_client_secret": SECRET,
            "oidc_name": "Example SSO",
        } | more

    def sign(self, claims: Claims) -> str:
        return jwt.encode(claims, self.key, "RS256", headers={"kid": self.kid})

    def new_key(self) -> None:
        """Sign with a key of the same name that is not published: `key` is what everybody can
        see.
        """
        other, kid = _new_key(), self.kid
        self.signed = lambda claims: jwt.encode(claims, other, "RS256", headers={"kid": kid})

    def description(self) -> Claims:
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "end_session_endpoint": f"{self.url}/end",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "scopes_supported": ["openid", "profile", "email"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
        self.change_document(document)
        return document

    def authorize(self, query: dict[str, str]) -> tuple[int, str]:
        """The address that the browser is sent back to, or what is wrong with the request."""
        self.queries.append(query)
        if query.get("client_id") != CLIENT or query.get("redirect_uri") not in self.redirects:
            return 400, "no such client, or not its redirect address"
        if query.get("response_type") != "code" or "openid" not in query.get("scope", "").split():
            return 400, "a code for openid is what there is"
        if query.get("code_challenge_method") != "S256" or not query.get("code_challenge"):
            return 400, "PKCE is needed"
        who = query.get("who") or self.who
        back = {"state": query.get("state", "")}
        if who not in self.people:
            back |= self.refusal
        else:
            code = secrets.token_urlsafe(16)
            self._codes[code] = query | {"who": who}
            back |= {"code": code}
        return 302, f"{query['redirect_uri']}?{urlencode(back)}"

    def token(self, form: dict[str, str], header: str) -> tuple[int, Claims]:
        method = "client_secret_post" if "client_secret" in form else "none"
        given = form.get("client_id"), form.get("client_secret", "")
        if header.startswith("Basic "):
            method = "client_secret_basic"
            name, _, secret = (
                base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
            )
            given = unquote_plus(name), unquote_plus(secret)
        wanted = CLIENT, "" if method == "none" else self.secret
        if method not in self.auth_methods or given != wanted:
            return 401, self.token_refusal
        request = self._codes.pop(form.get("code", ""), None)
        if (
            request is None
            or form.get("grant_type") != "authorization_code"
            or form.get("redirect_uri") != request["redirect_uri"]
        ):
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != request["code_challenge"]:
            return 400, {
                "error": "invalid_grant",
                "error_description": "the verifier is not that of the challenge",
            }
        now = int(time.time())
        claims: Claims = {
            "iss": self.url,
            "sub": request["who"],
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
        }
        claims |= {"nonce": request["nonce"]} if "nonce" in request else {}
        self.change_claims(claims)
        access = secrets.token_urlsafe(16)
        self._tokens[access] = request["who"]
        return 200, {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": self.signed(claims),
        }

    def userinfo(self, header: str) -> tuple[int, Claims]:
        who = self._tokens.get(header.removeprefix("Bearer "))
        if who is None:
            return 401, {"error": "invalid_token"}
        claims = {"sub": who} | self.people[who]
        self.change_user_info(claims)
        return 200, claims

    def keys(self) -> Claims:
        published = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [published | {"kid": self.kid, "use": "sig", "alg": "RS256"}]}

    def _handler(provider) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                if not self._begins(url.path):
                    return
                if url.path == WELL_KNOWN:
                    self._json(200, provider.description())
                elif url.path == "/keys":
                    self._json(200, provider.keys())
                elif url.path == "/userinfo":
                    self._json(*provider.userinfo(self.headers.get("Authorization", "")))
                elif url.path == "/authorize" and provider.asks and "who" not in query:
                    self._page(query)
                elif url.path == "/authorize":
                    status, answer = provider.authorize(query)
                    self._answer(
                        status,
                        answer.encode(),
                        "text/plain",
                        {"Location": answer} if status == 302 else {},
                    )
                else:
                    self._json(404, {"error": "not_found"})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                if not self._begins(self.path):
                    return
                form = {name: values[0] for name, values in parse_qs(body).items()}
                if self.path == "/token":
                    self._json(*provider.token(form, self.headers.get("Authorization", "")))
                else:
                    self._json(404, {"error": "not_found"})

            def _begins(self, path: str) -> bool:
                provider.asked_paths.append(path)
                if path in provider.broken:
                    self._json(500, {"error": "server_error"})
                elif path in provider.answers:
                    self._answer(200, provider.answers[path], provider.content_type, {})
                return path not in provider.broken and path not in provider.answers

            def _page(self, query: dict[str, str]) -> None:
                links = "".join(
                    f'<p><a href="/authorize?{urlencode(query | {"who": who})}">I am {who}</a></p>'
                    for who in provider.people
                )
                page = (
                    "<!doctype html><html lang=en><title>Example SSO</title><h1>Example "
                    f"SSO</h1>{links}"
                )
                self._answer(200, page.encode(), "text/html; charset=utf-8", {})

            def _json(self, status: int, body: Claims) -> None:
                self._answer(status, json.dumps(body).encode(), "application/json", {})

            def _answer(
                self, status: int, body: bytes, content: str, headers: dict[str, str]
            ) -> None:
                self.send_response(status)
                for name, value in (
                    {"Content-Type": content, "Content-Length": str(len(body))} | headers
                ).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                """Tests look at `asked`."""

        return Handler

"""Single sign-on by OpenID Connect.

django-allauth carries the flow (state, PKCE, the stages of a sign-in). This package adds what it
leaves out: where requests may lead and how long they take, the nonce, the signature of every ID
token, and who may become which user.
"""

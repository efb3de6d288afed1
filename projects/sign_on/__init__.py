"""Single sign-on by OpenID Connect: what is asked of the provider, what is believed of its answers,
and what becomes of them here.

django-allauth carries the flow (state, PKCE, the stages of a sign-in). This room adds what it
leaves out: where requests may lead and how long they take, the nonce, the signature of every ID
token, and who may become which user.
"""

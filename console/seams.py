"""Seams: where a floor uses what floors above it provide.

A floor declares a Protocol and a seam for it in its `seams`; the floor above registers what
provides it, mostly a module, in its AppConfig.ready.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

P = TypeVar("P")


class SeamError(RuntimeError):
    """A seam that nobody has registered a provider at, or a second one where there is one."""


class SharedSeam(Generic[P]):
    """A seam that any number of floors provide; P is its Protocol."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._providers: list[P] = []

    def register(self, provider: P) -> None:
        """Add a provider, which changes nothing where it is registered already."""
        if provider not in self._providers:
            self._providers.append(provider)

    def get_all(self) -> Sequence[P]:
        """Return the providers in the order of their registration. Raises SeamError."""
        if not self._providers:
            raise SeamError(f"Nothing provides {self.name}.")
        return self._providers

    @contextmanager
    def override(self, *providers: P) -> Iterator[None]:
        """Put other providers in place of the registered ones, for a test."""
        registered, self._providers = self._providers, list(providers)
        try:
            yield
        finally:
            self._providers = registered


class Seam(SharedSeam[P]):
    """A seam that one floor provides."""

    def register(self, provider: P) -> None:
        """Register the provider. Raises SeamError where there is another."""
        if self._providers and provider not in self._providers:
            raise SeamError(f"{self.name} has another provider: {self._providers[0]!r}.")
        super().register(provider)

    def get(self) -> P:
        """Return the provider. Raises SeamError."""
        return self.get_all()[0]

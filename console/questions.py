"""The question before something is deleted, as a page and in the page's dialog."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from console.http import render_page


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question before something is deleted or removed."""

    title: str
    """Without its question mark."""
    button: str
    crumbs: Sequence[tuple[str, str]]
    """The (address, words) of the pages above; Cancel leads to the last."""
    effects: Sequence[str] = ()
    """What happens, in paragraphs."""
    template: str = ""
    """A template that says what happens, in place of `effects`."""
    blocked_title: str = "It cannot be deleted now"
    blocked_text: str = ""
    """Why it cannot be done now."""
    is_blocked: bool = False
    """Whether it cannot be done now, and `template` says why."""
    is_answered_in_place: bool = True
    """Whether a refusal is shown in the dialog instead of on a page of its own."""

    @property
    def has_button(self) -> bool:
        """Whether it can be done."""
        return not (self.blocked_text or self.is_blocked)

    @property
    def back(self) -> str:
        """The address that Cancel leads to."""
        return self.crumbs[-1][0]


def render_question(
    request: HttpRequest, question: Question, context: Mapping[str, Any] | None = None
) -> HttpResponse:
    """Render the question as a page, or in the page's dialog; `context` is for its template.

    The answer is posted to the address of the question.
    """
    return render_page(
        request,
        "parts/question.html",
        "parts/_question.html",
        {"question": question, **(context or {})},
    )

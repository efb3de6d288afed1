"""The request as views see it, and answers as pages or parts of pages."""

from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django_htmx.middleware import HtmxDetails


class Request(HttpRequest):
    """A request, perhaps sent by htmx. `projects.http.Request` is one of a signed-in user."""

    htmx: HtmxDetails


def render_page(
    request: HttpRequest, template: str, part: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """Render the whole page, or only its part where htmx asks to replace that."""
    htmx = getattr(request, "htmx", None)
    chosen_template = (
        part if htmx and not htmx.boosted and not htmx.history_restore_request else template
    )
    answer = render(request, chosen_template, context, status=status)
    answer["Vary"] = "HX-Request"
    return answer


def render_form(
    request: HttpRequest, form: BaseForm, context: dict[str, Any], status: int = 0
) -> HttpResponse:
    """Render a form as a page, or in the page's dialog; the status is 422 where it has errors."""
    return render_page(
        request,
        "parts/form.html",
        "parts/_form.html",
        {"form": form} | context,
        status=status or (422 if form.errors else 200),
    )


def build_empty_state(
    icon: str, title: str, text: str, *, action: str = "", url: str = "", in_dialog: bool = False
) -> dict[str, Any]:
    """Build the part of a table's context that says why it is empty, and what to do next.

    Without a `url` there is no button.
    """
    return {
        "empty": "parts/_empty.html",
        "icon": icon,
        "title": title,
        "text": text,
        "action": action if url else "",
        "url": url,
        "dialog": url if in_dialog else "",
    }


def redirect_with_message(request: HttpRequest, url: str, message: str = "") -> HttpResponse:
    """Send the browser to another page after an action, also when htmx asked.

    `message` is shown there.
    """
    if message:
        messages.success(request, message)
    if getattr(request, "htmx", None):
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return redirect(url)

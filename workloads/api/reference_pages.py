"""The pages that show the REST API, made from its OpenAPI document."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from workloads.api import reference

MAX_SEARCH_CHARS = 100


@require_safe
def show_reference(request: HttpRequest) -> HttpResponse:
    """Show all operations, or those of an area and with the words of a search."""
    search = " ".join(request.GET.get("q", "").replace("\x00", "").split())[:MAX_SEARCH_CHARS]
    area = request.GET.get("area", "")
    words = search.casefold().split()
    operations = [
        each
        for each in reference.list_operations()
        if each.matches(words) and area in ("", each.area)
    ]
    groups = [
        (key, heading, [each for each in operations if each.area == key])
        for key, heading in reference.AREAS.items()
    ]
    context = {
        "search": search,
        "area": area,
        "areas": reference.AREAS.items(),
        "groups": [group for group in groups if group[2]],
        "number": len(operations),
        "token_url": request.build_absolute_uri(reverse("api-token")),
    }
    return render(request, "rest/reference.html", context)


@require_safe
def show_operation(request: HttpRequest, operation: str) -> HttpResponse:
    """Show one operation: its parameters, its body, its answers, and a command."""
    found = reference.find_operation(operation)
    if found is None:
        raise Http404("The REST API has no such operation.")
    answers = reference.list_answers(found)
    context = {
        "operation": found,
        "area": reference.AREAS.get(found.area, ""),
        "parameters": reference.list_parameters(found),
        "fields": reference.list_request_fields(found),
        "answers": [each for each in answers if not each.is_refusal],
        "refusals": [each for each in answers if each.is_refusal],
        "command": reference.build_command(found),
    }
    return render(request, "rest/operation.html", context)

"""The page "Why can't I?", which explains one permission in one scope."""

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from projects import permission_explanations, scope_choices
from projects.http import Request
from projects.permissions import EVERYTHING, Entity, Permission, Verb
from projects.rights import view_permission
from projects.scopes import TENANT, Scope


class WhyForm(forms.Form):
    """The permission and the scope to explain; offers the scopes that the user knows."""

    permission = forms.ChoiceField(
        label="What",
        choices=[
            (f"{entity}:{verb}", Permission(entity, verb).words.capitalize())
            for entity in Entity
            for verb in Verb
            if Permission(entity, verb) in EVERYTHING
        ],
    )
    scope = forms.ChoiceField(label="Where")

    def __init__(self, *args: object, reader: Request, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        known = dict(
            scope_choices.list_scope_choices(reader.user, view_permission(Entity.PROJECTS))
        ) | {TENANT: "Muster as a whole"}
        self.fields["scope"].choices = [(str(scope), words) for scope, words in known.items()]  # type: ignore[attr-defined]


@require_safe
def explain(request: Request) -> HttpResponse:
    """Show the form, and the explanation where a question is asked."""
    question = request.GET.get("permission", ""), request.GET.get("scope", "")
    answer = (
        permission_explanations.explain_permission(request.user, *_parse_question(*question))
        if any(question)
        else None
    )
    form = WhyForm(reader=request, initial={"permission": question[0], "scope": question[1]})
    return render(request, "access/why.html", {"form": form, "answer": answer})


def _parse_question(permission: str, scope: str) -> tuple[Permission, Scope]:
    try:
        parsed = Permission.parse(permission)
        parsed_scope = Scope.parse(scope or str(TENANT))
    except ValueError:
        raise Http404("There is no such permission, or no such scope.") from None
    if parsed not in EVERYTHING:
        raise Http404("There is no such permission.")
    return parsed, parsed_scope

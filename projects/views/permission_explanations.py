"""The page "Why can't I?", which explains one permission in one scope."""

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from console.form_widgets import SuggestingInput
from projects import permission_explanations, scope_choices
from projects.http import Request
from projects.permissions import EVERYTHING, Entity, Permission, Verb
from projects.rights import view_permission
from projects.scopes import TENANT, Scope

_KNOWN = view_permission(Entity.PROJECTS)
_WHOLE = scope_choices.name_scope(TENANT)


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
    scope = forms.CharField(label="Where")

    def __init__(self, *args: object, reader: Request, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        choices = scope_choices.list_scope_choices(
            reader.user, _KNOWN, most=scope_choices.MAX_OPTIONS + 1
        )
        scope_labels = {TENANT: _WHOLE} | dict(choices)
        field = self.fields["scope"]
        if len(choices) > scope_choices.MAX_OPTIONS:
            suggestions = list(scope_labels.values())[: scope_choices.MAX_OPTIONS]
            field.widget = SuggestingInput(suggestions, placeholder="Project, and its name")
            field.help_text = (
                "There are too many to list: type Project, Department or Cluster and the name, or "
                f"{_WHOLE}."
            )
        else:
            field.widget = forms.Select(
                choices=[(str(scope), words) for scope, words in scope_labels.items()]
            )


@require_safe
def explain(request: Request) -> HttpResponse:
    """Show the form, and the explanation where a question is asked."""
    permission, place = request.GET.get("permission", ""), request.GET.get("scope", "")
    form = WhyForm(reader=request, initial={"permission": permission, "scope": place})
    answer = None
    if permission or place:
        parsed, scope = _parse_permission(permission), _find_scope(request, place)
        if scope is None:
            text = "There is no such scope that you may see. Type its whole name."
            context = {"form": form, "answer": None, "unknown": text}
            return render(request, "access/why.html", context, status=422)
        answer = permission_explanations.explain_permission(request.user, parsed, scope)
        if isinstance(form.fields["scope"].widget, SuggestingInput):
            form.initial["scope"] = scope_choices.name_scope(scope)
    return render(request, "access/why.html", {"form": form, "answer": answer})


def _parse_permission(text: str) -> Permission:
    try:
        parsed = Permission.parse(text)
    except ValueError:
        parsed = None
    if parsed not in EVERYTHING:
        raise Http404("There is no such permission.")
    return parsed


def _find_scope(request: Request, text: str) -> Scope | None:
    """Find the scope that an address means by its key, or a person by its words.

    None for words that name none; raises Http404 for a key that is none.
    """
    words = " ".join(text.split())
    if words in ("", _WHOLE):
        return TENANT
    if ":" not in words and words != str(TENANT):
        return scope_choices.find_scope(request.user, _KNOWN, words)
    try:
        return Scope.parse(words)
    except ValueError:
        raise Http404("There is no such scope.") from None

"""Policies in the words of Run:ai's API, parsed and serialized.

`defaults` and `rules` have the names of a submission's fields.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from msgspec import structs

from console.rest_bodies import Problem, RestBody, build_body_type, clean_name, read_body
from workloads import policing
from workloads.policing.kinds import DEFAULT, LEAST, LOCKED, MOST, OPTIONS, REQUIRED, STEP, Pairs
from workloads.policing.rules import Rule
from workloads.specs import Architecture

_ATTRIBUTES = {"required": REQUIRED, "min": LEAST, "max": MOST, "step": STEP, "options": OPTIONS}


@cache
def _build_field_names(architecture: Architecture) -> dict[str, str]:
    """Return the API's field names with ours.

    Of a distributed workload, what standard ones have as well stands below `worker`.
    """
    names = {}
    for name, policy_field in policing.CATALOGUE.items():
        field = policy_field.field
        is_shared = field.architecture is None
        has_word = field.rest and policy_field.policy.is_in_rest
        if has_word and (is_shared or field.architecture is architecture):
            is_below = is_shared and architecture is Architecture.DISTRIBUTED
            names[f"worker.{field.rest}" if is_below else field.rest] = name
    return names


class RuleBody(RestBody, forbid_unknown_fields=True):
    """What a policy says of a field, beside its default."""

    required: Any = None
    min: Any = None
    max: Any = None
    step: Any = None
    options: Any = None
    can_edit: bool | None = None

    def build_rule(self) -> dict[str, Any]:
        """Return the rule in our words."""
        values = structs.asdict(self)
        rule = {
            attribute: values[word]
            for word, attribute in _ATTRIBUTES.items()
            if values[word] is not None
        }
        if isinstance(self.options, list):
            rule[OPTIONS] = [
                each["value"] if isinstance(each, Mapping) and "value" in each else each
                for each in self.options
            ]
        return rule | ({LOCKED: True} if self.can_edit is False else {})


@cache
def _get_body_type(architecture: Architecture) -> type[RestBody]:
    """Return the struct of the body that the policies of an architecture have."""
    trees: dict[str, Any] = {"defaults": {}, "rules": {}}
    for place in _list_accepted_names(architecture):
        for tree, hint in ((trees["defaults"], Any), (trees["rules"], RuleBody | None)):
            _put_at_path(tree, place, hint)
    return build_body_type("Body", {"policy": trees}, RestBody)


def _list_accepted_names(architecture: Architecture) -> dict[str, str]:
    names = _build_field_names(architecture)
    if architecture is Architecture.STANDARD:
        return names
    # Answers have some names without `worker`; Run:ai's clients send all with it.
    return names | {
        f"worker.{api_name.removeprefix('worker.')}": ours for api_name, ours in names.items()
    }


def parse_rules(body: object, architecture: Architecture) -> tuple[dict[str, Any], list[Problem]]:
    """Return our rules as JSON has them, not validated, and the problems of the body."""
    if not isinstance(body, Mapping):
        return {}, [("policy", "policy must be an object with defaults and rules.")]
    # Of what this version does not know, nothing may be said: clients send it empty.
    filled_fields = {name: value for name, value in body.items() if value}
    reading = read_body(_get_body_type(architecture), {"policy": filled_fields}, _describe_unknown)
    rules: dict[str, dict[str, Any]] = {}
    for place, field in _list_accepted_names(architecture).items():
        default = attrgetter(f"policy.defaults.{place}")(reading.value)
        if default is not None:
            rules.setdefault(field, {})[DEFAULT] = _flatten_instances(default)
        rule = attrgetter(f"policy.rules.{place}")(reading.value)
        if rule is not None:
            rules.setdefault(field, {}).update(rule.build_rule())
    return rules, reading.problems


def _describe_unknown(path: str, name: str, field_names: Sequence[str]) -> Problem:
    place = f"{path}.{clean_name(name)}"
    is_tree = path != "policy" and "canEdit" not in field_names
    return place, (
        f"{place} is not a field that this version's policies can speak of."
        if is_tree
        else f"{place} is not supported by this version."
    )


def serialize_rules(rules: Mapping[str, Rule], architecture: Architecture) -> dict[str, Any]:
    """Return rules in the words of the API.

    Rules for which it has no word are left out.
    """
    api_names = {attribute: name for name, attribute in _build_field_names(architecture).items()}
    defaults: dict[str, Any] = {}
    api_rules: dict[str, Any] = {}
    for name, rule in policing.serialize_rules(rules).items():
        if name not in api_names:
            continue
        if DEFAULT in rule:
            _put_at_path(defaults, api_names[name], _serialize_value(name, rule[DEFAULT]))
        api_rule = {
            word: rule[attribute] for word, attribute in _ATTRIBUTES.items() if attribute in rule
        }
        if OPTIONS in rule:
            api_rule["options"] = [{"value": each} for each in rule[OPTIONS]]
        if rule.get(LOCKED):
            api_rule["canEdit"] = False
        if api_rule:
            _put_at_path(api_rules, api_names[name], api_rule)
    return {"defaults": defaults, "rules": api_rules}


def select_wordless_rules(rules: Mapping[str, Any], architecture: Architecture) -> dict[str, Any]:
    """Return the stored rules for which the API has no word: no answer shows them."""
    worded_fields = set(_build_field_names(architecture).values())
    return {name: rule for name, rule in rules.items() if name not in worded_fields}


def get_body_path(field: str, attribute: str, architecture: Architecture) -> str:
    """Return where in the body an attribute of one of our fields is."""
    api_name = next(
        (name for name, ours in _build_field_names(architecture).items() if ours == field), ""
    )
    if attribute == DEFAULT:
        return f"policy.defaults.{api_name}"
    word = next(
        (word for word, ours in _ATTRIBUTES.items() if ours == attribute),
        "canEdit" if attribute == LOCKED else "",
    )
    return ".".join(filter(None, ("policy.rules", api_name, word)))


def _flatten_instances(value: Any) -> Any:
    """Return names with values as an object; the API has them as a list of instances."""
    if isinstance(value, Mapping) and isinstance(value.get("instances"), list):
        return {
            str(each.get("name", "")): str(each.get("value", ""))
            for each in value["instances"]
            if isinstance(each, Mapping)
        }
    return value


def _serialize_value(name: str, value: Any) -> Any:
    if isinstance(policing.CATALOGUE[name].kind, Pairs):
        return {"instances": [{"name": key, "value": text} for key, text in value.items()]}
    return value


def _put_at_path(tree: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for name in above:
        tree = tree.setdefault(name, {})
    tree[last] = value

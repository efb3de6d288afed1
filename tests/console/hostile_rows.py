"""Rows of every model, and hostile text in every text field of every row.

New models and fields are found by themselves.
"""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from django.apps import apps
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from console.encryption import EncryptedTextField
from projects.models import AuditEntry
from workloads.models import QuotaTrial, Workload
from workloads.specs import Environment, Pair, Variable, decode_spec, encode_spec
from workloads.trials.changes import Change, ChangeKind, build_change_fields
from workloads.trials.results import ProjectWaits, TrialResult, Waits, encode_result

OURS = ("projects", "clusters", "environments", "workloads")
HOSTILE = """'" onmk=1 x='<mk>{{6*7777}}"""
"""It gets out of an attribute in either quotes, opens an element, and would be computed by a
template.
"""
SHORT = """'" onmk=1<mk>"""
ESCAPED = ('" onmk=1', "<mk>", "46662")
"""Texts that no page has anywhere, unless it let the hostile text through."""
NOT_TYPED = frozenset(
    {
        *(
            "status",
            "phase",
            "desired",
            "architecture",
            "framework",
            "job_kind",
            "role",
            "key",
            "priority",
            "part",
            "old",
            "new",
            "scope",
        ),
        *(
            "cpu_request",
            "cpu_limit",
            "memory_request",
            "memory_limit",
            "gpu_memory",
            "access",
            "password",
            "secret_hash",
            "client_id",
        ),
        *(
            "mode",
            "codename",
            "app_label",
            "model",
            "session_key",
            "session_data",
            "provider",
            "kind",
            "type",
            "job_uid",
            "uid",
            "Log.path",
        ),
    }
)
"""Fields whose texts are words of the program or digests.

Nobody types them, and another word is no state that exists.
"""
NOT_TEXTS = frozenset(
    {
        "spec",
        "permissions",
        "capabilities",
        "rules",
        "locked",
        "job",
        "pod_group",
        "gaps",
        "before",
        "after",
        "changes",
        "result",
    }
)
"""JSON with a grammar, which its readers rely on; some of it is filled by its own functions."""


def list_models() -> Iterator[type[models.Model]]:
    return (
        model
        for model in apps.get_models()
        if model._meta.app_label in OURS and not model._meta.proxy
    )


def create_rows_of_every_model() -> list[str]:
    """Create a row of each model that has none, and return the models where that failed.

    Their constraints ask for more than a type.
    """
    left = []
    for model in list_models():
        try:
            with transaction.atomic():
                get_or_create_row(model)
        except (IntegrityError, ValueError, TypeError):
            left.append(model._meta.label)
    return left


def get_or_create_row(model: type[models.Model]) -> models.Model:
    """Return the first row, or a new one with a value in every required field."""
    found = model._base_manager.first()
    if found is not None:
        return found
    given = {}
    for field in model._meta.concrete_fields:
        if (
            not (field.primary_key and field.has_default())
            and not field.null
            and not isinstance(field, models.AutoField)
        ):
            given[field.name] = _build_value(field)
    made = model(**{name: value for name, value in given.items() if value is not None})
    made.save(force_insert=True)
    return made


def _build_value(field: Any) -> Any:
    if field.has_default():
        return None
    if field.is_relation:
        return get_or_create_row(field.related_model)
    if field.choices:
        return field.choices[0][0]
    if isinstance(field, models.UUIDField):
        return uuid.uuid4()
    if isinstance(field, models.CharField | models.TextField):
        return "" if field.blank else f"x{uuid.uuid4().hex}"[: field.max_length or 40]
    if isinstance(field, models.DateTimeField):
        return timezone.now()
    if isinstance(field, models.GenericIPAddressField):
        return "127.0.0.1"
    if isinstance(field, models.JSONField):
        return {}
    return (
        1
        if isinstance(field, models.IntegerField | models.DecimalField | models.FloatField)
        else None
    )


def list_text_fields(model: type[models.Model]) -> Iterator[Any]:
    """Yield the text fields that somebody, or a cluster, has written."""
    for field in model._meta.concrete_fields:
        is_text = isinstance(field, models.CharField | models.TextField) and not isinstance(
            field, EncryptedTextField
        )
        is_long_enough = (getattr(field, "max_length", None) or 1000) >= len(SHORT) + 3
        if (
            is_text
            and is_long_enough
            and not field.choices
            and not field.primary_key
            and not {field.name, f"{model.__name__}.{field.name}"} & NOT_TYPED
        ):
            yield field


def fill_hostile_texts() -> int:
    """Put hostile text into every text of every row, and return the number of fields."""
    count = 0
    for model in list_models():
        if model is AuditEntry:
            continue
        texts = list(list_text_fields(model))
        jsons = [
            field
            for field in model._meta.concrete_fields
            if isinstance(field, models.JSONField) and field.name not in NOT_TEXTS
        ]
        count += len(texts) + len(jsons)
        for number, row in enumerate(model._base_manager.all()):
            values = {field.name: _hostile(field, number) for field in texts}
            values |= {field.name: _replace_leaves(getattr(row, field.name)) for field in jsons}
            if values:
                model._base_manager.filter(pk=row.pk).update(**values)
    for workload in Workload.objects.all():
        Workload.objects.filter(pk=workload.pk).update(spec=_hostile_spec(workload.spec))
    QuotaTrial.objects.update(**_hostile_trial())
    entry = {field.name: _hostile(field, 0) for field in list_text_fields(AuditEntry)}
    AuditEntry.objects.create(
        **entry,
        event="update",
        before={HOSTILE: HOSTILE, "a": [HOSTILE]},
        after={HOSTILE: {"b": HOSTILE}},
    )
    return count


def _hostile(field: Any, number: int) -> str:
    """Return a hostile text that differs for each row: many are unique."""
    most = (field.max_length or 1000) - 3
    return f"{HOSTILE if len(HOSTILE) <= most else SHORT}{number}"


def _replace_leaves(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_leaves(inner) for key, inner in value.items()} or {"a": HOSTILE}
    if isinstance(value, list):
        return [_replace_leaves(inner) for inner in value]
    return HOSTILE if isinstance(value, str) else value


def _hostile_trial() -> dict[str, Any]:
    now = timezone.now()
    waits = ProjectWaits(1, HOSTILE, 1, Waits(), Waits(), Waits())
    result = TrialResult(now, now, False, waits, [waits, waits], 0, True, 1, 1, 1, [])
    change = Change(ChangeKind.PROJECT, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    return build_change_fields([change]) | {"result": encode_result(result)}


def _hostile_spec(stored: Any) -> Any:
    spec = decode_spec(stored)
    environment = Environment(
        image=HOSTILE,
        command=(HOSTILE,),
        args=(HOSTILE, HOSTILE),
        variables=(Variable(HOSTILE, HOSTILE),),
        working_dir=HOSTILE,
    )
    pairs = (Pair(HOSTILE, HOSTILE),)
    setup = replace(
        spec.setup,
        environment=environment,
        annotations=pairs,
        labels=pairs,
        node_type=HOSTILE,
        node_pools=(HOSTILE,),
    )
    return encode_spec(replace(spec, name=HOSTILE, setup=setup))

"""The commands of every resource, built from its entry in the table."""

import json
from collections.abc import Mapping
from typing import Any

import click

from muster_cli import contexts
from muster_cli.actions import projects
from muster_cli.actions import resources as actions
from muster_cli.actions.submissions import merge_values, set_value
from muster_cli.commands.changes import confirm
from muster_cli.commands.documents import load_document
from muster_cli.commands.invocation import Invocation
from muster_cli.errors import UsageProblem
from muster_cli.output.formats import OutputFormat, write_items, write_value
from muster_cli.output.tables import build_columns
from muster_cli.resource_types import Resource, Verb, get_value
from muster_cli.resources import RESOURCES

SECRETS = ("clientSecret", "temporaryPassword", "secret")
"""What an answer tells once: it is shown after what was made."""


class ResourceGroup(click.Group):
    """The commands of a noun; what REST does not offer is refused with what to use instead."""

    def __init__(self, resource: Resource, **named: Any) -> None:
        super().__init__(**named)
        self.resource = resource

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        for verb, (reason, instead) in self.resource.absent.items():
            if arguments[:1] == [verb]:
                raise UsageProblem(f"There is no {self.resource.noun} {verb}. {reason}", instead)
        return super().resolve_command(context, arguments)


def build_group(noun: str) -> click.Group:
    """Build the group of a noun, with the commands that REST offers for it."""
    resource = RESOURCES[noun]
    builders = {
        Verb.LIST: _build_list,
        Verb.GET: _build_get,
        Verb.CREATE: _build_create,
        Verb.UPDATE: _build_update,
        Verb.DELETE: _build_delete,
    }
    group = ResourceGroup(resource, name=noun, help=resource.help)
    for verb, build in builders.items():
        if verb in resource.verbs:
            group.add_command(build(resource))
    if noun == "project":
        group.add_command(set_project)
    return group


def _get_invocation() -> Invocation:
    invocation = click.get_current_context().find_object(Invocation)
    assert invocation is not None
    return invocation


def _build_output_option() -> click.Option:
    return click.Option(
        ["-o", "--output"],
        type=click.Choice([each.value for each in OutputFormat]),
        default=OutputFormat.TABLE.value,
        show_default=True,
        help="How the answer is written.",
    )


def _list_kind_options(resource: Resource) -> list[click.Option]:
    if not resource.kinds:
        return []
    return [click.Option(["--kind"], type=click.Choice(list(resource.kinds)), help="Its kind.")]


def _hyphenate(name: str) -> str:
    return "".join(f"-{each.lower()}" if each.isupper() else each for each in name)


def _list_filter_options(resource: Resource) -> list[click.Option]:
    options = [
        click.Option([f"--{_hyphenate(name)}", name], help=f"REST's {name}.")
        for name in resource.filters
        if name != "projectId"
    ]
    if "projectId" in resource.filters:
        options.append(
            click.Option(["-p", "--project"], help="Those that can be used in this project.")
        )
    return options


def _build_list(resource: Resource) -> click.Command:
    def callback(limit: int, output: str, **typed: Any) -> None:
        invocation, kind = _get_invocation(), typed.pop("kind", None) or ""
        query = {name: typed[name] for name in resource.filters if typed.get(name)}
        if typed.get("project"):
            project = projects.get_project(invocation.session, typed["project"])
            query["projectId"] = str(project["id"])
        query |= {
            name: value
            for name, value in {
                "search": typed.get("search"),
                "filterBy": ",".join(typed.get("conditions") or ()),
            }.items()
            if value
        }
        items = list(
            actions.list_resources(
                invocation.session, resource, kind=kind, query=query, limit=limit + 1
            )
        )
        _write_items(invocation, resource, items[:limit], OutputFormat(output))
        if len(items) > limit:
            invocation.notify(f"There are more than {limit}: --limit shows more.")

    searching = [
        click.Option(["--search"], help="Only those whose name has this text."),
        click.Option(
            ["--filter", "conditions"], multiple=True, help="A condition of REST, as name=^a."
        ),
    ]
    return click.Command(
        "list",
        callback=callback,
        params=[
            *_list_kind_options(resource),
            *_list_filter_options(resource),
            *(searching if resource.is_searchable else []),
            click.Option(
                ["--limit"],
                type=click.IntRange(1, 10_000),
                default=200,
                show_default=True,
                help="At most so many.",
            ),
            _build_output_option(),
        ],
        help=f"List {resource.plural_title}.",
    )


def _build_get(resource: Resource) -> click.Command:
    def callback(name: str, output: str, kind: str | None = None) -> None:
        invocation = _get_invocation()
        item = actions.get_resource(invocation.session, resource, name, kind or "")
        _write_item(invocation, resource, item, OutputFormat(output))

    return click.Command(
        "get",
        callback=callback,
        params=[
            click.Argument(["name"]),
            *_list_kind_options(resource),
            _build_output_option(),
        ],
        help=f"Show {resource.article_title} by its name or id.",
    )


def _list_body_options(resource: Resource) -> list[click.Option]:
    options = [
        click.Option(
            ["-f", "--file"], metavar="FILE", help="What REST takes, in YAML or JSON; - reads it."
        ),
        click.Option(
            ["--set", "changes"],
            multiple=True,
            metavar="PATH=VALUE",
            help=f"A value, as {'spec.' if resource.is_grouped else ''}description=x; JSON is read "
            "as such. Repeatable.",
        ),
    ]
    if resource.is_scoped:
        options += [
            click.Option(
                ["--scope"],
                type=click.Choice(["tenant", "cluster", "department", "project"]),
                help="Where it holds; project where --project is given.",
            ),
            click.Option(["-p", "--project"], metavar="NAME", help="The project of its scope."),
        ]
    return options


def build_body(
    invocation: Invocation, resource: Resource, name: str, typed: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a file and the flags say, the flags over the file. Raises UsageProblem."""
    value = load_document(typed["file"]) if typed["file"] else {}
    if not isinstance(value, Mapping):
        raise UsageProblem("The file is no object.")
    changes: dict[str, Any] = {}
    if name and resource.name != "id":
        set_value(changes, resource.name, name)
    for each in typed["changes"]:
        path, sign, text = each.partition("=")
        if not (path and sign):
            raise UsageProblem(f"{each} is not as PATH=VALUE.")
        set_value(changes, path, _read_value(text))
    if typed.get("project"):
        project = projects.get_project(invocation.session, typed["project"])
        changes.setdefault("meta", {})["projectId"] = str(project["id"])
    if typed.get("scope") or typed.get("project"):
        changes.setdefault("meta", {})["scope"] = typed.get("scope") or "project"
    return merge_values(value, changes)


def _read_value(text: str) -> Any:
    """Return a value that is typed: JSON where it is some, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _build_create(resource: Resource) -> click.Command:
    def callback(output: str, name: str | None = None, **typed: Any) -> None:
        invocation = _get_invocation()
        body = build_body(invocation, resource, name or "", typed)
        item = actions.create_resource(invocation.session, resource, body, typed.get("kind") or "")
        chosen = OutputFormat(output)
        if chosen is not OutputFormat.TABLE:
            _write_item(invocation, resource, item, chosen)
            return
        # Some answers are no item, only word that it is on its way.
        called = get_value(item, resource.name) or name or ""
        invocation.terminal.write_line(f"The {resource.title} {called} is made.")
        for secret in SECRETS:
            if item.get(secret):
                invocation.terminal.write_line(f"{secret}: {item[secret]}")
                invocation.notify("It is shown only this once.")

    has_name = resource.name != "id"
    return click.Command(
        "create",
        callback=callback,
        params=[
            *([click.Argument(["name"], required=False)] if has_name else []),
            *_list_kind_options(resource),
            *_list_body_options(resource),
            _build_output_option(),
        ],
        help=f"Make {resource.article_title} of a file, of values, or of both.",
    )


def _build_update(resource: Resource) -> click.Command:
    def callback(name: str, output: str, **typed: Any) -> None:
        invocation = _get_invocation()
        body = build_body(invocation, resource, "", typed)
        if not body:
            raise UsageProblem("There is nothing to change.", "Give --set PATH=VALUE or --file.")
        item = actions.update_resource(
            invocation.session, resource, name, body, typed.get("kind") or ""
        )
        if OutputFormat(output) is OutputFormat.TABLE:
            invocation.terminal.write_line(f"The {resource.title} {name} is changed.")
        else:
            _write_item(invocation, resource, item, OutputFormat(output))

    return click.Command(
        "update",
        callback=callback,
        params=[
            click.Argument(["name"]),
            *_list_kind_options(resource),
            *_list_body_options(resource),
            _build_output_option(),
        ],
        help=f"Change the values that are given of {resource.article_title}.",
    )


def _build_delete(resource: Resource) -> click.Command:
    def callback(names: tuple[str, ...], yes: bool, kind: str | None = None) -> None:
        invocation = _get_invocation()
        if len(names) > 1 and not yes:
            confirm(invocation, f"Delete {len(names)} of them?")
        for name in names:
            actions.delete_resource(invocation.session, resource, name, kind or "")
            invocation.terminal.write_line(f"The {resource.title} {name} is deleted.")

    return click.Command(
        "delete",
        callback=callback,
        params=[
            click.Argument(["names"], nargs=-1, required=True),
            *_list_kind_options(resource),
            click.Option(["-y", "--yes"], is_flag=True, help="Do not ask."),
        ],
        help=f"Delete {resource.article_title} by its name or id.",
    )


def _write_items(
    invocation: Invocation, resource: Resource, items: list[Any], output: OutputFormat
) -> None:
    write_items(
        items,
        build_columns(resource.columns),
        output,
        invocation.terminal,
        name=resource.name,
        nothing=f"There is no {resource.title} that you may see.",
    )


def _write_item(
    invocation: Invocation, resource: Resource, item: dict[str, Any], output: OutputFormat
) -> None:
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(item, output, invocation.terminal)
    else:
        _write_items(invocation, resource, [item], output)


@click.command("set")
@click.argument("name")
def set_project(name: str) -> None:
    """Make NAME the project that commands are about."""
    invocation = _get_invocation()
    project = projects.get_project(invocation.session, name)
    if not invocation.settings.context:
        raise UsageProblem("There is no context to keep it in.", "Set MUSTER_PROJECT instead.")
    contexts.set_value(invocation.settings.context, "project", str(project["name"]))
    invocation.terminal.write_line(f"Commands are about the project {project['name']} now.")

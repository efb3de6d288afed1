"""`submit`: a command for each framework, its flags from the catalogue of fields; and `copy`."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from muster_cli.actions import submissions, workloads
from muster_cli.commands.changes import wait_with_reports
from muster_cli.commands.documents import load_document
from muster_cli.commands.field_options import build_options, build_spec, list_fields
from muster_cli.commands.invocation import Invocation, read_duration
from muster_cli.errors import ExitCode, Refused, UsageProblem
from muster_cli.fields import Catalogue, Framework, load_catalogue
from muster_cli.output.formats import OutputFormat, write_value
from muster_cli.output.live_view import LiveView
from muster_cli.output.tables import build_rows, render_table
from muster_cli.output.workload_columns import POD_COLUMNS, WORKLOAD_COLUMNS

STANDARD = "standard"
WATCH_SECONDS = 2.0
GPU_HELP = (
    "\n\n--gpus alone asks for whole GPUs. --gpu-portion and --gpu-memory keep the number of "
    "devices that {source} has; where there is none they are of one."
)
_FORMATS = [OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML, OutputFormat.NAME]


def _list_common_options() -> list[click.Option]:
    """Return what every submission takes beside its fields."""
    return [
        click.Option(["-p", "--project"], metavar="NAME", help="The project; that of the context."),
        click.Option(["--template"], metavar="NAME", help="A template; flags are merged over it."),
        click.Option(
            ["-f", "--file"],
            metavar="FILE",
            help="A submission in YAML or JSON as REST has it, - for standard input; flags are "
            "merged over it.",
        ),
        click.Option(
            ["--name-prefix"], is_flag=True, help="The name gets six random characters at its end."
        ),
        click.Option(
            ["--dry-run"],
            is_flag=True,
            help="Show the objects, whether it fits and what the cluster says; submit nothing.",
        ),
        click.Option(["--watch"], is_flag=True, help="Show its pods until it has ended."),
        click.Option(
            ["--wait"], is_flag=True, help="Return when it has ended: 0 if it completed, else 1."
        ),
        click.Option(
            ["--timeout"],
            metavar="DURATION",
            callback=read_duration,
            help="How long --wait waits; exits with 124.",
        ),
        click.Option(
            ["-o", "--output"],
            type=click.Choice([each.value for each in _FORMATS]),
            default=OutputFormat.TABLE.value,
            show_default=True,
            help="How the answer is written.",
        ),
    ]


class SubmitGroup(click.Group):
    """A command for each framework, built when it is asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [*(each.command for each in load_catalogue().frameworks), STANDARD]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        catalogue = load_catalogue()
        framework = next((each for each in catalogue.frameworks if each.command == name), None)
        if framework is None and name != STANDARD:
            return None
        return build_kind_command(catalogue, framework)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (each.command, f"{each.label}, distributed.") for each in load_catalogue().frameworks
        ]
        with formatter.section("Commands"):
            formatter.write_dl(
                [*rows, (STANDARD, "One pod, or several that know nothing of each other.")]
            )


def build_kind_command(catalogue: Catalogue, framework: Framework | None) -> click.Command:
    """Build the command that submits a workload of a framework, or a standard one."""
    fields = list_fields(catalogue, framework, distributed=framework is not None)
    has_master = framework is not None

    def callback(
        name: str, words: tuple[str, ...], no_master: bool = False, **typed: Any
    ) -> submissions.Body | None:
        spec = build_spec(fields, catalogue.volumes, typed)
        if words:
            spec["command"] = submissions.join_command(words)
        if framework is not None:
            spec["distributedFramework"] = framework.value
        body: dict[str, Any] = {"name": name, "spec": spec}
        if no_master:
            body["noMaster"] = True
        master = build_spec(fields, catalogue.volumes, typed, of_master=True)
        return _submit_body(body, master, framework is not None, typed)

    about = f"a {framework.label} workload" if framework else "a standard workload"
    label = framework.master if framework else ""
    return click.Command(
        framework.command if framework else STANDARD,
        callback=callback,
        params=[
            click.Argument(["name"]),
            click.Argument(["words"], nargs=-1, metavar="[-- COMMAND...]", type=click.UNPROCESSED),
            *_list_common_options(),
            *([click.Option(["--no-master"], is_flag=True, help="Workers only.")] if label else []),
            *build_options(fields, catalogue.volumes, has_master=has_master),
        ],
        help=f"Submit {about} called NAME; what follows -- is its command."
        + GPU_HELP.format(source="the file or template")
        + (
            f"\n\nThe {label} is as the workers are; each flag that is of pods is also there as "
            "--master-..., for it alone."
            if label
            else ""
        ),
    )


@click.group(
    cls=SubmitGroup,
    invoke_without_command=True,
    params=[click.Option(["--name"], help="The name of the workload."), *_list_common_options()],
)
@click.pass_context
def submit(context: click.Context, /, name: str | None, **typed: Any) -> None:
    """Submit a workload: of a framework by its flags, or any from a file or a template."""
    if context.invoked_subcommand is not None:
        option_names = [each for each, value in typed.items() if value and each != "output"]
        if name or option_names:
            raise UsageProblem(
                f"--{(option_names or ['name'])[0].replace('_', '-')} stands behind "
                f"`submit {context.invoked_subcommand}`, and not before it."
            )
        return
    if not (typed["file"] or typed["template"]):
        click.echo(context.get_help())
        return
    _submit_body({"name": name} if name else {}, {}, None, typed)


def _submit_body(
    body: dict[str, Any],
    master: Mapping[str, Any],
    distributed: bool | None,
    typed: Mapping[str, Any],
) -> submissions.Body | None:
    """Submit what was typed, over the file and the template that are named; return the answer."""
    invocation = click.get_current_context().find_object(Invocation)
    assert invocation is not None
    base: dict[str, Any] = {}
    template: dict[str, Any] = {}
    if typed["file"]:
        base = submissions.read_file_body(load_document(typed["file"]))
    if typed["template"]:
        template = submissions.get_template(invocation.session, typed["template"])
        base["templateId"] = template["meta"]["id"]
        distributed = template["architecture"] == "Distributed"
    # The server merges the body's spec over the template's, which says how GPUs are shared too.
    given_spec = submissions.merge_values(template.get("spec") or {}, base.get("spec") or {})
    spec = submissions.complete_gpus(given_spec, body.get("spec", {}))
    body = submissions.merge_values(base, body | {"spec": spec})
    if distributed is None:
        distributed = submissions.is_distributed(body)
    if master:
        body = submissions.change_master(body, template, master, load_catalogue().fields)
    if typed["name_prefix"]:
        body["useGivenNameAsPrefix"] = True
    if not body.get("name"):
        raise UsageProblem("The workload has no name.", "Give it as --name, or in the file.")
    return send_submission(invocation, body, typed, distributed=distributed)


def send_submission(
    invocation: Invocation, body: dict[str, Any], typed: Mapping[str, Any], *, distributed: bool
) -> submissions.Body | None:
    """Submit or preview a body, write the answer, and wait where that was asked for.

    Returns what was submitted; None for a preview.
    """
    session, output = invocation.session, OutputFormat(typed["output"])
    project = typed["project"] or ("" if body.get("projectId") else invocation.settings.project)
    body = submissions.complete_body(session, body, project)
    send = submissions.preview if typed["dry_run"] else submissions.submit
    try:
        submitted = send(session, body, distributed=distributed)
    except Refused as refusal:
        raise submissions.name_flags(refusal, load_catalogue()) from None
    if typed["dry_run"]:
        _write_preview(invocation, submitted, output)
        return None
    for warning in submitted.get("warnings") or []:
        invocation.notify(f"Warning: {warning}")
    name, workload_id = submitted["name"], str(submitted["workloadId"])
    if output is OutputFormat.TABLE:
        invocation.terminal.write_line(f"{name} is submitted.")
    elif output is OutputFormat.NAME:
        invocation.terminal.write_line(name)
    else:
        write_value(submitted, output, invocation.terminal)
    invocation.terminal.flush()
    if typed["watch"]:
        watch_workload(invocation, workload_id)
    elif typed["wait"]:
        wait_with_reports(invocation, workload_id, "ended", timeout=typed["timeout"])
    return submitted


def _write_preview(
    invocation: Invocation, preview: Mapping[str, Any], output: OutputFormat
) -> None:
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        write_value(preview, output, invocation.terminal)
        return
    fit = preview["fit"]
    checks = [fit[name] for name in ("scheduler", "quota", "nodes", "volumes") if name in fit]
    for text in (fit["message"], *(each["message"] for each in checks), preview["note"]):
        if text:
            invocation.terminal.write_line(f"# {text}")
    for check in preview["checks"]:
        invocation.terminal.write_line(f"# {check['kind']} {check['name']}: {check['message']}")
    invocation.terminal.write_line(preview["manifest"].rstrip("\n"))


def watch_workload(invocation: Invocation, workload_id: str) -> None:
    """Show a workload and its pods until it has ended; raises Exit with 1 unless it completed."""
    view, session = LiveView(invocation.terminal), invocation.session
    while True:
        workload = workloads.get_by_id(session, workload_id, workloads.PATIENCE_SECONDS)
        pods = workloads.list_pods(session, workload_id, patience=workloads.PATIENCE_SECONDS)
        lines = [
            *render_table(
                *build_rows(WORKLOAD_COLUMNS, [workload], is_wide=False), invocation.terminal
            ),
            "",
            *render_table(*build_rows(POD_COLUMNS, pods, is_wide=False), invocation.terminal),
        ]
        view.draw(lines if pods else lines[:2])
        if workload["phase"] in workloads.ENDED:
            break
        time.sleep(WATCH_SECONDS)
    if workload["phase"] != "Completed":
        raise click.exceptions.Exit(ExitCode.FAILED)


def build_copy_command(name: str) -> click.Command:
    """Build `copy`, which takes the flags of all fields."""
    catalogue = load_catalogue()
    fields: Sequence[Any] = list_fields(catalogue, None, distributed=None)

    def callback(workload: str, new_name: str, from_project: str | None, **typed: Any) -> None:
        invocation = click.get_current_context().find_object(Invocation)
        assert invocation is not None
        session = invocation.session
        workload_item = workloads.get_workload(
            session, workload, from_project or invocation.settings.project
        )
        body, distributed = submissions.get_submission(session, workload_item)
        body["name"] = new_name
        body["spec"] = submissions.merge_spec(
            body["spec"], build_spec(fields, catalogue.volumes, typed)
        )
        if typed["name_prefix"]:
            body["useGivenNameAsPrefix"] = True
        send_submission(invocation, body, typed, distributed=distributed)

    common = [each for each in _list_common_options() if each.name not in ("template", "file")]
    return click.Command(
        name,
        callback=callback,
        params=[
            click.Argument(["workload"]),
            click.Argument(["new_name"]),
            click.Option(["--from-project"], metavar="NAME", help="The project of WORKLOAD."),
            *common,
            *build_options(fields, catalogue.volumes, has_master=False),
        ],
        help="Submit WORKLOAD again as NEW_NAME, with the values that flags change.\n\n"
        "A master that differs from the workers stays as it is."
        + GPU_HELP.format(source="WORKLOAD"),
    )

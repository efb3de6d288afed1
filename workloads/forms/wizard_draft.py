"""A draft as the steps of the wizard: which of them is right, and which shows what is wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

from console.typed_forms import TypedForm
from projects.models import User
from workloads import journal
from workloads.forms import wizard_policies
from workloads.forms.draft_content import DraftContent
from workloads.forms.master_form import MasterForm
from workloads.forms.setup_form import SetupForm
from workloads.forms.steps import Step, get_start_field, get_step
from workloads.judgement import Judgement, judge_submission
from workloads.models import Workload
from workloads.policies import PoliciesInForce
from workloads.specs import Problem, Spec, find_problems


class WizardDraft(DraftContent):
    """A draft whose steps are judged.

    Forms hide their errors until `validate_step` makes them show.
    """

    def __init__(self, data: Mapping[str, Any], user: User) -> None:
        super().__init__(data, user)
        self._step_validity: dict[Step, bool] = {}
        self._judgements: dict[Spec, Judgement] = {}
        self.free_name = ""
        """A name to offer instead of one that is taken."""

    def validate_step(self, step: Step) -> bool:
        """Tell whether a step (before review) is valid.

        Its errors show beside their fields from now on.
        """
        if step not in self._step_validity:
            form = self.get_form(step)
            self._show_errors(form)
            for problem in self._find_problems(step):
                if get_step(problem.field) is step:
                    self.add_error(problem)
            self._add_policy_errors(step)
            if step is Step.START and not form.has_errors:
                self._check_name()
            self._step_validity[step] = not self._has_errors(form)
        return self._step_validity[step]

    def _add_policy_errors(self, step: Step) -> None:
        """Add what policies forbid of a step as errors of its fields."""
        judged = self.judge(step)
        if judged is None:
            return
        form = None if step is Step.START else self.setup
        for field, text in wizard_policies.locate_policy_issues(
            judged.spec, judged.policy_issues, form
        ):
            if get_step(field) is step:
                self.add_error(Problem(field, text))

    def add_refusals(self, step: Step) -> bool:
        """Add errors for what the chosen cluster cannot do of a step.

        Only where nothing else is wrong with the spec. Returns whether there are any.
        """
        judged = self.judge(step)
        refusals = [
            each for each in (judged.refusals if judged else ()) if get_step(each.field) is step
        ]
        for problem in refusals:
            self.add_error(problem)
        return bool(refusals)

    def judge(self, last_step: Step = Step.REVIEW) -> Judgement | None:
        """Judge what the steps up to and including `last_step` make, once for each spec.

        None without a project.
        """
        project = self.project
        if project is None:
            return None
        in_force = self.policies or PoliciesInForce(())
        spec = self.build_spec(last_step=last_step)
        if spec not in self._judgements:
            self._judgements[spec] = judge_submission(spec, project, in_force=in_force)
        return self._judgements[spec]

    def _find_problems(self, step: Step) -> Sequence[Problem]:
        judged = self.judge(step)
        return judged.problems if judged else find_problems(self.build_spec(last_step=step))

    def hide_errors(self, step: Step) -> None:
        """Show a step without its errors again."""
        self._show_errors(self.get_form(step), quiet=True)

    def find_invalid_step(self, before: Step) -> Step | None:
        """Return the first invalid step before this one, or None."""
        steps = self.steps
        earlier = steps[: steps.index(before)] if before in steps else steps[:-1]
        return next((step for step in earlier if not self.validate_step(step)), None)

    def add_error(self, problem: Problem) -> Step:
        """Add a problem as an error of its field; return the step that shows it."""
        step = get_step(problem.field)
        step = step if step in self.steps else Step.START
        form = self.get_form(step)
        self._show_errors(form)
        if step is Step.START:
            form.add_error_once(get_start_field(problem.field), problem.text)
        elif step is Step.SETUP:
            self.setup.add_error_at_path(problem.field, problem.text)
        else:
            path = problem.field.removeprefix("master.")
            self.master.add_error_at_path(f"setup.{path}", problem.text)
        return step

    def report_taken_name(self, text: str) -> None:
        """Add an error to the name, and offer a free one."""
        self._show_errors(self.start)
        self.start.add_error_once("name", text)
        if self.project is not None:
            self.free_name = journal.suggest_free_name(
                self.project, self.start.read("name", "") or self.get_values(Step.START)["name"][0]
            )

    def _check_name(self) -> None:
        if self.new_template is not None:
            return
        name, project = self.start.read("name"), self.project
        # Only early advice: another submission may take the name until this one is journalled,
        # which raises Clash then.
        if (
            project
            and Workload.objects.filter(project=project, name=name, released_at=None).exists()
        ):
            self.report_taken_name(
                f"The name {name} is taken in project {project.name}. Choose another."
            )

    def _show_errors(self, form: TypedForm, quiet: bool = False) -> None:
        if isinstance(form, SetupForm | MasterForm):
            form.show_errors(quiet)
        else:
            form.quiet = quiet

    def _has_errors(self, form: TypedForm) -> bool:
        if isinstance(form, SetupForm | MasterForm):
            return form.has_field_or_row_errors
        return form.has_errors

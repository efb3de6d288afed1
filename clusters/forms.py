"""What an administrator fills in about a project: it is a place on a cluster."""

from decimal import Decimal
from typing import Any

from django import forms
from django.core.validators import RegexValidator
from django.db import IntegrityError, transaction

from clusters.models import Cluster
from console.errors import Clash
from projects.models import Department, Project

NAME = RegexValidator(
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$", "Use lower-case letters, digits and dashes; start with a letter, end with a letter or a digit."
)
"""A DNS label that starts with a letter: what a namespace and a Queue can be named."""


class QuotaForm(forms.Form):
    """What of a project can be changed later."""

    department = forms.CharField(
        max_length=40,
        widget=forms.TextInput({"list": "departments", "autocomplete": "off"}),
        help_text="Projects of one department lend each other idle GPUs first. A new name makes a new department.",
    )
    gpu_quota = forms.DecimalField(
        label="GPU quota",
        required=False,
        min_value=Decimal(0),
        max_digits=10,
        decimal_places=2,
        help_text="GPUs that are its own, fractions too. Empty is without limit; 0 runs on what others leave idle.",
    )

    def saved(self, project: Project) -> Project:
        """The project as the form says, in the database. Raises Clash where its namespace is in use."""
        project.gpu_quota = self.cleaned_data["gpu_quota"]
        try:
            with transaction.atomic():
                project.department = Department.objects.get_or_create(name=self.cleaned_data["department"])[0]
                project.save()
        except IntegrityError:
            raise Clash("The name, or the namespace that follows from it, is in use already. Choose another name.", field="name") from None
        return project


class ProjectForm(QuotaForm):
    """A new project. Its namespace and Queue follow from its name, and stay."""

    name = forms.CharField(
        max_length=40,
        validators=[NAME],
        widget=forms.TextInput({"autocomplete": "off", "autocapitalize": "none"}),
        help_text="Lower-case letters, digits and dashes; at most 40 characters.",
    )
    cluster = forms.ModelChoiceField(Cluster.objects.defer("kubeconfig"), empty_label=None)
    field_order = ("name", "department", "cluster", "gpu_quota")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["gpu_quota"].initial = 1

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if Project.objects.filter(name=name).exists():
            raise forms.ValidationError("There is a project of this name already. Choose another name.")
        return name

    def saved(self, project: Project) -> Project:
        name = self.cleaned_data["name"]
        project.name, project.queue, project.namespace = name, name, f"muster-{name}"
        project.cluster = self.cleaned_data["cluster"]
        return super().saved(project)

"""What kind of workload it is: the fields of the first step."""

from workloads.specs.choices import Architecture, Configuration, Framework
from workloads.specs.fields.field import FactSection, Field, Place, PolicyData, PolicySection
from workloads.specs.fields.types import Choice

_CHOICES_ONLY = frozenset(("options",))

START_FIELDS = (
    Field(
        path="architecture",
        label="Workload architecture",
        type=Choice(Architecture),
        place=Place.START,
        fact="Architecture",
        fact_section=FactSection.WORKLOAD,
        policy=PolicyData(section=PolicySection.COUNT, attributes=_CHOICES_ONLY, is_preset=False),
    ),
    Field(
        path="framework",
        label="Framework",
        type=Choice(Framework),
        place=Place.START,
        rest="distributedFramework",
        rest_help="Of distributed workloads.",
        fact_section=FactSection.WORKLOAD,
        architecture=Architecture.DISTRIBUTED,
        policy=PolicyData(section=PolicySection.COUNT, attributes=_CHOICES_ONLY, is_preset=False),
    ),
    Field(
        path="configuration",
        label="Configuration",
        type=Choice(Configuration),
        place=Place.START,
        fact_section=FactSection.WORKLOAD,
        architecture=Architecture.DISTRIBUTED,
    ),
)

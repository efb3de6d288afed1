"""Run:ai's own client at what administrators do: the package as it is on PyPI, a real server
process, no cluster behind it.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.their_client import RunaiClient, models, runai
from tests.console_server import WebServer

ROWS = """
import json
from projects import actions, personal_keys
from projects.permissions import SYSTEM
from projects.scopes import TENANT
from tests.cast import make_cast
cast = make_cast()
account, secret = actions.create_service_account(TENANT, "admin", by=cast.alice, role=SYSTEM)
personal_keys.create_key("laptop", owner=cast.bob)
print(json.dumps([account.client_id, secret, str(cast.cluster.pk)]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WebServer, list[str]]]:
    """The server, and client id, secret and cluster of a service account that may do everything."""
    with WebServer(tmp_path_factory.mktemp("web")) as web:
        yield web, json.loads(web.python(ROWS))


@pytest.fixture(scope="module")
def client(server: tuple[WebServer, list[str]]) -> Iterator[Any]:
    web, (client_id, secret, _) = server
    with runai.ApiClient(
        runai.Configuration(client_id=client_id, client_secret=secret, runai_base_url=web.url)
    ) as api_client:
        yield RunaiClient(api_client)


def resources(gpus: float) -> list[Any]:
    share = models.NonNullResource(deserved=gpus, limit=-1, overQuotaWeight=2)
    return [
        models.ResourcesNullable(
            nodePool=models.ResourcesNodePool(id="1", name="default"), gpu=share
        )
    ]


@pytest.fixture(scope="module")
def project(client: Any, server: tuple[WebServer, list[str]]) -> dict[str, Any]:
    """A project of a department, both made by the client."""
    cluster = server[1][2]
    department = client.organizations.departments.create_department(
        models.DepartmentCreationRequest(name="vision", clusterId=cluster, resources=resources(8))
    )
    assert department.status_code == 201
    made = client.organizations.projects.create_project(
        models.ProjectCreationRequest(
            name="cars",
            clusterId=cluster,
            parentId=department.data["id"],
            resources=resources(4),
            schedulingRules=models.SchedulingRules(trainingJobTimeLimitSeconds=7200),
            defaultNodePools=["default"],
        )
    )
    assert made.status_code == 201
    return dict(made.data)


def test_a_department_and_a_project_with_a_quota(client: Any, project: dict[str, Any]) -> None:
    units = client.organizations
    (department,) = units.departments.get_departments(filter_by=["name==vision"]).data[
        "departments"
    ]
    assert department["resources"][0]["gpu"] == {"deserved": 8, "limit": -1, "overQuotaWeight": 2}
    assert (project["departmentName"], project["resources"][0]["gpu"]["deserved"]) == ("vision", 4)
    assert project["effective"]["schedulingRules"]["trainingJobTimeLimitSeconds"] == 7200
    assert units.departments.count_departments(filter_by=["name==vision"]).data == {"count": 1}
    assert units.projects.count_projects(filter_by=["name==cars"]).data == {"count": 1}
    patched = units.projects.patch_project_resources(project["id"], resources(3)[0]).data
    assert patched["resources"][0]["gpu"]["deserved"] == 3
    assert (
        units.departments.update_department_resources(department["id"], resources(6)[0]).data[
            "totalResources"
        ]["gpuQuota"]
        == 6
    )
    telemetry = models.TelemetryResponse.from_dict(
        units.projects.get_projects_telemetry(
            "GPU_QUOTA", department_id=department["id"], group_by=["ProjectId"]
        ).data
    )
    assert [(each.value, each.groups[0].name) for each in telemetry.values] == [("3", "cars")]
    assert units.departments.get_departments_telemetry(
        models.OrgUnitTelemetryType.GPU_QUOTA, department_id=department["id"]
    ).data["values"] == [{"value": "6", "groups": []}]
    changed = models.ProjectUpdateRequest(description="Cars only", resources=resources(4))
    assert units.projects.update_project(project["id"], changed).data["description"] == "Cars only"


def test_a_user_gets_a_role_in_the_project(client: Any, project: dict[str, Any]) -> None:
    access = client.authentication_and_authorization
    made = models.UserPostResponse.from_dict(
        client.authentication_and_authorization.users.create_user(
            models.UserCreationRequest1(email="carla@example.com")
        ).data
    )
    assert (made.username, len(made.temp_password) > 10) == ("carla@example.com", True)
    assert "carla@example.com" in [
        each["username"] for each in client.authentication_and_authorization.users.get_users().data
    ]
    (role,) = [each for each in access.roles.get_roles_v1().data if each["name"] == "L1 researcher"]
    given = access.access_rules.create_access_rule(
        models.AccessRuleCreationFields(
            subjectId=made.username,
            subjectType="user",
            roleId=role["id"],
            scopeId=project["id"],
            scopeType="project",
        )
    )
    rule = models.AccessRule.from_dict(given.data)
    assert (given.status_code, rule.role_name, rule.scope_name) == (
        201,
        "L1 researcher",
        "Project cars",
    )
    found = access.access_rules.get_access_rules(
        scope_type="project", scope_id=project["id"], role_id=role["id"]
    ).data
    assert [each["subjectId"] for each in found["accessRules"]] == [made.username]
    assert access.access_rules.delete_access_rule(str(rule.id)).status_code == 200
    assert (
        access.access_rules.get_access_rules(scope_type="project", scope_id=project["id"]).data[
            "totalRecords"
        ]
        == 0
    )
    password = client.authentication_and_authorization.users.reset_user_password(made.id).data
    assert password["tempPassword"] != made.temp_password


def test_an_asset_and_a_template_and_a_workload_of_it(client: Any, project: dict[str, Any]) -> None:
    meta = models.AssetCreationRequest(name="small", scope="project", projectId=int(project["id"]))
    compute = client.workload_assets.compute.create_compute_asset(
        models.ComputeCreationRequest(
            meta=meta,
            spec=models.ComputeAssetSpec(
                gpuDevicesRequest=1, cpuCoreRequest=0.5, cpuMemoryRequest="1G"
            ),
        )
    )
    assert (compute.status_code, compute.data["spec"]["gpuDevicesRequest"]) == (202, 1)
    listed = client.workload_assets.compute.list_compute_assets(
        project_id=int(project["id"]), usage_info=True
    ).data["entries"]
    assert "small" in [each["meta"]["name"] for each in listed]
    spec = models.DistributedTemplateSpec(
        image="team/train:1",
        distributedFramework="PyTorch",
        numWorkers=2,
        compute=models.SupersetSpecAllOfCompute(cpuCoreRequest=0.5),
    )
    templates = client.workloads.workload_templates
    place = {"scopeType": "project", "scopeId": project["id"]}
    made = templates.create_distributed_template(
        models.DistributedTemplateCreationRequest(
            meta=models.TemplateCreationMetaFields(name="train", **place),
            spec=spec,
            masterSpecSameAsWorker=True,
        )
    )
    template = models.DistributedTemplate.from_dict(made.data)
    assert (made.status_code, template.spec.num_workers, template.meta.scope_id) == (
        202,
        2,
        project["id"],
    )
    update = models.DistributedTemplateUpdateRequest(
        meta=models.TemplateUpdateMetaFields(name="train"),
        spec=models.DistributedTemplateSpec(
            image="team/train:2", distributedFramework="PyTorch", numWorkers=3, command="x"
        ),
    )
    assert (
        templates.update_distributed_template(template.meta.id, update).data["spec"]["image"]
        == "team/train:2"
    )
    patch = models.DistributedTemplatePatchRequest(
        fieldsToClear=["spec.command"], spec=models.DistributedTemplateSpec(numWorkers=3)
    )
    patched = templates.patch_distributed_template(template.meta.id, patch).data["spec"]
    assert (patched["numWorkers"], "command" in patched) == (3, False)
    assert [
        each["meta"]["name"] for each in templates.list_distributed_templates().data["entries"]
    ] == ["train"]
    workload = client.workloads.distributed.create_distributed(
        models.DistributedCreationRequest(
            name="of-template",
            projectId=project["id"],
            clusterId=project["clusterId"],
            templateId=template.meta.id,
        )
    )
    assert (
        workload.status_code,
        workload.data["spec"]["image"],
        workload.data["spec"]["numWorkers"],
    ) == (202, "team/train:2", 3)
    assert client.workloads.workloads.count_workloads(filter_by=["name==of-template"]).data == {
        "count": 1
    }
    assert templates.delete_distributed_template(template.meta.id).status_code == 202


def test_a_policy_is_read_and_a_workload_against_it_refused(
    client: Any, project: dict[str, Any]
) -> None:
    policies = client.policies.policy
    rules = {"rules": {"worker": {"numWorkers": {"min": 1, "max": 2}}}}
    body = models.DistributedPolicyOverwriteRequestV2.from_dict(
        {
            "meta": {"scope": "project", "projectId": int(project["id"]), "name": "few"},
            "policy": rules,
        }
    )
    assert (
        policies.overwrite_distributed_policy_v2(
            distributed_policy_overwrite_request_v2=body
        ).status_code
        == 200
    )
    answer = policies.get_distributed_policy_v2(
        scope=models.ScopeType.PROJECT, project_id=project["id"]
    ).data
    assert answer["policy"]["rules"]["numWorkers"] == {"min": 1, "max": 2}
    creation_request = models.DistributedCreationRequest(
        name="many",
        projectId=project["id"],
        clusterId=project["clusterId"],
        spec=models.DistributedSpecSpec(image="a", distributedFramework="PyTorch", numWorkers=9),
    )
    with pytest.raises(runai.exceptions.ApiException) as refused:
        client.workloads.distributed.create_distributed(creation_request)
    assert "spec.numWorkers" in str(refused.value)
    assert (
        policies.delete_distributed_policy(scope="project", project_id=project["id"]).status_code
        == 202
    )


def test_programs_and_what_was_done(client: Any, project: dict[str, Any]) -> None:
    access = client.authentication_and_authorization
    account = access.service_accounts.create_service_account(
        models.ServiceAccountCreationRequest(name="ci")
    ).data
    made = models.ServiceAccountPostResponse.from_dict(account)
    assert models.ServiceAccount.from_dict(
        access.service_accounts.get_service_account_by_id(made.id).data
    ).enabled
    assert (
        access.service_accounts.regenerate_service_account_secret(made.id).data["clientSecret"]
        != made.client_secret
    )
    assert "ci" in [each["name"] for each in access.applications.get_applications().data]
    assert access.service_accounts.delete_service_account_by_id(made.id).status_code == 200
    assert access.me.get_me_access_rules().data["totalRecords"] == 1
    where = access.permissions.get_permitted_scopes(
        models.GetPermittedScopesRequest(resourceType="project")
    ).data
    assert where["tenant"] is True
    now = datetime.now(UTC)
    logs = client.audit.audit_logs.get_audit_logs(
        now - timedelta(hours=1), now + timedelta(hours=1), number_of_samples=500
    ).data["audit_logs"]
    assert ("create", "project", "cars") in [
        (each["action"], each["entity_type"], each["entity_name"]) for each in logs
    ]
    assert {each["result"] for each in logs} <= {"Succeeded", "Failed"}
    file = client.audit.audit_logs.download_audit_logs(
        now - timedelta(hours=1),
        now + timedelta(hours=1),
        file_type="JSON",
        filter_by=["entity_type==project"],
    ).data["audit_logs"]
    assert [each for each in logs if each["entity_type"] == "project"] == file


def test_somebodys_key_is_found_and_ended(client: Any) -> None:
    keys = client.authentication_and_authorization.access_keys
    [key] = models.AccessKeysAdministration.from_dict(
        keys.get_access_keys_administration(created_by="bob").data
    ).access_keys
    assert (key.name, key.created_by) == ("laptop", "bob")
    assert keys.delete_access_key_by_id_administration(key.id).status_code == 200
    assert keys.get_access_keys_administration().data == {"accessKeys": []}

"""The addresses of this app's REST API."""

from django.urls import path

from projects.api import access_keys, authorization, roles, service_accounts, users
from projects.api.audit import AuditLogView
from projects.api.audit_files import AuditLogFileView
from projects.api.departments import (
    DepartmentResourcesView,
    DepartmentsCountView,
    DepartmentsView,
    DepartmentView,
)
from projects.api.me import MeView
from projects.api.name_availability import PATH as NAME_PATH
from projects.api.name_availability import DepartmentNameView
from projects.api.projects import ProjectsCountView
from projects.api.sign_in_requests import ClaimView, DeviceView
from projects.api.telemetry import DepartmentsTelemetryView, ProjectsTelemetryView
from projects.api.token import TokenView

of_access = [
    path("authorization/roles", roles.RolesView.as_view(), name="api-roles"),
    path("authorization/roles/<str:key>", roles.RoleView.as_view(), name="api-role"),
    path("authorization/access-rules", authorization.RulesView.as_view(), name="api-access-rules"),
    path(
        "authorization/access-rules/count",
        authorization.RulesCountView.as_view(),
        name="api-access-rules-count",
    ),
    path(
        "authorization/me/access-rules",
        authorization.MyRulesView.as_view(),
        name="api-my-access-rules",
    ),
    path(
        "authorization/access-rules/<int:pk>",
        authorization.RuleView.as_view(),
        name="api-access-rule",
    ),
    path(
        "authorization/permissions", authorization.PermissionsView.as_view(), name="api-permissions"
    ),
    path(
        "authorization/permitted-scopes",
        authorization.ScopesView.as_view(),
        name="api-permitted-scopes",
    ),
    path("users", users.UsersView.as_view(), name="api-users"),
    path("users/count", users.UsersCountView.as_view(), name="api-users-count"),
    path("users/<int:pk>", users.UserView.as_view(), name="api-user"),
    path("users/<int:pk>/password", users.UserPasswordView.as_view(), name="api-user-password"),
    path("users/<int:pk>/logout", users.UserLogoutView.as_view(), name="api-user-logout"),
    path(
        "users/<int:pk>/access-keys",
        access_keys.UserKeysView.as_view(),
        name="api-user-access-keys",
    ),
    path("service-accounts", service_accounts.AccountsView.as_view(), name="api-service-accounts"),
    path(
        "service-accounts/<int:pk>",
        service_accounts.AccountView.as_view(),
        name="api-service-account",
    ),
    path(
        "service-accounts/<int:pk>/secret",
        service_accounts.AccountSecretView.as_view(),
        name="api-service-account-secret",
    ),
    # As service accounts were called before.
    path("apps", service_accounts.AppsView.as_view(), name="api-apps"),
    path("apps/<int:pk>", service_accounts.AppView.as_view(), name="api-app"),
    path("apps/<int:pk>/secret", service_accounts.AppSecretView.as_view(), name="api-app-secret"),
    path("access-keys", access_keys.KeysView.as_view(), name="api-access-keys"),
    path("access-keys/<int:pk>", access_keys.KeyView.as_view(), name="api-access-key"),
    path(
        "access-keys/<int:pk>/secret",
        access_keys.KeySecretView.as_view(),
        name="api-access-key-secret",
    ),
    path(
        "administration/access-keys",
        access_keys.EverybodysKeysView.as_view(),
        name="api-everybodys-access-keys",
    ),
    path(
        "administration/access-keys/<int:access_key>",
        access_keys.AnybodysKeyView.as_view(),
        name="api-anybodys-access-key",
    ),
]

urlpatterns = [
    path("token", TokenView.as_view(), name="api-token"),
    path("token/device", DeviceView.as_view(), name="api-token-device"),
    path("token/device/claim", ClaimView.as_view(), name="api-token-device-claim"),
    path("me", MeView.as_view(), name="api-me"),
    path("org-unit/departments", DepartmentsView.as_view(), name="api-departments"),
    path(
        "org-unit/departments/count", DepartmentsCountView.as_view(), name="api-departments-count"
    ),
    path(
        "org-unit/departments/telemetry",
        DepartmentsTelemetryView.as_view(),
        name="api-departments-telemetry",
    ),
    path(
        f"org-unit/departments/{NAME_PATH}",
        DepartmentNameView.as_view(),
        name="api-departments-name",
    ),
    path("org-unit/departments/<int:pk>", DepartmentView.as_view(), name="api-department"),
    path(
        "org-unit/departments/<int:pk>/resources",
        DepartmentResourcesView.as_view(),
        name="api-department-resources",
    ),
    path("org-unit/projects/count", ProjectsCountView.as_view(), name="api-projects-count"),
    path(
        "org-unit/projects/telemetry",
        ProjectsTelemetryView.as_view(),
        name="api-projects-telemetry",
    ),
    path("audit/log", AuditLogView.as_view(), name="api-audit-log"),
    path("audit/log/file", AuditLogFileView.as_view(), name="api-audit-log-file"),
    *of_access,
]

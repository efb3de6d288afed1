"""The addresses of the pages of this app."""

from django.urls import URLPattern, URLResolver, path

from projects.views import (
    access_rules,
    account,
    audit,
    custom_roles,
    departments,
    impersonation,
    permission_explanations,
    personal_keys,
    project_members,
    project_table,
    projects,
    second_factor,
    service_accounts,
    sessions,
    settings,
    sign_in,
    sign_in_requests,
    sign_on,
    user_keys,
    users,
)

signing_in = [
    path("sign-in", sign_in.sign_in, name="sign-in"),
    path("sign-in/code", sign_in.enter_code, name="sign-in-code"),
    path("sign-in/program", sign_in_requests.decide, name="sign-in-program"),
    path("sign-on", sign_on.start, name="sign-on"),
    path("sign-on/callback", sign_on.callback, name="sign-on-callback"),
    path("sign-out", sign_in.sign_out, name="sign-out"),
    path("account", account.account, name="account"),
    path("account/shortcuts", account.shortcuts, name="account-shortcuts"),
    path("account/second-factor", second_factor.set_up, name="second-factor"),
    path("account/second-factor/remove", second_factor.remove, name="second-factor-remove"),
    path("account/second-factor/codes", second_factor.renew_codes, name="second-factor-codes"),
    path("account/sign-on/connect", sign_on.connect, name="sign-on-connect"),
    path("account/sign-on/disconnect", sign_on.disconnect, name="sign-on-disconnect"),
    path("account/sessions/end", sessions.end_others, name="sessions-end-others"),
    path("account/sessions/<int:pk>/end", sessions.end_own, name="session-end"),
    path("settings", settings.overview, name="settings"),
    path("settings/sign-on/test", settings.try_sign_on, name="sign-on-test"),
]

everybody = [
    path("users", users.users, name="users"),
    path("users/new", users.user_new, name="user-new"),
    path("users/<int:pk>/reset", users.user_reset, name="user-reset"),
    path("users/<int:pk>/active", users.user_active, name="user-active"),
    path(
        "users/<int:pk>/second-factor/reset", second_factor.reset, name="user-second-factor-reset"
    ),
    path("users/<int:pk>/sessions/end", sessions.end_of_user, name="user-sessions-end"),
    path("users/<int:pk>/keys", user_keys.keys, name="user-keys"),
    path("users/<int:pk>/keys/end", user_keys.end_all_keys, name="user-keys-end"),
    path("users/<int:pk>/keys/<int:access_key>/end", user_keys.end_key, name="user-key-end"),
]

of_projects = [
    path("departments", departments.departments_table, name="departments"),
    path("departments/new", departments.department_new, name="department-new"),
    path("departments/<int:pk>", departments.department, name="department"),
    path("departments/<int:pk>/edit", departments.department_edit, name="department-edit"),
    path("departments/<int:pk>/delete", departments.department_delete, name="department-delete"),
    path("projects", project_table.projects, name="projects"),
    path("projects/<int:pk>", projects.project, name="project"),
    path("projects/<int:pk>/people", project_members.person_add, name="person-add"),
    path(
        "projects/<int:pk>/people/<int:membership>/role",
        project_members.person_role,
        name="person-role",
    ),
    path(
        "projects/<int:pk>/people/<int:membership>/remove",
        project_members.person_remove,
        name="person-remove",
    ),
    path(
        "projects/<int:pk>/service-accounts",
        project_members.account_create,
        name="service-account-create",
    ),
    path(
        "projects/<int:pk>/service-accounts/<int:account>/secret",
        project_members.account_rotate,
        name="service-account-rotate",
    ),
    path(
        "projects/<int:pk>/service-accounts/<int:account>/delete",
        project_members.account_delete,
        name="service-account-delete",
    ),
]

auditing = [
    path("audit", audit.audit, name="audit"),
    path("audit/export", audit.export, name="audit-export"),
    path("audit/<int:pk>", audit.entry, name="audit-entry"),
]

accessing = [
    path("access-rules", access_rules.rules, name="access-rules"),
    path("access-rules/new", access_rules.rule_new, name="access-rule-new"),
    path("access-rules/<int:pk>/delete", access_rules.rule_delete, name="access-rule-delete"),
    path("roles", custom_roles.roles, name="roles"),
    path("roles/new", custom_roles.role_new, name="role-new"),
    path("roles/<int:pk>/edit", custom_roles.role_edit, name="role-edit"),
    path("roles/<int:pk>/delete", custom_roles.role_delete, name="role-delete"),
    path("service-accounts", service_accounts.accounts, name="accounts"),
    path("service-accounts/new", service_accounts.account_new, name="account-new"),
    path(
        "service-accounts/<int:pk>/secret", service_accounts.account_secret, name="account-secret"
    ),
    path(
        "service-accounts/<int:pk>/enabled",
        service_accounts.account_enabled,
        name="account-enabled",
    ),
    path(
        "service-accounts/<int:pk>/delete", service_accounts.account_delete, name="account-delete"
    ),
    path("account/keys/new", personal_keys.key_new, name="key-new"),
    path("account/keys/<int:pk>/secret", personal_keys.key_secret, name="key-secret"),
    path("account/keys/<int:pk>/delete", personal_keys.key_delete, name="key-delete"),
    path("why", permission_explanations.explain, name="why"),
    path("users/<int:pk>/look-as", impersonation.look_as, name="look-as"),
    path("look-as/end", impersonation.look_as_end, name="look-as-end"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    *signing_in,
    *everybody,
    *of_projects,
    *auditing,
    *accessing,
]

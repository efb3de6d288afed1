"""The addresses of this room."""

from django.urls import URLPattern, URLResolver, path

from projects.views import account, projects, roles, signing, users

signing_in = [
    path("sign-in", signing.sign_in, name="sign-in"),
    path("sign-out", signing.sign_out, name="sign-out"),
    path("account", account.account, name="account"),
]

everybody = [
    path("users", users.users, name="users"),
    path("users/new", users.user_new, name="user-new"),
    path("users/<int:pk>/reset", users.user_reset, name="user-reset"),
    path("users/<int:pk>/active", users.user_active, name="user-active"),
]

of_projects = [
    path("projects", projects.projects, name="projects"),
    path("projects/<int:pk>", projects.project, name="project"),
    path("projects/<int:pk>/people", roles.person_add, name="person-add"),
    path("projects/<int:pk>/people/<int:membership>/role", roles.person_role, name="person-role"),
    path("projects/<int:pk>/people/<int:membership>/remove", roles.person_remove, name="person-remove"),
    path("projects/<int:pk>/service-accounts", roles.account_create, name="service-account-create"),
    path("projects/<int:pk>/service-accounts/<int:account>/secret", roles.account_rotate, name="service-account-rotate"),
    path("projects/<int:pk>/service-accounts/<int:account>/delete", roles.account_delete, name="service-account-delete"),
]

urlpatterns: list[URLPattern | URLResolver] = [*signing_in, *everybody, *of_projects]

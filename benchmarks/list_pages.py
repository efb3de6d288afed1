"""The addresses of the console's tables."""

TABLES = {
    **{
        "workloads": "/workloads",
        "environments": "/environments",
        "compute resources": "/compute-resources",
    },
    **{
        "data sources": "/data-sources",
        "credentials": "/credentials",
        "templates": "/templates",
        "policies": "/policies",
    },
    **{
        "projects": "/projects",
        "departments": "/departments",
        "node pools": "/node-pools",
        "users": "/users",
    },
    **{
        "access rules": "/access-rules",
        "roles": "/roles",
        "service accounts": "/service-accounts",
        "audit": "/audit",
    },
}

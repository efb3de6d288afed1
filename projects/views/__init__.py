"""The pages of this app: sign-in, account, users, projects, departments, access and audit."""

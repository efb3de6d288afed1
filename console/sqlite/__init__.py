"""SQLite for Django, with connections that outlive the threads of requests."""

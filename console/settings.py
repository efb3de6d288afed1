"""Django's settings, from `options` and `keys`. Nothing is decided elsewhere."""

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from console import installation_state, keys, options, redis_address
from console.log_storage import describe_log_storage

try:
    OPTIONS = options.read_options()
    KEYS = keys.read_keys(OPTIONS)
except (options.BadOptions, keys.NoKeys) as refusal:
    raise ImproperlyConfigured(str(refusal)) from None

if OPTIONS.production and OPTIONS.debug:
    raise ImproperlyConfigured("MUSTER_DEBUG and MUSTER_PRODUCTION exclude each other.")

if OPTIONS.oidc_issuer and not OPTIONS.oidc_client_id:
    raise ImproperlyConfigured(
        "MUSTER_OIDC_ISSUER needs MUSTER_OIDC_CLIENT_ID: what the issuer calls this installation."
    )

BASE = Path(__file__).resolve().parent.parent
SECRET_KEY = KEYS.secret_key
ENCRYPTION_KEYS = KEYS.encryption_keys
DEBUG = OPTIONS.debug
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]", *OPTIONS.hosts]
CSRF_TRUSTED_ORIGINS = OPTIONS.origins

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "allauth.usersessions",
    "console",
    "projects",
    "projects.sign_on",
    "clusters",
    "environments",
    "workloads",
]

MIDDLEWARE = [
    "projects.origins.OriginMiddleware",
    "console.security.ContentSecurityPolicy",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "projects.sign_in_redirect.SignInRedirectMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "projects.impersonation.ImpersonationMiddleware",
    "projects.passwords.RequireSetupMiddleware",
    "console.errors.UserErrorMiddleware",
]

ROOT_URLCONF = "console.urls"
ASGI_APPLICATION = "console.asgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "console.context.frame",
                "clusters.context.banners",
                "workloads.context.notices",
            ],
            "builtins": [
                "django_htmx.templatetags.django_htmx",
                "django.templatetags.static",
                "console.templatetags.muster",
                "console.templatetags.rows",
            ],
        },
    }
]

SQLITE: dict[str, Any] = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": OPTIONS.data_dir / "muster.sqlite3",
    "OPTIONS": {
        # Writers queue at BEGIN instead of failing half way; readers never wait.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": (
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA "
            "mmap_size=268435456;"
        ),
    },
    "TEST": {"NAME": OPTIONS.data_dir / "test.sqlite3"},
}
DATABASES: dict[str, Any] = {
    "default": dict(dj_database_url.parse(OPTIONS.database_url)) if OPTIONS.database_url else SQLITE
}
if DATABASES["default"]["ENGINE"].endswith("postgresql"):
    # Requests come and go in threads: a pool keeps connections where a thread's own would be lost
    # with it.
    DATABASES["default"].setdefault("OPTIONS", {})["pool"] = {
        "min_size": 1,
        "max_size": 16,
        "timeout": 10,
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "projects.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
PASSWORD_HASHERS = ["projects.hashing.Argon2"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "workloads"
LOGOUT_REDIRECT_URL = "sign-in"
# From the last use on: `sessions.touch` moves the end of a session that is used.
SESSION_COOKIE_AGE = int(OPTIONS.session_hours * 3600)
SESSION_COOKIE_NAME = "muster_session"
CSRF_COOKIE_NAME = "muster_csrf"
CSRF_FAILURE_VIEW = "console.errors.csrf_failure"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = OPTIONS.production
# Of allauth only its flows are used: its pages have no addresses here, it sends no mail, and it
# limits nothing (`throttle` does).
ACCOUNT_ADAPTER = "projects.sign_on.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*"]
ACCOUNT_RATE_LIMITS = False
# Seconds between the password and the code of the second factor.
ACCOUNT_LOGIN_TIMEOUT = 600
SOCIALACCOUNT_ADAPTER = "projects.sign_on.adapters.IdentityAdapter"
MFA_ADAPTER = "projects.sign_on.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Muster"
# Steps of 30 s that a clock may be wrong by.
MFA_TOTP_TOLERANCE = 1
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if OPTIONS.production else 0
X_FRAME_OPTIONS = "DENY"
if OPTIONS.behind_proxy:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

DATA_UPLOAD_MAX_MEMORY_SIZE = 2 << 20
# The second step of the wizard has some 6,000 with each of its lists as long as it may be.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000
FILE_UPLOAD_PERMISSIONS = 0o600

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 20_000},
    }
}

LANGUAGE_CODE = "en-us"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATIC_ROOT = OPTIONS.static_dir or OPTIONS.data_dir / "static"
# An image has what was collected from it, and not the directory itself.
STATICFILES_DIRS = [BASE / "static"] if (BASE / "static").is_dir() else []
STORAGES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "console.static_files.Storage"
    },
}
if OPTIONS.log_storage:
    try:
        STORAGES["logs"] = describe_log_storage(OPTIONS.log_storage)
    except ImportError as error:
        raise ImproperlyConfigured(
            f"MUSTER_LOG_STORAGE needs the packages of requirements-s3.lock: {error}"
        ) from None
WHITENOISE_USE_FINDERS = DEBUG
WHITENOISE_AUTOREFRESH = False

# Where Kubernetes puts the credentials of a pod's service account, for a Muster that runs in the
# cluster it manages.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# `up` names its own to the processes that it starts. A command beside it reads where that is.
REDIS_URL = redis_address.accept_plain_certificates(
    OPTIONS.redis_url
    or installation_state.find_redis_url(OPTIONS.data_dir)
    or "redis://127.0.0.1:6379/0"
)
STEP_SECONDS = {
    "workloads.tasks.sweeping.sweep": OPTIONS.sweep_seconds,
    "workloads.tasks.limiting.limit": 15,
    "workloads.tasks.disruptions.tell_disruptions": 5,
    "workloads.tasks.scaling.scale_all": 10,
    "workloads.tasks.preparing.follow_preparations": 3,
    "workloads.tasks.training_progress.follow_training": 5,
    "workloads.tasks.watching.watch_workloads": 10,
    "workloads.tasks.polling.poll_all": OPTIONS.poll_seconds,
    "clusters.tasks.heartbeats": 30,
    "workloads.tasks.retaining.retain": 3600,
    "projects.tasks.forget": 3600,
    "workloads.tasks.measuring.measure_all": OPTIONS.metric_seconds,
    "workloads.tasks.measuring.thin_metrics": 60,
    "workloads.tasks.sampling.sample": OPTIONS.sample_seconds,
    "workloads.tasks.sampling.thin": 3600,
    "workloads.tasks.accounting.account_gpu_hours": 60,
    "workloads.tasks.forecasting.forecast_all": 20,
    "workloads.tasks.trials.play_trials": 20,
    "workloads.recording.turns.record_state": 30,
}
"""Every how many seconds beat asks for each periodic step."""
CELERY = {
    **redis_address.build_broker_settings(REDIS_URL),
    "task_ignore_result": True,
    "task_acks_late": False,
    # Nothing waits for the broker: what could not be sent is found by the sweep of the database.
    "task_publish_retry": False,
    "broker_connection_timeout": 1,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    # A worker's own question waits for a second, so an answer that takes longer than this comes
    # from a broker that hangs.
    "broker_transport_options": {
        "socket_connect_timeout": 1,
        "socket_timeout": 3,
        "socket_keepalive": True,
        "health_check_interval": 10,
    },
    "worker_prefetch_multiplier": 1,
    "worker_hijack_root_logger": False,
    "worker_send_task_events": False,
    "worker_enable_remote_control": False,
    "timezone": "UTC",
    # A message that no worker took in time is worth nothing: the next one asks for the same.
    "beat_schedule": {
        name: {
            "task": name,
            "schedule": timedelta(seconds=seconds),
            "options": {"expires": seconds},
        }
        for name, seconds in STEP_SECONDS.items()
    },
    "beat_schedule_filename": str(OPTIONS.data_dir / "beat-schedule.json"),
    "beat_max_loop_interval": 5,
    "beat_scheduler": "console.liveness:AliveScheduler",
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["projects.tokens.BearerToken"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "projects.api.idempotency.ApiSchema",
    "EXCEPTION_HANDLER": "console.rest_errors.handle_api_exception",
    "UNAUTHENTICATED_USER": None,
    # What a view takes is in the schema; an OPTIONS that answers tells what is there to whoever may
    # not see it.
    "DEFAULT_METADATA_CLASS": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Muster",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "()": "console.tracing.RequestIdFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        }
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "stream": sys.stderr, "formatter": "plain"}
    },
    "root": {"handlers": ["stderr"], "level": OPTIONS.log_level},
    "filters": {"readiness": {"()": "console.readiness_log.ReadinessFilter"}},
    "loggers": {
        "uvicorn.access": {"level": "WARNING"},
        "django.server": {"level": "WARNING"},
        "django.request": {"filters": ["readiness"]},
    },
}

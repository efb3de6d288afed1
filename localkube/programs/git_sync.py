"""The program of a git-sync container on localkube: the machine's git, with the variables of
git-sync v4.

Supported are GITSYNC_REPO, _REF, _DEPTH, _ROOT, _LINK, _ONE_TIME, _PERIOD, _SUBMODULES, _USERNAME,
_PASSWORD, _PASSWORD_FILE, _SSH_KEY_FILE, _SSH_KNOWN_HOSTS and _SSH_KNOWN_HOSTS_FILE. As there, each
revision is a work tree of its own below the root, and the link moves to the newest at once. Exit
codes: 0 done, 1 the repository could not be fetched, 2 wrong variables, 127 the machine has no git.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

WORK_TREES = ".worktrees"
DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}

CREDENTIAL_HELPER = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$SYNC_USERNAME" '
    '"$SYNC_PASSWORD"; }; f'
)
"""Hands git the name and password from variables.

On a command line everybody on the machine could read them.
"""


class GitError(Exception):
    """git failed; the text is its own."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What to fetch and where to put it. `secret` must be in no line of the log."""

    repo: str
    ref: str
    depth: int
    root: Path
    link: Path
    submodules: str
    period: float | None
    env: Mapping[str, str]
    options: tuple[str, ...]
    secret: str

    def redact(self, text: str) -> str:
        """Return the text without the password, and without what an address has before its @."""
        text = re.sub(r"(://)[^/@\s]*@", r"\1", text)
        return text.replace(self.secret, "***") if self.secret else text


def parse_settings(variables: Mapping[str, str]) -> Settings:
    """Parse the settings from the variables; ends the program for invalid ones."""

    def value(name: str, default: str = "") -> str:
        return variables.get(f"GITSYNC_{name}", default)

    repo, ref = value("REPO"), value("REF") or "HEAD"
    if not repo:
        exit_for_usage("GITSYNC_REPO is missing: it names the repository")
    if repo.startswith("-") or ref.startswith("-"):
        exit_for_usage("GITSYNC_REPO and GITSYNC_REF must not begin with '-'")
    depth = value("DEPTH", "1")
    if not depth.isdecimal():
        exit_for_usage(f"GITSYNC_DEPTH is {depth!r}: it must be a number, 0 for the whole history")
    root = Path(value("ROOT") or "git").absolute()
    link = root / (value("LINK") or repo.rstrip("/").rpartition("/")[2].removesuffix(".git"))
    submodules = value("SUBMODULES", "recursive")
    if submodules not in ("recursive", "shallow", "off"):
        exit_for_usage(
            f"GITSYNC_SUBMODULES is {submodules!r}: it must be recursive, shallow or off"
        )
    secret = value("PASSWORD") or _read_secret(value("PASSWORD_FILE"), "GITSYNC_PASSWORD_FILE")
    env, options = _build_credentials(value("USERNAME"), secret, variables)
    once = value("ONE_TIME", "false").lower() in ("true", "1", "t")
    return Settings(
        repo,
        ref,
        int(depth),
        root,
        link,
        submodules,
        None if once else _parse_period(value("PERIOD", "10s")),
        env,
        options,
        secret,
    )


def _parse_period(text: str) -> float:
    match = DURATION.fullmatch(text)
    if not match:
        exit_for_usage(f"GITSYNC_PERIOD is {text!r}: it must be a duration such as 10s or 5m")
    return max(1.0, float(match[1]) * UNITS[match[2] or ""])


def _read_secret(path: str, variable: str) -> str:
    try:
        return Path(path).read_text().rstrip("\r\n") if path else ""
    except (OSError, UnicodeDecodeError) as error:
        exit_for_usage(
            f"{variable} names {path}, which cannot be read: "
            f"{getattr(error, 'strerror', None) or 'it is not text'}"
        )


def _build_credentials(
    username: str, secret: str, variables: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Build git's environment and options for signing in.

    It never asks, for nobody would answer.
    """
    env = dict(variables) | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    # Ignore the machine's credential helpers, run no hooks, and accept a root that belongs to
    # another user, as a mounted volume may.
    options: tuple[str, ...] = (
        "-c",
        "credential.helper=",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "safe.directory=*",
    )
    if username or secret:
        env |= {"SYNC_USERNAME": username, "SYNC_PASSWORD": secret}
        options += ("-c", f"credential.helper={CREDENTIAL_HELPER}")
    key = variables.get("GITSYNC_SSH_KEY_FILE", "")
    if key and not os.access(key, os.R_OK):
        exit_for_usage(f"GITSYNC_SSH_KEY_FILE names {key}, which cannot be read")
    checks_hosts = variables.get("GITSYNC_SSH_KNOWN_HOSTS", "true").lower() not in (
        "false",
        "0",
        "f",
    )
    known_hosts = variables.get("GITSYNC_SSH_KNOWN_HOSTS_FILE") or str(
        Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh/known_hosts"
    )
    ssh_command = [
        "ssh",
        "-o",
        "BatchMode=yes",
        "-o",
        f"StrictHostKeyChecking={'yes' if checks_hosts else 'no'}",
    ]
    ssh_command += ["-o", f"UserKnownHostsFile='{known_hosts if checks_hosts else '/dev/null'}'"]
    ssh_command += ["-o", "IdentitiesOnly=yes", "-i", f"'{key}'"] if key else []
    return env | {"GIT_SSH_COMMAND": " ".join(ssh_command)}, options


def exit_for_usage(text: str) -> NoReturn:
    print(f"git-sync: {text}", file=sys.stderr)
    sys.exit(2)


def run_git(settings: Settings, *arguments: str, where: Path | None = None) -> str:
    """Run git in the root, or in a work tree, and return its output. Raises GitError."""
    command = ["git", *settings.options, "-C", str(where or settings.root), *arguments]
    process = subprocess.run(
        command,
        env=settings.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if process.returncode:
        error_lines = [line for line in process.stderr.splitlines() if line.strip()]
        raise GitError(
            settings.redact("; ".join(error_lines[-3:]))
            or f"git {arguments[0]} ended with exit code {process.returncode}"
        )
    return process.stdout.strip()


def sync_repository(settings: Settings) -> str:
    """Fetch the revision, point the link at it, and return its hash. Raises GitError."""
    settings.root.mkdir(parents=True, exist_ok=True)
    if not (settings.root / ".git").exists():
        run_git(settings, "init", "-q")
    depth = [f"--depth={settings.depth}"] if settings.depth else []
    run_git(
        settings, "fetch", "-q", "--no-tags", "--force", *depth, "--", settings.repo, settings.ref
    )
    revision = run_git(settings, "rev-parse", "FETCH_HEAD^{commit}")
    tree = settings.root / WORK_TREES / revision
    if not (tree / ".git").exists():
        run_git(settings, "worktree", "prune")
        run_git(settings, "worktree", "add", "-q", "--force", "--detach", str(tree), revision)
        _update_submodules(settings, tree, depth)
    _point_link(settings.link, tree)
    for old in (settings.root / WORK_TREES).iterdir():
        if old != tree:
            shutil.rmtree(old, ignore_errors=True)
    return revision


def _update_submodules(settings: Settings, tree: Path, depth: list[str]) -> None:
    if settings.submodules == "off" or not (tree / ".gitmodules").exists():
        return
    recursive = ["--recursive"] if settings.submodules == "recursive" else []
    run_git(settings, "submodule", "update", "-q", "--init", *recursive, *depth, where=tree)


def _point_link(link: Path, tree: Path) -> None:
    """Let the link name the tree, atomically for its readers."""
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir() and not link.is_symlink():
        raise GitError(f"{link} is a directory already: the link cannot be made there")
    draft = link.with_name(f".{link.name}.new")
    draft.unlink(missing_ok=True)
    draft.symlink_to(os.path.relpath(tree, link.parent))
    draft.replace(link)


def main() -> None:
    settings = parse_settings(os.environ)
    if shutil.which("git") is None:
        print(
            (
                "git-sync: git is not on this machine, where localkube runs the commands of "
                "pods: install the package git"
            ),
            file=sys.stderr,
        )
        sys.exit(127)
    last_revision = ""
    while True:
        try:
            revision = sync_repository(settings)
        except (GitError, OSError) as error:
            print(
                (
                    f"git-sync: {settings.redact(settings.repo)} at {settings.ref} could not be "
                    f"had: {error}"
                ),
                file=sys.stderr,
                flush=True,
            )
            if settings.period is None or not last_revision:
                sys.exit(1)
        else:
            if revision != last_revision:
                print(
                    (
                        f"git-sync: {settings.redact(settings.repo)} at {settings.ref} is "
                        f"{revision} in {settings.link}"
                    ),
                    flush=True,
                )
                last_revision = revision
        if settings.period is None:
            return
        time.sleep(settings.period)


if __name__ == "__main__":
    main()

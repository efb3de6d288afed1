"""Whether a workload's logs are kept, waiting for that, and removing old ones."""

import logging
import shutil
import time
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import QuerySet, Sum
from django.utils import timezone

from workloads.logbook import log_paths, object_store
from workloads.logbook.log_records import ENDED
from workloads.models import Log, Pod, Workload

log = logging.getLogger(__name__)

CHECK_SECONDS = 0.05
BATCH_SIZE = 500
MAX_BATCHES = 20
"""Batches of removed logs whose leftover files one run deletes; the rest is for the next hour."""
TOO_OLD_NOTE = "It was removed because logs are kept for {:g} days after their end."
NO_ROOM_NOTE = "It was removed to make room: {} MiB of logs are kept, and it was among the oldest."


def are_logs_kept(workload_id: uuid.UUID) -> bool:
    """Return whether all obtainable logs of the workload's ended or vanished pods are here."""
    return not Pod.objects.filter(ENDED, workload=workload_id, logs_kept=False).exists()


def wait_until_logs_kept(workload_id: uuid.UUID, timeout: float = 5.0) -> bool:
    """Wait until `are_logs_kept`, at most `timeout` seconds, and return whether it is so.

    Must not be called in a transaction.
    """
    until = time.monotonic() + timeout
    while not (are_kept := are_logs_kept(workload_id)) and time.monotonic() < until:
        time.sleep(CHECK_SECONDS)
    return are_kept


def abandon_logs(cluster_id: uuid.UUID, note: str) -> None:
    """Settle the logs in a removed cluster: no more can be read than is here.

    Those of which there is nothing are lost.
    """
    capturing = Log.objects.filter(pod__workload__cluster_id=cluster_id, state=Log.State.CAPTURING)
    capturing.filter(size__gt=0).update(
        state=Log.State.COMPLETE, note=note[:500], ended_at=timezone.now()
    )
    capturing.update(state=Log.State.LOST, note=note[:500], ended_at=timezone.now())
    Pod.objects.filter(workload__cluster_id=cluster_id, logs_kept=False).update(logs_kept=True)


def remove_old_logs(now: datetime | None = None) -> int:
    """Remove expired logs, then the oldest while all together are too large. Return how many.

    A removed log's row stays and says why. Also removes files without a workload.
    """
    options = settings.OPTIONS
    deleter = _FileDeleter()
    limit = (now or timezone.now()) - timedelta(days=options.log_days)
    removed = 0
    while rows := list(_list_ended().filter(ended_at__lt=limit)[:BATCH_SIZE]):
        removed += _remove_logs(rows, TOO_OLD_NOTE.format(options.log_days), deleter)
    removed += _make_room(deleter)[0]
    _sweep_folders(log_paths.logs_root())
    object_store.move_ended_logs()
    _delete_leftover_files(deleter)
    return removed


def make_room() -> tuple[int, int | None]:
    """Remove the oldest ended logs while all together are too large.

    Return how many, and the bytes that a growing log may have, None for any size: where ended logs
    do not make enough room, each of those that grow has an equal share of all.
    """
    return _make_room(_FileDeleter())


def _make_room(deleter: "_FileDeleter") -> tuple[int, int | None]:
    limit = settings.OPTIONS.log_bytes
    logs = Log.objects.exclude(state=Log.State.REMOVED)
    removed = 0
    # Computed anew each time: another process may make room as well.
    while (excess := (logs.aggregate(total=Sum("size"))["total"] or 0) - limit) > 0:
        rows = list(_list_ended().filter(size__gt=0)[:BATCH_SIZE])
        if not rows:
            break
        chosen = []
        for row in rows:
            if excess <= 0:
                break
            chosen.append(row)
            excess -= row.size
        removed += _remove_logs(chosen, NO_ROOM_NOTE.format(limit >> 20), deleter)
    if excess <= 0:
        return removed, None
    return removed, limit // max(1, logs.filter(state=Log.State.CAPTURING).count())


def _list_ended() -> QuerySet[Log]:
    """Return the logs that have ended and are here, the oldest first."""
    return Log.objects.filter(state__in=(Log.State.COMPLETE, Log.State.LOST)).order_by(
        "ended_at", "id"
    )


def _remove_logs(rows: Iterable[Log], note: str, deleter: "_FileDeleter") -> int:
    """Mark the rows as removed, then delete the files. Return how many were still here.

    In this order because a file that a crash leaves behind is deleted later, but a row without its
    file could not be explained.
    """
    chosen = list(rows)
    removed = (
        _list_ended()
        .order_by()
        .filter(pk__in=[row.pk for row in chosen])
        .update(state=Log.State.REMOVED, note=note)
    )
    deleter.delete_files(chosen)
    return removed


def _delete_leftover_files(deleter: "_FileDeleter") -> None:
    """Delete the files of removed logs that a crash, or a disk or store that failed, left."""
    leftover_logs = Log.objects.filter(state=Log.State.REMOVED).exclude(path="").order_by("id")
    last = 0
    for _ in range(MAX_BATCHES):
        rows = list(leftover_logs.filter(id__gt=last)[:BATCH_SIZE])
        if not rows:
            return
        deleter.delete_files(rows)
        last = rows[-1].pk


class _FileDeleter:
    """Deletes the files of removed logs. Once the object store gives no answer, it is left alone.

    Else each log would wait for it.
    """

    def __init__(self) -> None:
        self._is_store_away = False

    def delete_files(self, rows: Iterable[Log]) -> None:
        """Delete the logs' files, and their paths from the rows.

        Where that fails, the path stays, and says what is still to be deleted.
        """
        chosen = [row for row in rows if row.path]
        # Those of this machine first: their room is wanted, whatever the store says.
        not_here = [row for row in chosen if _delete_local_files(log_paths.local_path(row.path))]
        deleted = [row.pk for row in not_here if self._delete_stored_files(row.path)]
        if len(deleted) < len(chosen):
            log.warning("the files of %d removed logs are left", len(chosen) - len(deleted))
        Log.objects.filter(pk__in=deleted).update(path="")

    def _delete_stored_files(self, path: str) -> bool:
        if self._is_store_away:
            return False
        try:
            object_store.remove_log(path)
        except object_store.StoreFailed as failure:
            self._is_store_away = failure.is_away
            return False
        return True


def _delete_local_files(path: Path) -> bool:
    """Delete a log's file, its index, and folders that become empty. Return False if it fails."""
    try:
        for each in (path, log_paths.index_path(path)):
            each.unlink(missing_ok=True)
    except OSError as error:
        log.warning("the file of a removed log cannot be deleted: %s", error)
        return False
    for folder in (path.parent, path.parent.parent):
        try:
            folder.rmdir()
        except OSError:
            break
    return True


def _sweep_folders(root: Path) -> None:
    """Remove the files, here and in the object store, of workloads that no longer exist."""
    local_folders = (
        {name.name: name for name in root.iterdir() if name.is_dir()} if root.exists() else {}
    )
    stored_folders = _list_stored_folders()
    is_store_failing = False
    ids = [name for name in {*local_folders, *stored_folders} if _is_workload_id(name)]
    for begin in range(0, len(ids), BATCH_SIZE):
        batch = ids[begin : begin + BATCH_SIZE]
        existing_ids = {
            str(pk) for pk in Workload.objects.filter(pk__in=batch).values_list("pk", flat=True)
        }
        for name in batch:
            if name in existing_ids:
                continue
            if name in local_folders:
                shutil.rmtree(local_folders[name], ignore_errors=True)
            if name in stored_folders:
                if is_store_failing:
                    continue
                if not _remove_stored_folder(name):
                    # The others would fail as well.
                    is_store_failing = True
                    log.warning(
                        "the object store fails: its logs of workloads that are no more are left "
                        "there for the next hour"
                    )
                    continue
            log.info("removed the logs of workload %s, which is no more", name)


def _list_stored_folders() -> set[str]:
    """List the folders of the object store; none where it does not let itself be listed.

    Logs are moved and removed all the same. Raises StoreFailed where it is away.
    """
    try:
        return set(object_store.list_folders())
    except object_store.StoreFailed as failure:
        if failure.is_away:
            raise
        return set()


def _remove_stored_folder(name: str) -> bool:
    """Remove a workload's folder of the object store; return whether that was possible."""
    try:
        object_store.remove_folder(name)
    except object_store.StoreFailed:
        return False
    return True


def _is_workload_id(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False

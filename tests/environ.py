"""The environment that Django's settings read in tests, set before anything imports them (pytest
loads this first, by `-p`).
"""

import atexit
import os
import shutil
import tempfile

_data = tempfile.mkdtemp(prefix="muster-tests-")
os.mkdir(os.path.join(_data, "static"))
atexit.register(shutil.rmtree, _data, ignore_errors=True)
# Set by the process that starts the workers, and inherited by them: what one of them makes for all.
os.environ.setdefault("MUSTER_TESTS_SHARED_DIR", _data)

os.environ["MUSTER_DATA_DIR"] = _data
os.environ.setdefault("MUSTER_SECRET_KEY", "tests-only-and-long-enough-to-sign-with")
os.environ.setdefault("MUSTER_ENCRYPTION_KEYS", "dGVzdHMtb25seS10ZXN0cy1vbmx5LXRlc3RzLW9ubHk=")
os.environ.setdefault("MUSTER_DEBUG", "1")
# Tests are faster than people, and their users have the same ids in each.
os.environ.setdefault("MUSTER_REQUESTS_PER_MINUTE", "0")
# Nobody listens there: a test that wants a broker starts one.
os.environ.setdefault("MUSTER_REDIS_URL", "redis://127.0.0.1:1/0")

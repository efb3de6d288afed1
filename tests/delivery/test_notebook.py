"""`%%muster` and `#pragma taas` in a real Jupyter kernel, on a server that answers as Muster."""

import json
import time
from pathlib import Path

import pytest

from muster_delivery.notebook.connection import RestConnection, open_connection
from muster_delivery.notebook.errors import NotebookError
from muster_delivery.notebook.submission import parse_options
from tests.delivery.kernel import execute_cells
from tests.delivery.rest_stub import TOKEN, RestStub

CELLS = [
    "%load_ext muster_delivery",
    "import math\n\ndef area(radius):\n    return math.pi * radius**2",
    "%%muster_include\nSIZES = list(range(3))",
    "%%muster --gpus 8 --cpus 2 --units 10\nfor size in SIZES:\n    print(round(area(size)))",
    "_.exit_code",
    "#pragma taas --gpus 8 --cpus 1 --units 20480\nprint('from the pragma', len(SIZES))",
    "%%muster --gpus 1\nraise SystemExit(3)",
    "%%muster --gpus 3\n1",
    "%%muster --cpus 3\n1",
    "%%muster --gpus 1\nthis is no code",
    "import os\nos.environ['MUSTER_TOKEN'] = 'another'",
    "%%muster --gpus 1\n1",
    "%muster_stop w1",
]


def test_a_cell_becomes_a_workload(tmp_path: Path) -> None:
    with RestStub() as stub:
        variables = {"MUSTER_SERVER": stub.url, "MUSTER_TOKEN": TOKEN}
        outputs = execute_cells(CELLS, tmp_path, variables)
    first, exit_code, pragma, failed, refused, no_gpus, no_code, _, no_token, stop = outputs[3:]
    assert f"notebook-x1y2z3 was submitted: {stub.url}/workloads/w1" in first
    assert "0\n3\n13" in first
    assert '<progress max="10" value="' in first or "Completed" in first
    assert "<b>" not in first.replace("&lt;b&gt;", "").partition("<div>")[2]
    assert "phase='Completed'" in first
    assert exit_code == "0"
    assert "from the pragma 3" in pragma
    assert "phase='Failed'" in failed
    assert "This cannot be submitted.\nspec.totalGpus: 2 or 4 can be made." in refused
    assert "--gpus" in no_gpus
    assert "SyntaxError" in no_code
    assert "This token is not known." in no_token
    assert "another" not in no_token
    assert "This token is not known." in stop
    specs = [body["spec"] for body in stub.bodies]
    assert specs[0]["totalGpus"] == 8
    assert specs[0]["dataDelivery"] == {"workers": 2, "units": 10}
    assert specs[1]["dataDelivery"] == {"workers": 1, "units": 20480}
    assert "dataDelivery" not in specs[2]
    assert stub.bodies[0]["projectId"] == "7"
    assert len(stub.bodies) == 4


INTERRUPT = f"""
import os, signal, threading, time, urllib.request

def interrupt():
    address = os.environ["MUSTER_SERVER"] + "/api/v1/workloads/w1"
    request = urllib.request.Request(address, headers={{"Authorization": "Bearer {TOKEN}"}})
    while b"Running" not in urllib.request.urlopen(request).read():
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)

%load_ext muster_delivery
"""


def test_an_interrupted_cell_leaves_the_workload_running(tmp_path: Path) -> None:
    with RestStub() as stub:
        variables = {"MUSTER_SERVER": stub.url, "MUSTER_TOKEN": TOKEN}
        cells = [
            INTERRUPT,
            "%%muster --gpus 1\nprint('begun')",
            "threading.Thread(target=interrupt).start()",
            "%%muster --gpus 1\nimport time; time.sleep(600)",
            "_.phase",
            "%muster_stop w1",
        ]
        outputs = execute_cells(cells, tmp_path, variables)
        assert stub.is_stopped
    assert "notebook-x1y2z3 goes on. `%muster_stop w1` stops it." in outputs[3]
    assert outputs[4] == "'Running'"


def write_login(folder: Path, server: str, *, ends: float) -> None:
    """Write the files that `muster login` leaves."""
    context = {"server": server, "project": "team-a", "ca_file": ""}
    (folder / "muster").mkdir()
    config = {"current": "here", "contexts": {"here": context}}
    (folder / "muster/config.json").write_text(json.dumps(config))
    entry = {"token": TOKEN, "expiresAt": int(ends), "username": "bob"}
    tokens = {"tokens": {f"context:here@{server}": entry}}
    (folder / "muster/credentials.json").write_text(json.dumps(tokens))


def test_the_login_of_the_command_line_is_used(tmp_path: Path) -> None:
    with RestStub() as stub:
        write_login(tmp_path, stub.url, ends=time.time() + 1000)
        connection = open_connection({"XDG_CONFIG_HOME": str(tmp_path)})
        assert connection.project == "team-a"
        assert connection.call("GET", "/org-unit/projects")["projects"]
        assert TOKEN not in repr(connection)


def test_a_token_goes_to_no_other_server(tmp_path: Path) -> None:
    write_login(tmp_path, "http://127.0.0.1:1", ends=time.time() + 1000)
    with pytest.raises(NotebookError, match="not signed in"):
        open_connection(
            {"XDG_CONFIG_HOME": str(tmp_path), "MUSTER_SERVER": "http://other.example.com"}
        )


def test_a_session_that_has_ended_is_said(tmp_path: Path) -> None:
    write_login(tmp_path, "http://127.0.0.1:1", ends=time.time() - 1)
    with pytest.raises(NotebookError, match="ended"):
        open_connection({"XDG_CONFIG_HOME": str(tmp_path)})
    with pytest.raises(NotebookError, match="No server"):
        open_connection({"XDG_CONFIG_HOME": str(tmp_path / "none")})


def test_a_token_with_a_line_end_is_not_repeated() -> None:
    with pytest.raises(NotebookError) as caught:
        open_connection({"MUSTER_SERVER": "http://a.example.com", "MUSTER_TOKEN": "abc\nsecret"})
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_said() -> None:
    with pytest.raises(NotebookError, match="does not answer"):
        RestConnection("http://127.0.0.1:1", TOKEN).call("GET", "/me")


def test_units_need_data_workers() -> None:
    with pytest.raises(NotebookError, match="--cpus"):
        parse_options("--gpus 1 --units 5")

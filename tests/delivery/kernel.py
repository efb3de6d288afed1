"""Cells run in a real Jupyter kernel, in a process of its own."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

CELL_SECONDS = 240


def execute_notebook(
    notebook: Any, folder: Path, environment: Mapping[str, str], *, allow_errors: bool = False
) -> list[str]:
    """Run a notebook and return what each code cell wrote, its result and its errors."""
    variables = {name: each for name, each in os.environ.items() if not name.startswith("MUSTER_")}
    places = {name: str(folder) for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "HOME")}
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env={**variables, **places, **environment})
    return [_describe_outputs(each.outputs) for each in notebook.cells if each.cell_type == "code"]


def execute_cells(cells: Sequence[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Run cells one after the other; errors do not end it."""
    # The package does not say the types of what it builds notebooks with.
    v4: Any = nbformat.v4
    notebook = v4.new_notebook(cells=[v4.new_code_cell(each) for each in cells])
    return execute_notebook(notebook, folder, environment, allow_errors=True)


def _describe_outputs(outputs: Sequence[Any]) -> str:
    texts = []
    for each in outputs:
        if each.output_type == "stream":
            texts.append(each.text)
        elif each.output_type == "error":
            texts.append("\n".join(each.traceback))
        else:
            texts.extend(str(text) for text in each.data.values())
    return "\n".join(texts)

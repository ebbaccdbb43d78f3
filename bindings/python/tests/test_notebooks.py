# SPDX-License-Identifier: MIT
"""Runs the cells of the notebooks in docs/notebooks, in their order."""
import json
import pathlib
import re

import pytest

NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parents[3] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    names = {}
    for i, cell in enumerate(json.loads(path.read_text())["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            assert not cell["outputs"] and cell["execution_count"] is None, f"cell {i} has outputs"
            exec(compile(text, f"{path.name}: cell {i}", "exec"), names)
            continue
        for file in re.findall(r"\]\(([\w./]+)(?:#[\w-]+)?\)", text):
            assert (path.parent / file).exists(), f"cell {i}: {file}"
        for code in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
            compile(code, f"{path.name}: cell {i}", "exec")  # of the other package

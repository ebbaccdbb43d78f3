# SPDX-License-Identifier: MIT

"""Runs the fragments of docs/python.md, in their order."""

import importlib.util
import os
import pathlib
import re

import numpy as np
import pytest
from test_files import folder, write_dataset  # noqa: F401

import sar

ROOT = pathlib.Path(__file__).resolve().parents[3]
CORA = ROOT.parent / "shared" / "data" / "cora"
FRAGMENTS = re.findall(r"^```python (\w+)\n(.*?)^```$", (ROOT / "docs" / "python.md").read_text(), re.M | re.S)


def test_guide(folder, comm, monkeypatch, capsys):  # noqa: F811
    if comm.rank == 0:
        os.mkdir(os.path.join(folder, "cora"))
        write_dataset(os.path.join(folder, "cora"))
    comm.barrier()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names, losses = {}, {}
    for name, code in FRAGMENTS:
        if name == "pictures" and importlib.util.find_spec("matplotlib") is None:
            continue
        if name.startswith("ase_") and importlib.util.find_spec("ase") is None:
            continue
        if name in ("program", "ase_training", "ase_calculator") and comm.size > 1:
            continue  # the program starts ranks itself
        code = re.sub(r"range\((100|200)\)", "range(20)", code)
        try:
            exec(compile(code, f"docs/python.md: {name}", "exec"), names)
        except sar.InputError as error:
            if "there is no program sar-train" not in str(error) and not (name == "ase_calculator" and "cu.safetensors" in str(error)):
                raise
        if "loss" in names:
            losses[name] = names["loss"].item()
    assert np.isfinite(names["values"].energy)
    assert losses["from_dgl"] < 1.1 and 0.5 < names["auc"] <= 1 and names["result"]["game"].shape[1] == 8


@pytest.mark.skipif(not CORA.is_dir(), reason="needs the dataset Cora beside the repository")
@pytest.mark.parametrize("fragment", ["training", "from_dgl", "from_pyg"])
def test_cora(fragment, comm, monkeypatch):
    monkeypatch.chdir(CORA.parent)
    names = {"sar": sar, "np": np, "F": sar.nn.functional}
    exec(dict(FRAGMENTS)[fragment].replace("range(200)", "range(60)"), names)
    net = names.get("model", names.get("net")).eval()
    data = names["data"]
    with sar.no_grad():
        logits = net(data.graph, data.features)
    # SAGE on features that are not normalized: over seeds, its accuracy spreads more
    least = 0.7 if fragment == "training" else 0.75
    assert sar.nn.functional.accuracy(logits, data.labels, data.test_mask) > least

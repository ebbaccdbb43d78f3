# SPDX-License-Identifier: MIT

"""The list of mistakes in tests/python/mistakes.py: one exception with its text, on every rank, and objects as before."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest

import sar
from sar.nn import functional as F

_FILE = pathlib.Path(__file__).resolve().parents[3] / "tests" / "python" / "mistakes.py"
_SPEC = importlib.util.spec_from_file_location("mistakes", _FILE)
mistakes = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(mistakes)


class Forgetful(sar.nn.Module):
    def __init__(self):
        self.linear = sar.nn.Linear(2, 2)


@pytest.fixture(scope="module")
def names():
    graph = sar.Graph(([0, 1, 2], [1, 2, 0]), 3)
    return {"sar": sar, "np": np, "F": F, "x": sar.tensor([[0.0, 1], [2, 3], [4, 5]]), "w": sar.tensor([1.0, 2], requires_grad=True), "graph": graph,
            "rows": sar.ones((graph.num_nodes(), 2)), "logits": sar.tensor([[1.0, 2], [3, 1], [0, 1]]), "labels": np.array([0, 1, 1]),
            "sampler": sar.NeighborSampler([2]), "linear": sar.nn.Linear(2, 3), "Forgetful": Forgetful}


def test_there_are_many():
    assert len({code for code, _, _ in mistakes.MISTAKES}) == len(mistakes.MISTAKES) >= 141


@pytest.mark.filterwarnings("ignore:nanobind")
@pytest.mark.parametrize("code, kind, text", mistakes.MISTAKES, ids=[code for code, _, _ in mistakes.MISTAKES])
def test_mistake(code, kind, text, names):
    before = {name: np.array(names[name]) for name in ("x", "rows", "logits", "labels", "w")}
    with pytest.raises(BaseException) as raised:
        exec(code, names)
    assert type(raised.value).__name__ == kind
    assert re.fullmatch(r"(?:rank \d+: )?" + ".*".join(map(re.escape, text.split("*"))), str(raised.value), re.S), str(raised.value)
    assert "incompatible function arguments" not in str(raised.value)
    for name, values in before.items():
        np.testing.assert_array_equal(np.array(names[name]), values)
    assert names["w"].grad is None and not names["x"].requires_grad

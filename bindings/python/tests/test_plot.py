# SPDX-License-Identifier: MIT

"""Pictures, drawn without a display."""

import json
import os

import numpy as np
import pytest
from conftest import random_graph
from test_files import folder  # noqa: F401

import sar

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_learning_curves(tmp_path):
    log = [{"epoch": i, "loss": 1.0 / i, "val_acc": 0.1 * i, "seconds": 1} for i in range(1, 5)] + [{"summary": True}]
    ax = sar.plot.learning_curves(log)
    (loss,) = ax.get_lines()
    np.testing.assert_allclose(loss.get_ydata(), [1, 1 / 2, 1 / 3, 1 / 4])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["loss", "val_acc"]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in log))
    assert len(sar.plot.learning_curves(path, keys=["loss"]).get_lines()) == 1
    ax.figure.savefig(tmp_path / "loss.png")
    assert (tmp_path / "loss.png").stat().st_size > 1000
    with pytest.raises(sar.InputError, match="no 'hits'"):
        sar.plot.learning_curves(log, keys=["hits"])
    with pytest.raises(sar.InputError, match="no lines of epochs"):
        sar.plot.learning_curves([])


def test_degree_histogram(comm):
    _, dst, graph = random_graph()
    ax = sar.plot.degree_histogram(graph)
    assert (ax is None) == (comm.rank > 0)
    if ax is not None:
        degrees = np.bincount(dst, minlength=60)
        heights = [bar.get_height() for bar in ax.patches]
        assert sum(heights) == 60 and heights[:2] == [np.sum(degrees == 0), np.sum(degrees == 1)]
        assert heights[2:4] == [np.sum((degrees >> 1) == 1), np.sum((degrees >> 2) == 1)]


@pytest.mark.parametrize("make", [lambda: sar.Graph(([0, 1, 2, 2], [1, 2, 0, 2]), 4), lambda: sar.Graph(([], []), 3),
                                  lambda: sar.Graph({("user", "plays", "<game>"): ([0, 1], [1, 2]), ("user", "knows", "user"): ([0, 0], [1, 1])},
                                                    {"user": 2, "<game>": 3})])
def test_pictures_of_graphs(comm, make):
    graph = make()
    ax = sar.plot.graph(graph)
    assert (ax is None) == (comm.rank > 0)
    if ax is not None:
        assert len(ax.texts) == graph.num_global_nodes() + graph.num_global_edges()
        assert len(ax.collections) == len(graph.ntypes)
        ax.figure.savefig(os.devnull, format="svg")
    shown = graph._repr_html_()
    assert shown.startswith("<pre>sar.Graph(nodes=") and "<game>" not in shown
    if comm.size == 1:
        from xml.etree import ElementTree

        svg = ElementTree.fromstring(shown[shown.index("<svg"):])
        texts = [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]
        assert sorted(texts) == sorted(str(node) for ntype in graph.ntypes for node in graph.node_ids(ntype))
        lines = len(list(svg.iter("{http://www.w3.org/2000/svg}line")))
        assert lines == sum(len(np.flatnonzero(graph.edges(etype)[0] != graph.edges(etype)[1])) if etype[0] == etype[2] else len(graph.edges(etype)[0])
                            for etype in graph.canonical_etypes)


def test_large_graphs_are_not_drawn():
    graph = sar.Graph((np.arange(599), np.arange(1, 600)), 600)
    assert graph._repr_html_().endswith("</pre>")
    with pytest.raises(sar.InputError, match="a picture of a graph of 600 nodes, expected at most 500"):
        sar.plot.graph(graph)


def test_memory(comm):
    ax = sar.plot.memory()
    if comm.rank == 0:
        assert len(ax.patches) == comm.size and all(bar.get_height() > 0 for bar in ax.patches)


def test_timeline(comm, folder):  # noqa: F811
    path = os.path.join(folder, "trace.json")
    _, _, graph = random_graph()
    x = sar.tensor(np.ones((graph.num_nodes(), 2)))
    with sar.Trace(path):
        graph.update_all(sar.fn.copy_u(x), "sum")
    if comm.rank == 0:
        ax = sar.plot.timeline(path)
        assert len(ax.get_yticks()) >= comm.size
        with pytest.raises(sar.InputError, match="no scopes"):
            sar.plot.timeline(path, begin=1e6)
        other = os.path.join(folder, "other.json")
        with open(other, "w") as file:
            file.write("[1, 2]")
        with pytest.raises(sar.InputError, match="expected the file of a trace"):
            sar.plot.timeline(other)
    with pytest.raises(sar.InputError):
        sar.Trace(os.path.join(folder, "nothing", "trace.json"))

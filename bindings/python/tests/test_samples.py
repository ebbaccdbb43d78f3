# SPDX-License-Identifier: MIT
"""Batches of graphs, and batches of edges, clusters and subgraphs."""
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import random_graph, whole
from test_graph_data import Dgl, expected, pairs_of

import sar
from sar.nn import functional as F


def small_graphs(count=11):
    draw = np.random.default_rng(5)
    graphs = []
    for i in range(count):
        nodes = int(draw.integers(1, 6))
        edges = draw.integers(0, nodes, (2, int(draw.integers(0, 9))))
        graphs.append({"edge_index": edges, "x": draw.normal(size=(nodes, 3)).astype(np.float32), "kind": draw.integers(0, 4, nodes),
                       "edge_attr": draw.normal(size=(edges.shape[1], 2)).astype(np.float32), "y": np.array([float(i), -i])})
    return graphs, np.arange(count) % 3


def gathered(comm, rows):
    """The rows of all ranks, one after the other."""
    rows = np.asarray(rows)
    return comm.all_gather(rows.reshape(-1)).reshape(-1, *rows.shape[1:])


def test_a_batch_computes_what_each_graph_computes_alone(comm):
    graphs, labels = small_graphs()
    graph = sar.batch(graphs, labels)
    assert graph.batch_size == 11 and comm.all_reduce(float(graph.num_graphs)) == 11
    assert set(graph.ndata) == {"x", "kind"} and set(graph.edata) == {"edge_attr"} and set(graph.graph_data) == {"y", "label"}
    np.testing.assert_array_equal(gathered(comm, graph.graph_ids), range(11))
    np.testing.assert_array_equal(gathered(comm, graph.graph_data["label"]), labels)
    np.testing.assert_array_equal(gathered(comm, graph.graph_data["y"]), [each["y"] for each in graphs])
    np.testing.assert_array_equal(gathered(comm, graph.ndata["kind"]), np.concatenate([each["kind"] for each in graphs]))
    np.testing.assert_array_equal(gathered(comm, graph.batch_num_nodes()), [len(each["x"]) for each in graphs])
    np.testing.assert_array_equal(graph.graph_ids[graph.batch], np.repeat(graph.graph_ids, graph.batch_num_nodes()))
    x = sar.tensor(graph.ndata["x"].numpy(), requires_grad=True)
    sums = graph.update_all(sar.fn.copy_u(x), "sum") + graph.update_all(sar.fn.copy_e(graph.edata["edge_attr"]), "sum") @ sar.tensor(np.ones((2, 3)))
    pooled = {op: gathered(comm, sar.readout_nodes(graph, sums, op)) for op in ("sum", "mean", "max", "min")}
    for op, layer in (("sum", sar.nn.SumPooling()), ("mean", sar.nn.AvgPooling()), ("max", sar.nn.MaxPooling())):
        np.testing.assert_array_equal(gathered(comm, layer(graph, sums)), pooled[op])
    for i, each in enumerate(graphs):
        rows = np.zeros((len(each["x"]), 3))
        np.add.at(rows, each["edge_index"][1], each["x"][each["edge_index"][0]] + each["edge_attr"].sum(1, keepdims=True))
        for op in pooled:
            np.testing.assert_allclose(pooled[op][i], getattr(rows, op)(0), rtol=1e-5, atol=1e-5)
    seed = np.random.default_rng(comm.rank).normal(size=(graph.num_graphs, 3))
    (sar.nn.AvgPooling()(graph, x * x) * sar.tensor(seed)).sum().backward()
    np.testing.assert_allclose(x.grad, 2 * x.numpy() * (seed / graph.batch_num_nodes()[:, None])[graph.batch], rtol=1e-4, atol=1e-6)


def test_graphs_of_other_packages_are_samples(comm):
    networkx = pytest.importorskip("networkx")
    path = networkx.path_graph(3)
    for node in path:
        path.nodes[node]["h"] = [float(node)]
    path.graph["y"] = 2
    star = networkx.star_graph(4)
    for node in star:
        star.nodes[node]["h"] = [1.0]
    star.graph["y"] = 1
    graph = sar.batch([path, star])
    assert set(graph.ndata) == {"h"} and set(graph.graph_data) == {"y"}
    np.testing.assert_array_equal(gathered(comm, graph.graph_data["y"]), [2, 1])
    assert graph.num_global_edges() == 4 + 8
    dgl = [Dgl({None: np.array([[0, 1], [1, 0]])}, {None: 2}, {None: {"h": np.ones((2, 4), np.float32)}}, {}) for _ in range(3)]
    np.testing.assert_array_equal(gathered(comm, sar.batch(dgl, [5, 6, 7]).graph_data["label"]), [5, 6, 7])
    pyg = [SimpleNamespace(edge_index=np.zeros((2, 0), int), num_nodes=n, y=np.array([n])) for n in (1, 4)]
    np.testing.assert_array_equal(gathered(comm, sar.batch(pyg).graph_data["y"]), [1, 4])
    loops = sar.batch([([0, 1], [1, 2])], add_reverse_edges=True, add_self_loops=True)
    assert loops.num_global_edges() == 7


def test_batches_of_graphs_do_not_depend_on_the_ranks(comm):
    graphs, labels = small_graphs()
    loader = sar.GraphDataLoader(sar.GraphSamples(graphs, labels), np.arange(1, 11), batch_size=4, seed=2)
    alone = sar.GraphDataLoader(sar.GraphSamples(graphs, labels, comm=sar.Communicator.self()), np.arange(1, 11), batch_size=4, seed=2)
    assert len(loader) == 3
    epochs = []
    for _ in range(2):
        found = [sorted(comm.all_gather(graph.graph_ids).astype(int)) for graph in loader]
        assert found == [sorted(graph.graph_ids) for graph in alone]
        assert sorted(sum(found, [])) == list(range(1, 11))
        epochs.append(found)
    assert epochs[0] != epochs[1] and loader.epoch == 2
    mask = labels == 1
    only = sar.GraphDataLoader(sar.GraphSamples(graphs, labels), mask, shuffle=False)
    assert [sorted(comm.all_gather(graph.graph_ids).astype(int)) for graph in only] == [[1, 4, 7, 10]]


def test_graph_classification_learns(comm):
    draw = np.random.default_rng(1)
    graphs, labels = [], draw.integers(0, 2, 40)
    for label in labels:  # rings, and stars
        nodes = int(draw.integers(5, 9))
        ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes])
        star = np.stack([np.zeros(nodes - 1, int), np.arange(1, nodes)])
        graphs.append({"edge_index": star if label else ring, "x": np.ones((nodes, 1), np.float32)})
    samples = sar.GraphSamples(graphs, labels, add_reverse_edges=True)
    sar.manual_seed(0)
    layers = sar.nn.Sequential(sar.nn.GINConv(sar.nn.MLP(1, 8, 8)), sar.nn.ReLU(), sar.nn.GINConv(sar.nn.MLP(8, 8, 8)), sar.nn.MaxPooling(),
                               sar.nn.Linear(8, 2))
    optimizer = sar.optim.Adam(layers, lr=0.02)
    loader = sar.GraphDataLoader(samples, np.arange(30), batch_size=10)
    for _ in range(30):
        for graph in loader:
            loss = F.cross_entropy(layers(graph, graph.ndata["x"]), graph.graph_data["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    test = samples.batch(np.arange(30, 40))
    with sar.no_grad():
        assert F.accuracy(layers(test, test.ndata["x"]), test.graph_data["label"]) == 1


@pytest.mark.parametrize("graphs, labels, text", [
    ([], None, "a list of no graphs"),
    ([{"edge_index": [[0], [1]], "x": np.ones((2, 1))}, {"edge_index": [[0], [1]]}], None, "graph 1 has the fields"),
    ([{"edge_index": [[0, 1], [1, 0]], "x": np.ones((3, n)), "num_nodes": 2} for n in (1, 2)], None, "the field 'x' has neither"),
    ([{"edges": [[0], [1]]}], None, "expected edge_index"),
    ([([0], [1])], [1, 2], "2 labels for 1 graphs"),
    ([{"edge_index": [[0], [5]], "num_nodes": 2}] * 3, None, "5"),
])
def test_wrong_samples(graphs, labels, text):
    with pytest.raises(sar.Error, match=text):
        sar.batch(graphs, labels)


def test_pairs_of_nodes(comm):
    src, dst, graph = random_graph()
    draw = np.random.default_rng(3)
    rows = draw.normal(size=(60, 4)).astype(np.float32)
    ends = np.random.default_rng(comm.rank).integers(0, 60, (2, 5 * comm.rank + 3))
    h = sar.tensor(graph.local_rows(rows), requires_grad=True)
    pairs = sar.NodePairs(graph, *ends)
    assert pairs.num_pairs == ends.shape[1]
    np.testing.assert_array_equal(pairs.src(h), rows[ends[0]])
    np.testing.assert_array_equal(pairs.dst(h), rows[ends[1]])
    (pairs.src(h) * pairs.dst(h)).sum().backward()
    everyone = comm.all_gather(ends.T.reshape(-1)).astype(int).reshape(-1, 2)
    wanted = np.zeros((60, 4))
    np.add.at(wanted, everyone[:, 0], rows[everyone[:, 1]])
    np.add.at(wanted, everyone[:, 1], rows[everyone[:, 0]])
    np.testing.assert_allclose(h.grad, wanted[graph.src_ids], rtol=1e-4, atol=1e-5)
    mine = np.array([100 * comm.rank + 7, 3 + 100 * comm.rank])
    other = sar.Graph((mine[:1], mine[1:]), nodes=mine)
    of_last = sar.NodePairs(other, [100 * (comm.size - 1) + 3], [7])
    x = sar.tensor(mine[:, None].astype(np.float32))
    assert of_last.src(x).numpy() == [[100 * (comm.size - 1) + 3]] and of_last.dst(x).numpy() == [[7]]
    with pytest.raises(sar.InputError, match="no node 5 in the graph"):
        sar.NodePairs(other, [5], [7])
    with pytest.raises(sar.InputError):
        sar.NodePairs(graph, [60], [7])


def test_negative_pairs_are_no_edges(comm):
    src, dst, graph = random_graph()
    edges = set(zip(src, dst))
    numbers = sar.tensor(graph.src_ids[:, None].astype(np.float32))
    found = []
    for negatives in ("per_source", "global"):
        pairs = sar.negative_pairs(graph, k=2, negatives=negatives, epoch=1)
        u, v = (np.asarray(rows).reshape(-1).astype(int) for rows in (pairs.src(numbers), pairs.dst(numbers)))
        assert len(u) == 2 * graph.num_edges() and not edges & set(zip(u, v)) and (u != v).all()
        if negatives == "per_source":
            np.testing.assert_array_equal(u, np.repeat(graph.edges()[0], 2))
        found.append(sorted(zip(comm.all_gather(u), comm.all_gather(v))))
    alone = random_graph(comm=sar.Communicator.self())[2]
    ids = sar.tensor(alone.src_ids[:, None].astype(np.float32))
    pairs = sar.negative_pairs(alone, k=2, negatives="global", epoch=1)
    assert found[1] == sorted(zip(pairs.src(ids).numpy()[:, 0], pairs.dst(ids).numpy()[:, 0]))


def test_batches_of_edges(comm):
    src, dst, graph = random_graph()
    draw = np.random.default_rng(2)
    rows = draw.normal(size=(60, 5)).astype(np.float32)
    x = sar.tensor(graph.local_rows(rows))
    chosen = graph.edge_ids % 2 == 0
    sar.manual_seed(1)
    layer = sar.nn.SAGEConv(5, 4).eval()
    whole_graph = whole(graph, layer(graph, x))
    loader = sar.EdgeDataLoader(graph, chosen, sar.NeighborSampler([-1]), batch_size=40, negatives="per_source", k=3, exclude=None)
    assert len(loader) == 4
    seen, edges = [], set(zip(src, dst))
    for nodes, of_batch, positive, negative, blocks in loader:
        seen.extend(graph.edge_ids[of_batch])
        h = layer(blocks[0], x[nodes])
        ids = sar.tensor(graph.src_ids[blocks[0].dst_rows][:, None].astype(np.float32))
        u, v = (np.asarray(end(ids)).reshape(-1).astype(int) for end in (positive.src, positive.dst))
        np.testing.assert_array_equal(u, src[graph.edge_ids[of_batch]])
        np.testing.assert_array_equal(v, dst[graph.edge_ids[of_batch]])
        np.testing.assert_allclose(positive.src(h), whole_graph[u], rtol=1e-5, atol=1e-5)
        nu, nv = (np.asarray(end(ids)).reshape(-1).astype(int) for end in (negative.src, negative.dst))
        np.testing.assert_array_equal(nu, np.repeat(u, 3))
        assert not edges & set(zip(nu, nv))
    assert sorted(comm.all_gather(np.array(seen))) == list(range(0, 300, 2)) and loader.epoch == 1
    without = sar.EdgeDataLoader(graph, chosen, sar.NeighborSampler([-1]), batch_size=300, negatives=None, exclude="self")
    for nodes, of_batch, positive, negative, (block,) in without:
        assert negative is None
        left = np.isin(graph.edge_ids[block.edge_rows], np.flatnonzero([pair in set(zip(src[::2], dst[::2])) for pair in zip(src, dst)]))
        assert not left.any()
    for wrong, text in (([-1], "the row -1"), (np.ones(3, bool), "mask of shape"), ([0.5], "float64")):
        with pytest.raises((sar.InputError, sar.ShapeError), match=text):
            sar.EdgeDataLoader(graph, wrong, sar.NeighborSampler([-1]))


def test_link_prediction_of_a_relation(comm):
    """A graph with types: the pairs of one relation."""
    draw = np.random.default_rng(0)
    user, game = draw.integers(0, 20, 80), draw.integers(0, 9, 80)
    hetero = sar.Graph({("user", "plays", "game"): (user, game), ("game", "played", "user"): (game, user)}, {"user": 20, "game": 9})
    plays = hetero["plays"]
    u = sar.tensor(hetero.node_ids("user")[:, None].astype(np.float32))
    g = sar.tensor(hetero.node_ids("game")[:, None].astype(np.float32))
    pairs = sar.negative_pairs(plays, k=1, exclude_self_loops=False)
    ends = np.concatenate([pairs.src(u).numpy(), pairs.dst(g).numpy()], 1).astype(int)
    assert len(ends) == plays.num_edges() and not set(map(tuple, ends)) & set(zip(user, game))


def test_batches_of_clusters(comm):
    src, dst, graph = random_graph()
    x = sar.tensor(graph.local_rows(np.arange(60, dtype=np.float32)[:, None]))
    clusters = graph.src_ids % 6
    loader = sar.ClusterLoader(graph, clusters=clusters, clusters_per_batch=2)
    assert len(loader) == 3
    seen = []
    for batch in loader:
        ids = graph.dst_ids[batch.dst_rows]
        together = np.unique(comm.all_gather(ids).astype(int) % 6)
        assert len(together) == 2
        inside = np.isin(src % 6, together) & np.isin(dst % 6, together)
        wanted = np.zeros(60)
        np.add.at(wanted, dst[inside], src[inside])
        np.testing.assert_allclose(np.asarray(batch.update_all(sar.fn.copy_u(x[batch.dst_rows]), "sum"))[:, 0], wanted[ids])
        seen.extend(ids)
    assert sorted(comm.all_gather(np.array(seen))) == list(range(60))
    assert len(sar.ClusterLoader(graph, num_clusters=4, method="ldg")) == 4
    with pytest.raises(sar.InputError, match="expected one of them"):
        sar.ClusterLoader(graph)


@pytest.mark.parametrize("method", ["node", "edge", "walk"])
def test_batches_of_subgraphs(comm, method):
    src, dst, graph = random_graph()
    x = sar.tensor(graph.local_rows(np.arange(60, dtype=np.float32)[:, None]))
    loader = sar.SAINTLoader(graph, method, draws=15, batches=200, scale_messages=False)
    assert len(loader) == 200
    total = 0
    for batch, weights in loader:
        ids = comm.all_gather(graph.dst_ids[batch.dst_rows]).astype(int)
        inside = np.isin(src, ids) & np.isin(dst, ids)
        assert batch.num_global_edges() == inside.sum()
        total += float(comm.all_reduce(float(weights.numpy().sum())))
    drawable = 60 if method != "edge" else len(np.unique(np.concatenate([src, dst])))
    if method == "node":
        drawable = len(np.unique(src))  # in proportion to the out-degrees
    assert total / 200 == pytest.approx(drawable, rel=0.2)


def test_fields_of_graphs_of_one_node():
    one = {"edge_index": np.array([[0], [0]]), "num_nodes": 1, "x": np.ones((1, 3)), "edge_attr": np.ones((1, 2)), "y": np.ones(1), "u": np.ones((1, 2))}
    for graphs in ([one], [one, one]):
        samples = sar.GraphSamples(graphs)
        for graph in sar.GraphDataLoader(samples, batch_size=2):
            assert {"x"} <= set(graph.ndata) and set(graph.edata) == {"edge_attr"} and "y" in graph.graph_data

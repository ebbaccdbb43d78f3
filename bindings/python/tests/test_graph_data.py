# SPDX-License-Identifier: MIT
"""Edges, fields and transforms of graphs."""
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import random_graph, whole

import sar


class Items:
    """What is read by table[name] and is no dict."""

    def __init__(self, items=()):
        self.all = dict(items)

    def __getitem__(self, name):
        return self.all[name]

    def __setitem__(self, name, value):
        self.all[name] = value


def pairs_of(graph, *columns):
    """The edges of all ranks, sorted, with columns of this rank's edges."""
    src, dst = graph.edges()
    rows = np.stack([src, dst, *(np.asarray(column).reshape(-1) for column in columns)], 1).astype(np.float64)
    everything = graph.comm.all_gather(rows.reshape(-1)).reshape(-1, rows.shape[1])
    return everything[np.lexsort(everything.T[::-1])]


def expected(src, dst, *columns):
    rows = np.stack([src, dst, *columns], 1).astype(np.float64)
    return rows[np.lexsort(rows.T[::-1])]


def given_graph():
    """A graph with weights and fields, of which each rank has a part."""
    src, dst, _ = random_graph()
    draw = np.random.default_rng(3)
    weight, rows = draw.uniform(1, 2, len(src)).astype(np.float32), draw.normal(size=(len(src), 1)).astype(np.float32)
    graph = sar.Graph((src, dst), 60, edge_weight=weight, pipeline_depth=2)
    x = draw.normal(size=(60, 2)).astype(np.float32)
    graph.ndata["x"], graph.ndata["y"] = sar.tensor(graph.local_rows(x)), graph.local_rows(np.arange(60))
    graph.edata["r"] = graph.edge_rows(rows)
    return src, dst, weight, rows[:, 0], x, graph


def test_edges_are_those_of_this_rank_in_the_order_of_edge_tensors(comm):
    src, dst, weight, rows, x, graph = given_graph()
    np.testing.assert_array_equal(pairs_of(graph, graph.edge_weight, graph.edata["r"]), expected(src, dst, weight, rows))
    mine = graph.edges()
    np.testing.assert_array_equal(mine[0], src[graph.edge_ids])
    np.testing.assert_array_equal(mine[1], dst[graph.edge_ids])
    assert np.isin(mine[1], graph.dst_ids).all()
    hetero = sar.Graph({("a", "r", "b"): (src[:50], dst[:50]), ("b", "s", "b"): (src[50:], dst[50:])}, {"a": 60, "b": 60})
    got = hetero.edges("s")
    np.testing.assert_array_equal(got[0], src[50:][hetero["s"].edge_ids])
    with pytest.raises(sar.InputError, match="say of which"):
        hetero.edges()


def test_has_edges_between(comm):
    src, dst, graph = random_graph()
    draw = np.random.default_rng(comm.rank)
    u, v = draw.integers(0, 60, (2, 500)) if comm.rank < 2 else np.zeros((2, 0), np.int64)
    u[:50], v[:50] = src[:len(u[:50])], dst[:len(u[:50])]
    known = set(zip(src.tolist(), dst.tolist()))
    found = graph.has_edges_between(u, v)
    assert found.dtype == bool and found.tolist() == [pair in known for pair in zip(u.tolist(), v.tolist())]
    assert graph.has_edges_between(int(src[0]), int(dst[0])) is True and graph.has_edges_between(0, 59) is False
    for wrong in (60, -1):
        with pytest.raises(sar.InputError, match=f"there is no node {wrong} in the graph"):
            graph.has_edges_between([wrong], [0])
    nodes = np.arange(3) * comm.size + comm.rank + 100  # ids that are no row numbers
    ring = sar.Graph((nodes, (nodes - 99) % (3 * comm.size) + 100), nodes=nodes[::-1].copy()) if comm.size == 1 else None
    if ring is not None:
        assert ring.has_edges_between([100, 101, 102, 100], [101, 102, 100, 102]).tolist() == [True, True, True, False]
        with pytest.raises(sar.InputError, match="there is no node 0"):
            ring.has_edges_between([0], [100])
    hetero = sar.Graph({("a", "r", "b"): ([0, 1], [1, 2]), ("b", "s", "b"): ([0], [2])}, {"a": 2, "b": 3})
    assert hetero.has_edges_between([0, 0, 1], [1, 0, 2], etype="r").tolist() == [True, False, True]
    assert hetero["s"].has_edges_between([0, 2], [2, 0]).tolist() == [True, False]
    with pytest.raises(sar.InputError, match="say of which"):
        hetero.has_edges_between([0], [1])


def test_repr_says_what_a_graph_has(comm):
    graph = given_graph()[-1]
    text = repr(graph)
    assert text.startswith(f"sar.Graph(nodes=60, edges=300; rank {comm.rank} of {comm.size} has {graph.num_nodes()} nodes, ")
    assert f"ndata: x [{graph.num_nodes()}, 2], y [{graph.num_nodes()}]" in text and f"edata: r [{graph.num_edges()}, 1]" in text
    hetero = sar.Graph({("a", "r", "b"): ([0, 1], [1, 2])}, {"a": 2, "b": 3})
    hetero.nodes["b"].data["h"] = sar.zeros([hetero.num_nodes("b"), 2])
    assert "nodes={a: 2, b: 3}, edges={a:r:b: 2}" in repr(hetero) or "nodes=" in repr(hetero)
    assert repr(hetero).endswith(f"b: h [{hetero.num_nodes('b')}, 2])")


def test_subgraphs_have_the_edges_between_their_nodes(comm):
    src, dst, weight, rows, x, graph = given_graph()
    chosen = np.array([3, 1, 7, 9, 20, 21, 22, 40, 41, 42, 43, 58, 59, 3])
    inside = np.isin(src, chosen) & np.isin(dst, chosen)
    for nodes in (chosen, chosen[comm.rank::comm.size], np.isin(graph.src_ids, chosen)):
        sub = graph.subgraph(nodes)
        assert sub.num_global_nodes() == 13 and sub.num_global_edges() == inside.sum() > 5
        np.testing.assert_array_equal(pairs_of(sub, sub.edge_weight, sub.edata["r"]), expected(src[inside], dst[inside], weight[inside], rows[inside]))
        np.testing.assert_array_equal(sub.ndata["x"], x[sub.src_ids])
        np.testing.assert_array_equal(sub.ndata["y"], sub.src_ids)
        np.testing.assert_array_equal(graph.src_ids[sub.parent_rows], sub.src_ids)
    for wrong, error in (([70], "no node 70"), ([-1], "no node -1"), ([0.5], "array of float64"), (np.ones((2, 2), bool), "mask of shape"),
                         ({"_N": [1]}, "given as a dict"), ([], "subgraph of no nodes")):
        with pytest.raises((sar.InputError, sar.ShapeError), match=error):
            graph.subgraph(wrong)


def test_gradients_reach_the_fields_that_a_subgraph_has_taken(comm):
    *_, graph = given_graph()
    x = sar.tensor(np.ones((graph.num_nodes(), 2)), requires_grad=True)
    graph.ndata["x"] = x
    sub = graph.subgraph(np.arange(0, 60, 2))
    sar.sum(sub.update_all(sar.fn.copy_u("x", "m"), sar.fn.sum)).backward()
    out = np.bincount(pairs_of(sub)[:, 0].astype(int), minlength=60)
    np.testing.assert_allclose(x.grad, np.repeat(out[graph.src_ids, None], 2, 1))


def test_subgraphs_of_graphs_with_types(comm):
    draw = np.random.default_rng(0)
    ends = draw.integers(0, 20, (2, 80)), (draw.integers(0, 20, 60), draw.integers(0, 9, 60))
    weight = np.arange(60, dtype=np.float32)
    hetero = sar.Graph({("user", "follows", "user"): tuple(ends[0]), ("user", "plays", "game"): (*ends[1], weight)}, {"user": 20, "game": 9})
    hetero.nodes["game"].data["name"] = hetero.local_rows(np.arange(9), "game")
    hetero["follows"].edata["k"] = hetero.edge_rows(np.arange(80.0), etype="follows")
    users, games = np.arange(0, 20, 3), np.array([1, 2, 8])
    sub = hetero.subgraph({"user": users, "game": games})
    assert sub.canonical_etypes == hetero.canonical_etypes
    assert (sub.num_global_nodes("user"), sub.num_global_nodes("game")) == (7, 3)
    follows, plays = np.isin(ends[0], users).all(0), np.isin(ends[1][0], users) & np.isin(ends[1][1], games)
    np.testing.assert_array_equal(pairs_of(sub["follows"], sub["follows"].edata["k"]), expected(*ends[0][:, follows], np.arange(80)[follows]))
    np.testing.assert_array_equal(pairs_of(sub["plays"], sub["plays"].edge_weight), expected(ends[1][0][plays], ends[1][1][plays], weight[plays]))
    np.testing.assert_array_equal(sub.nodes["game"].data["name"], sub.node_ids("game"))
    assert set(sub.parent_rows) == {"user", "game"}
    with pytest.raises(sar.InputError, match="no node type 'film'"):
        hetero.subgraph({"film": [1]})
    with pytest.raises(sar.InputError, match="expected a dict by node type"):
        hetero.subgraph([1])


def test_self_loops(comm):
    src, dst, weight, rows, x, graph = given_graph()
    without = graph.remove_self_loop()
    other = src != dst
    assert not other.all()
    np.testing.assert_array_equal(pairs_of(without, without.edge_weight, without.edata["r"]), expected(src[other], dst[other], weight[other], rows[other]))
    loops = sar.add_self_loop(without)
    np.testing.assert_array_equal(loops.local_rows(np.arange(60)), graph.src_ids)
    nodes = np.arange(60)
    np.testing.assert_array_equal(pairs_of(loops, loops.edge_weight, loops.edata["r"]),
                                  expected(*(np.concatenate(pair) for pair in ((src[other], nodes), (dst[other], nodes), (weight[other], np.ones(60)),
                                                                               (rows[other], np.zeros(60))))))
    np.testing.assert_array_equal(loops.ndata["x"], x[loops.src_ids])
    assert len(np.unique(comm.all_gather(loops.edge_ids))) == loops.num_global_edges()


def test_reverse_edges(comm):
    src, dst, weight, rows, x, graph = given_graph()
    back = sar.reverse(graph)
    np.testing.assert_array_equal(pairs_of(back, back.edge_weight, back.edata["r"]), expected(dst, src, weight, rows))
    np.testing.assert_array_equal(back.ndata["y"], back.src_ids)
    both = sar.add_reverse_edges(graph)
    of_two = src != dst  # dgl.add_reverse_edges leaves self loops out
    pairs = (src, dst[of_two]), (dst, src[of_two]), (weight, weight[of_two])
    np.testing.assert_array_equal(pairs_of(both, both.edge_weight), expected(*(np.concatenate(pair) for pair in pairs)))
    assert sar.add_reverse_edges(sar.Graph(([0, 0], [0, 1]), 2)).num_global_edges() == 3
    one = sar.to_bidirected(graph)
    wanted = {}
    for u, v, w in zip(src, dst, weight):
        wanted.setdefault((u, v), w)
    for (u, v), w in list(wanted.items()):
        wanted.setdefault((v, u), w)
    got = pairs_of(one, one.edge_weight)
    np.testing.assert_array_equal(got[:, :2], expected(*np.array(list(wanted)).T))
    forward = {pair for pair in zip(src, dst)}
    for u, v, w in got:  # an edge that was there has the weight of its lowest id
        if (u, v) in forward:
            assert w == wanted[(u, v)]


def test_components(comm):
    networkx = pytest.importorskip("networkx")
    draw = np.random.default_rng(6)
    src, dst = draw.integers(0, 200, (2, 130))
    src, dst = np.concatenate([src, np.arange(300, 360)]), np.concatenate([dst, np.arange(301, 361)])  # a path
    graph = sar.Graph((src, dst), 400)
    label = sar.connected_components(graph)
    known = networkx.Graph()
    known.add_nodes_from(range(400))
    known.add_edges_from(zip(src, dst))
    components = sorted(networkx.connected_components(known), key=lambda nodes: (-len(nodes), min(nodes)))
    for nodes in components:
        np.testing.assert_array_equal(label[np.isin(graph.src_ids, list(nodes))], min(nodes))
    largest = sar.largest_connected_component(graph)
    assert largest.num_global_nodes() == len(components[0])
    assert set(comm.all_gather(largest.src_ids).astype(int)) == components[0]


def test_transforms_of_other_graphs_are_refused():
    hetero = sar.Graph({("a", "r", "b"): ([0, 1], [1, 2])}, {"a": 2, "b": 3})
    for transform in (sar.add_self_loop, sar.remove_self_loop, sar.reverse, sar.to_bidirected, sar.to_simple, sar.connected_components):
        with pytest.raises(sar.InputError, match="expected a graph of one node type"):
            transform(hetero)


@pytest.mark.parametrize("weighted", (False, True))
def test_a_graph_with_types_as_one_without(comm, weighted):
    draw = np.random.default_rng(7)
    counts = {"user": 11, "game": 6}
    ends = {("user", "plays", "game"): (draw.integers(0, 11, 30), draw.integers(0, 6, 30)),
            ("game", "liked", "user"): (draw.integers(0, 6, 20), draw.integers(0, 11, 20)),
            ("user", "knows", "user"): (draw.integers(0, 11, 25), draw.integers(0, 11, 25))}
    weights = {etype: draw.uniform(1, 2, len(of[0])).astype(np.float32) for etype, of in ends.items()}
    given = {etype: (*of, weights[etype]) if weighted and etype[1] != "liked" else of for etype, of in ends.items()}
    hetero = sar.Graph(given, counts)
    x = {ntype: draw.normal(size=(count, 3)).astype(np.float32) for ntype, count in counts.items()}
    kinds = {etype: draw.integers(0, 1 << 40, len(of[0])) for etype, of in ends.items()}
    for ntype in counts:
        hetero.nodes[ntype].data["x"] = sar.tensor(hetero.local_rows(x[ntype], ntype), requires_grad=True)
    for etype in ends:
        hetero[etype].edata["kind"] = kinds[etype][hetero[etype].edge_ids]
    graph = sar.to_homogeneous(hetero, ndata=["x"], edata=["kind"])
    assert graph.num_global_nodes() == 17 and graph.num_global_edges() == 75 and graph.num_nodes() == hetero.num_nodes()
    assert (graph.edge_weight is not None) == weighted
    # nodes and edges are those of all types, one type after the other
    whole = np.concatenate([x["game"], x["user"]]) if hetero.ntypes[0] == "game" else np.concatenate([x["user"], x["game"]])
    np.testing.assert_allclose(graph.ndata["x"].numpy(), whole[graph.src_ids])
    first = np.cumsum([0] + [counts[ntype] for ntype in hetero.ntypes])
    np.testing.assert_array_equal(graph.src_ids, first[graph.ndata["_TYPE"]] + graph.ndata["_ID"])
    src, dst = graph.edges()
    for number, etype in enumerate(hetero.canonical_etypes):
        rows = np.flatnonzero(graph.edata["_TYPE"] == number)
        ids = graph.edata["_ID"][rows]
        assert comm.all_reduce(float(len(rows))) == len(ends[etype][0])
        np.testing.assert_array_equal(graph.edata["kind"][rows], kinds[etype][ids])
        for end, found, ntype in ((0, src, etype[0]), (1, dst, etype[2])):
            np.testing.assert_array_equal(found[rows], first[hetero.ntypes.index(ntype)] + ends[etype][end][ids])
        if weighted:
            of = graph.edge_weight.numpy().reshape(-1)[rows]
            np.testing.assert_array_equal(of, np.ones(len(rows)) if etype[1] == "liked" else weights[etype][ids])
    # sums over all edges are the sums over those of each type, and their gradients arrive at the rows of the types
    total = graph.update_all(sar.fn.copy_u(graph.ndata["x"]), sar.fn.sum)
    total.sum().backward()
    expected = {ntype: np.zeros((count, 3)) for ntype, count in counts.items()}
    out_degrees = {ntype: np.zeros(count) for ntype, count in counts.items()}
    for etype, (a, b) in ends.items():
        np.add.at(expected[etype[2]], b, x[etype[0]][a])
        np.add.at(out_degrees[etype[0]], a, 1)
    wanted = np.concatenate([hetero.local_rows(expected[ntype], ntype) for ntype in hetero.ntypes])
    np.testing.assert_allclose(total.numpy(), wanted, atol=1e-5)
    for ntype in counts:
        gradient = np.asarray(hetero.nodes[ntype].data["x"].grad)
        np.testing.assert_allclose(gradient, np.repeat(hetero.local_rows(out_degrees[ntype], ntype)[:, None], 3, 1), atol=1e-5)
    layer = sar.nn.RelGraphConv(3, 4, 3)
    assert layer(graph, graph.ndata["x"], graph.edata["_TYPE"]).shape == (graph.num_nodes(), 4)
    with pytest.raises(sar.InputError, match="the nodes of .* have no field 'y', expected one of all types"):
        sar.to_homogeneous(hetero, ndata=["y"])


def test_fields_of_pyg(comm):
    draw = np.random.default_rng(1)
    src, dst = draw.integers(0, 9, (2, 20))
    x, y, mask = draw.normal(size=(9, 3)), draw.integers(0, 1 << 40, 9), draw.uniform(size=9) < 0.5
    kinds = draw.integers(-(1 << 50), 1 << 50, 20)
    data = SimpleNamespace(edge_index=np.stack([src, dst]), num_nodes=9, x=x, y=y, train_mask=mask, edge_type=kinds, edge_attr=x[src],
                           name="cora")
    graph = sar.Graph(data)
    np.testing.assert_allclose(graph.ndata["x"], x[graph.src_ids], rtol=1e-6)
    np.testing.assert_array_equal(graph.ndata["y"], y[graph.src_ids])
    np.testing.assert_array_equal(graph.ndata["train_mask"], mask[graph.src_ids])
    assert graph.ndata["train_mask"].dtype == bool and set(graph.ndata) == {"x", "y", "train_mask"}
    np.testing.assert_array_equal(graph.edata["edge_type"], kinds[graph.edge_ids])
    np.testing.assert_allclose(graph.edata["edge_attr"], x[src[graph.edge_ids]], rtol=1e-6)

    class Hetero(Items):
        node_types, edge_types = ["user", "game"], [("user", "plays", "game"), ("user", "knows", "user")]

    data = Hetero()
    data["user"] = SimpleNamespace(num_nodes=9, x=x, y=y)
    data["game"] = SimpleNamespace(num_nodes=4, x=x[:4])
    data[Hetero.edge_types[0]] = SimpleNamespace(edge_index=np.stack([src, dst % 4]), edge_attr=x[src])
    data[Hetero.edge_types[1]] = SimpleNamespace(edge_index=np.stack([src, dst]), edge_weight=np.arange(20.0))
    hetero = sar.Graph(data)
    assert hetero.canonical_etypes == Hetero.edge_types or set(hetero.canonical_etypes) == set(Hetero.edge_types)
    np.testing.assert_array_equal(hetero.nodes["user"].data["y"], y[hetero.node_ids("user")])
    np.testing.assert_allclose(hetero.nodes["game"].data["x"], x[hetero.node_ids("game")], rtol=1e-6)
    np.testing.assert_array_equal(pairs_of(hetero["knows"], hetero["knows"].edge_weight), expected(src, dst, np.arange(20)))
    np.testing.assert_allclose(hetero["plays"].edata["edge_attr"], x[src[hetero["plays"].edge_ids]], rtol=1e-6)


class Dgl:
    """As much of a DGLGraph as is read."""

    class Edges:
        def __init__(self, ends, data):
            self.ends, self.of = ends, data

        def __call__(self, etype=None):
            return self.ends[etype]

        def __getitem__(self, etype):
            return SimpleNamespace(data=self.of[etype])

    def __init__(self, ends, counts, ndata, edata):
        self.canonical_etypes, self.ntypes, self.counts = [each for each in ends if each], [each for each in counts if each], counts
        self.edges = self.Edges(ends, edata)
        self.nodes = {ntype: SimpleNamespace(data=fields) for ntype, fields in ndata.items()}
        self.ndata, self.edata = ndata.get(None, {}), edata.get(None, {})

    def num_nodes(self, ntype=None):
        return self.counts[ntype]


def test_fields_of_dgl(comm):
    draw = np.random.default_rng(1)
    ends = draw.integers(0, 9, (2, 20))
    x, w = draw.normal(size=(9, 3)).astype(np.float32), np.arange(20.0)
    graph = sar.Graph(Dgl({None: ends}, {None: 9}, {None: {"x": x, "label": np.arange(9)}}, {None: {"w": w}}))
    np.testing.assert_array_equal(graph.ndata["x"], x[graph.src_ids])
    np.testing.assert_array_equal(graph.ndata["label"], graph.src_ids)
    np.testing.assert_array_equal(pairs_of(graph, graph.edata["w"]), expected(*ends, w))
    assert graph.edge_weight is None
    etype, other = ("a", "r", "b"), ("b", "s", "b")
    hetero = sar.Graph(Dgl({etype: ends, other: ends[::-1]}, {"a": 9, "b": 12}, {"a": {"x": x}, "b": {}}, {etype: {"w": w}, other: {}}))
    assert set(hetero.canonical_etypes) == {etype, other} and hetero.num_global_nodes("b") == 12
    np.testing.assert_array_equal(hetero.nodes["a"].data["x"], x[hetero.node_ids("a")])
    np.testing.assert_array_equal(pairs_of(hetero["r"], hetero["r"].edata["w"]), expected(*ends, w))
    np.testing.assert_array_equal(pairs_of(hetero["s"]), expected(*ends[::-1]))


def test_fields_of_networkx(comm):
    networkx = pytest.importorskip("networkx")
    given = networkx.Graph()
    for node, name in enumerate("abcdef"):
        given.add_node(name, x=[node, 2.5], kind=node, name=name, **({"some": 1} if node else {}))
    given.add_edge("a", "b", weight=2.0, length=0.5, kind=7)
    given.add_edge("c", "b", weight=3.0, length=1.5, kind=8)
    given.add_edge("e", "e", weight=4.0, length=2.5, kind=9)
    graph = sar.Graph(given)
    assert set(graph.ndata) == {"x", "kind"} and set(graph.edata) == {"length", "kind"}
    np.testing.assert_array_equal(graph.ndata["x"], [[node, 2.5] for node in graph.src_ids])
    np.testing.assert_array_equal(graph.ndata["kind"], graph.src_ids)
    wanted = np.array([[0, 1, 2, 0.5, 7], [1, 0, 2, 0.5, 7], [2, 1, 3, 1.5, 8], [1, 2, 3, 1.5, 8], [4, 4, 4, 2.5, 9]])
    np.testing.assert_array_equal(pairs_of(graph, graph.edge_weight, graph.edata["length"], graph.edata["kind"]), expected(*wanted.T))


def test_tables_of_edges(comm):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"source": [0, 1, 3], "Target": [1, 2, 0], "weight": [0.5, 1, 2], "year": [2001, 2002, 2003], "note": list("abc")})
    check_table(table)


def check_table(table):
    graph = sar.Graph(table, num_nodes=5)
    np.testing.assert_array_equal(pairs_of(graph, graph.edge_weight, graph.edata["year"]),
                                  expected([0, 1, 3], [1, 2, 0], [0.5, 1, 2], [2001, 2002, 2003]))
    assert set(graph.edata) == {"year"} and graph.num_global_nodes() == 5


def test_tables_of_edges_without_pandas(comm):
    class Table(Items):
        iloc = None
        columns = property(lambda table: list(table.all))

    check_table(Table({"source": [0, 1, 3], "Target": [1, 2, 0], "weight": [0.5, 1, 2], "year": [2001, 2002, 2003], "note": list("abc")}))
    with pytest.raises(sar.InputError, match="expected one called target or dst"):
        sar.Graph(Table({"source": [0], "end": [1]}))


def test_reductions_of_python(comm):
    src, dst, weight, rows, x, graph = given_graph()
    given = sar.tensor(graph.ndata["x"], requires_grad=True)

    def mean(nodes):
        assert nodes.mailbox["m"].shape[0] == nodes.batch_size() == nodes.data["x"].shape[0]
        return {"h": nodes.mailbox["m"].mean(1)}

    graph.ndata["x"] = given
    assert graph.update_all(sar.fn.u_mul_e("x", graph.edge_weight, "m"), mean) is None
    wanted = graph.update_all(sar.fn.u_mul_e("x", graph.edge_weight, "m"), sar.fn.mean)
    np.testing.assert_allclose(graph.ndata["h"], wanted, rtol=1e-5, atol=1e-6)
    assert comm.all_reduce(float((graph.in_degrees() == 0).sum())) > 0
    seed = np.random.default_rng(comm.rank).normal(size=wanted.shape).astype(np.float32)
    (graph.ndata["h"] * sar.tensor(seed)).sum().backward()
    gradient = given.grad.numpy().copy()
    given.zero_grad()
    (graph.update_all(sar.fn.u_mul_e("x", graph.edge_weight, "m"), sar.fn.mean) * sar.tensor(seed)).sum().backward()
    np.testing.assert_allclose(gradient, given.grad, rtol=1e-4, atol=1e-5)

    def twice(edges):
        return {"twice": edges.src["x"] * 2.0}

    seen = []
    result = graph.update_all(twice, lambda nodes: seen.append(nodes.mailbox["twice"].numpy()) or nodes.mailbox["twice"].mean(1))
    np.testing.assert_allclose(result, 2 * graph.update_all(sar.fn.copy_u(given), "mean").numpy(), rtol=1e-5, atol=1e-6)
    first = {degree.shape[1]: degree for degree in seen if len(degree)}
    node = np.flatnonzero(graph.in_degrees() == max(first))[0] if first else None
    if node is not None:  # the messages of a node are in the order of the ids of its edges
        sources = src[np.sort(np.flatnonzero(dst == graph.dst_ids[node]))]
        np.testing.assert_allclose(first[max(first)][0], 2 * x[sources], rtol=1e-6)
    with pytest.raises(sar.Error, match="a reduction returned rows of shape"):
        graph.update_all(twice, lambda nodes: sar.zeros([1000, 2]))
    with pytest.raises(sar.Error, match="a reduction returned a int"):
        graph.update_all(twice, lambda nodes: 3)


def test_fields_of_edges_where_a_rank_has_none(comm):
    networkx = pytest.importorskip("networkx")
    given, rank = networkx.DiGraph(), comm.rank
    given.add_nodes_from([2 * rank, 2 * rank + 1])
    if rank == 0:
        given.add_edge(0, 1, weight=2.0, length=[1.0, 3.0])
    graph = sar.Graph(given, nodes=[2 * rank, 2 * rank + 1])
    assert graph.edata["length"].shape == (1 if rank == 0 else 0, 2)
    if comm.size > 1:
        given = networkx.DiGraph()
        given.add_nodes_from([2 * rank, 2 * rank + 1])
        given.add_edge(2 * rank, 2 * rank + 1, **{"a" if rank == 0 else "b": 1.0})
        with pytest.raises(sar.InputError, match="fields of edges with different names, types or widths"):
            sar.Graph(given, nodes=[2 * rank, 2 * rank + 1])


def test_fields_of_nodes_that_the_ranks_give(comm):
    networkx = pytest.importorskip("networkx")
    rank, size = comm.rank, comm.size
    owners = np.arange(5) % max(size - 1, 1)  # the last of several ranks has no nodes
    mine = np.flatnonzero(owners == rank)[::-1].copy()
    counts = comm.all_gather([len(mine)])
    assert size == 1 or counts[-1] == 0
    total = int(np.sum(counts))
    given = networkx.DiGraph()
    for node in sorted(map(int, mine)):
        given.add_node(node, x=[node, 0.5], kind=node, mask=node > 0)
    for node in map(int, mine):
        given.add_edge((node + 1) % total, node, length=float(node))
    graph = sar.Graph(given, nodes=mine)
    assert graph.num_global_nodes() == total == graph.num_global_edges()
    np.testing.assert_array_equal(graph.ndata["x"], np.stack([mine, np.full(len(mine), 0.5)], 1))
    np.testing.assert_array_equal(graph.ndata["kind"], mine)
    np.testing.assert_array_equal(graph.ndata["mask"], mine > 0)
    assert graph.ndata["kind"].dtype == np.int64 and graph.ndata["mask"].dtype == bool and isinstance(graph.ndata["x"], sar.Tensor)
    assert isinstance(graph.edata["length"], sar.Tensor) and set(graph.ndata) == {"x", "kind", "mask"}
    np.testing.assert_array_equal(pairs_of(graph, graph.edata["length"]), expected((np.arange(total) + 1) % total, np.arange(total), np.arange(total)))

    ends = np.array([(mine + 1) % total, mine])
    data = SimpleNamespace(edge_index=ends, num_nodes=len(mine), x=np.stack([mine, mine], 1).astype(np.float32))
    for graph in (sar.Graph(data, nodes=mine), sar.Graph(Dgl({None: ends}, {None: len(mine)}, {None: {"x": data.x}}, {None: {}}), nodes=mine)):
        np.testing.assert_array_equal(graph.ndata["x"], data.x)
    etype = ("a", "r", "a")
    hetero = Items({"a": SimpleNamespace(num_nodes=len(mine), x=data.x), etype: SimpleNamespace(edge_index=ends)})
    hetero.node_types, hetero.edge_types = ["a"], [etype]
    np.testing.assert_array_equal(sar.Graph(hetero, nodes={"a": mine}).nodes["a"].data["x"], data.x)
    np.testing.assert_array_equal(sar.Graph((*ends,), nodes=mine).ndata.get("x", []), [])

    data.num_nodes, data.x = 50, np.zeros((50, 2))
    with pytest.raises(sar.ShapeError, match="the field 'x' has 50 rows, expected a row for each of the .* `nodes` of this rank"):
        sar.Graph(data, nodes=mine)
    with pytest.raises(sar.ShapeError, match="expected no fields in a graph with different sources and destinations"):
        sar.Graph(data, nodes=(mine, mine))
    with pytest.raises(sar.InputError, match="nodes of NetworkX beside `nodes` have dtype <U1, expected integers"):
        sar.Graph(networkx.DiGraph([("a", "b")]), nodes=mine)
    if size > 1:
        data.num_nodes, data.x = len(mine), np.zeros((len(mine), 2 + (rank == 0)))
        if size > 2:
            with pytest.raises(sar.InputError, match="fields of nodes with different names, types or widths"):
                sar.Graph(data, nodes=mine)


def test_what_is_wrong_on_one_rank_is_the_same_error_on_all(comm):
    ends = [2 * comm.rank], [2 * comm.rank + 1]
    nodes = [2 * comm.rank, 2 * comm.rank + 1]
    with pytest.raises(sar.InputError, match="edges are given as None"):
        sar.Graph(None if comm.rank == 0 else ends, nodes=nodes)
    graph = sar.Graph(ends, nodes=nodes)
    with pytest.raises(sar.ShapeError, match="rows of shape .* for 1 edges that were given"):
        graph.edge_rows([1.0, 2, 3] if comm.rank == 0 else [1.0])


class OfTorch:
    """A tensor of torch that requires a gradient, in a type that NumPy may not have."""

    def __init__(self, values, dtype="torch.float32", constant=False):
        self.values, self.dtype, self.constant = np.asarray(values), dtype, constant

    def detach(self):
        return OfTorch(self.values, self.dtype, True)

    def float(self):
        return OfTorch(self.values, "torch.float32", self.constant)

    def __array__(self, dtype=None, copy=None):
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        if not self.constant:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self):
        return len(self.values)


class SparseOfTorch:
    """A sparse tensor of torch."""

    layout = "torch.sparse_csr"

    def __init__(self, row, column, values, size):
        self.entries, self.shape = (np.array([row, column]), np.asarray(values)), (size, size)

    def detach(self):
        return self

    def to_sparse_coo(self):
        return self

    coalesce = to_sparse_coo

    def indices(self):
        return self.entries[0]

    def values(self):
        return self.entries[1]


def test_fields_of_torch_that_require_a_gradient_or_are_bfloat16(comm):
    src, dst = np.arange(6), (np.arange(6) + 1) % 6
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    graph = sar.Graph(SimpleNamespace(edge_index=np.stack([src, dst]), num_nodes=6, x=OfTorch(x), h=OfTorch(2 * x, "torch.bfloat16"),
                                      edge_attr=OfTorch(x, "torch.bfloat16")))
    np.testing.assert_array_equal(graph.ndata["x"], x[graph.src_ids])
    np.testing.assert_array_equal(graph.ndata["h"], 2 * x[graph.src_ids])
    np.testing.assert_array_equal(graph.edata["edge_attr"], x[graph.edge_ids])
    np.testing.assert_array_equal(sar.tensor(OfTorch(x, "torch.bfloat16", constant=True)), x)
    with pytest.raises(sar.InputError, match="the values given as OfTorch are no array: Can't call numpy"):
        sar.tensor(OfTorch(x))


def test_sparse_tensors_of_torch_are_graphs(comm):
    row, column, weight = [0, 1, 2, 3], [1, 2, 0, 0], [1, 2, 3, 4]
    graph = sar.Graph(SparseOfTorch(row, column, weight, 5))
    assert graph.num_global_nodes() == 5
    np.testing.assert_array_equal(pairs_of(graph, graph.edge_weight), expected(row, column, weight))
    adjacent = SimpleNamespace(edge_index=None, num_nodes=5, x=np.ones((5, 2)), adj_t=SparseOfTorch(row, column, weight, 5))
    graph = sar.Graph(adjacent)  # of PyG's transform ToSparseTensor: from columns to rows
    np.testing.assert_array_equal(pairs_of(graph, graph.edge_weight), expected(column, row, weight))
    assert list(graph.ndata) == ["x"]


def test_fields_may_be_arrays_where_messages_read_them(comm):
    graph = sar.Graph(([0, 1, 2], [1, 2, 0]), 3)
    graph.ndata["h"] = graph.local_rows(np.arange(6.0).reshape(3, 2))
    graph.update_all(sar.fn.copy_u("h", "m"), sar.fn.sum("m", "y"))
    np.testing.assert_array_equal(graph.ndata["y"], np.arange(6.0).reshape(3, 2)[(graph.dst_ids - 1) % 3])


def test_a_field_has_a_row_for_each_node_or_edge():
    graph = sar.Graph(([0, 1, 2, 2], [1, 2, 0, 1]), num_nodes=3)
    nodes, edges = graph.num_nodes(), graph.num_edges()
    for frame, rows, of in ((graph.ndata, nodes, "nodes"), (graph.edata, edges, "edges")):
        frame["right"] = np.ones((rows, 2))
        for wrong in (np.ones(rows + 1), 3, sar.tensor(np.ones((rows + 2, 1)))):
            with pytest.raises(sar.ShapeError, match=f"the field 'wrong' of the {of} has the shape .*, expected a row for each of the {rows} {of}"):
                frame["wrong"] = wrong
            with pytest.raises(sar.ShapeError, match="the field 'wrong'"):
                frame.update(wrong=wrong)
        assert list(frame) == ["right"]
    typed = sar.Graph({("a", "to", "b"): ([0, 1], [0, 0])}, num_nodes={"a": 2, "b": 1})
    typed.nodes["a"].data["x"] = np.ones((typed.num_nodes("a"), 1))
    with pytest.raises(sar.ShapeError, match="the field 'x' of the nodes"):
        typed.nodes["b"].data["x"] = np.ones((typed.num_nodes("b") + 1, 1))
    with pytest.raises(sar.ShapeError, match="the field 'w' of the edges"):
        typed["to"].edata["w"] = np.ones(typed["to"].num_edges() + 1)


def test_ids_that_no_float64_has(comm):
    ids = 2 ** 60 + np.arange(6)
    mine = ids if comm.rank == 0 else ids[:0]
    src, dst = (ids[[0, 1, 3, 4]], ids[[1, 2, 4, 3]]) if comm.rank == 0 else (ids[:0], ids[:0])
    graph = sar.Graph((src, dst), nodes=mine)
    assert sar.subgraph(graph, ids[:2]).num_global_nodes() == 2
    labels = comm.all_gather(np.asarray(sar.connected_components(graph)))
    assert len(set(labels.tolist())) == 3  # 0-1-2, 3-4, 5
    assert sar.add_self_loop(graph).num_global_edges() == 10


def test_refused_fields_change_nothing():
    graph = sar.Graph(([0, 1], [1, 2]), num_nodes=3)
    fields, rows = graph.ndata, np.ones(graph.num_nodes(), np.float32)
    fields["a"] = rows
    with pytest.raises(sar.ShapeError):
        fields.update({"b": rows, "c": np.ones(7)})
    with pytest.raises(sar.ShapeError):
        fields |= {"c": np.ones(7)}
    assert list(graph.ndata) == ["a"]
    fields |= {"d": rows}
    with graph.local_scope():
        graph.ndata["e"] = rows
    assert list(graph.ndata) == ["a", "d"]


def test_edges_of_which_the_ends_are_not_sure():
    with pytest.raises(sar.InputError, match="expected .sources, destinations."):
        sar.Graph([(0, 1), (5, 6)])
    assert sar.Graph(([0, 1], [5, 6])).num_global_edges() == 2
    pandas = pytest.importorskip("pandas")
    with pytest.raises(sar.InputError, match="expected one called source or src"):
        sar.Graph(pandas.DataFrame({"source": [0], "target": [1], "from": [1]}))

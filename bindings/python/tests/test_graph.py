# SPDX-License-Identifier: MIT
import numpy as np
import pytest
from conftest import random_graph, whole

import sar
from sar import fn
from sar.nn import functional as F


def test_sum_over_edges(comm):
    src, dst, graph = random_graph()
    x = np.random.default_rng(2).normal(size=(60, 3)).astype(np.float32)
    y = graph.update_all(fn.copy_u(sar.tensor(graph.local_rows(x))), fn.sum)
    expected = np.zeros((60, 3))
    np.add.at(expected, dst, x[src])
    np.testing.assert_allclose(whole(graph, y), expected, rtol=1e-5, atol=1e-5)
    assert graph.num_global_nodes() == 60 and graph.num_global_edges() == 300
    assert comm.all_reduce(graph.num_edges()) == 300
    np.testing.assert_array_equal(whole(graph, graph.in_degrees()), np.bincount(dst, minlength=60))


def test_rows_of_edges_and_weights():
    weight = np.random.default_rng(3).uniform(size=300).astype(np.float32)
    src, dst, graph = random_graph(edge_weight=weight)
    np.testing.assert_allclose(graph.edge_rows(weight), graph.edge_weight, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(graph.edge_rows(np.arange(300))).astype(int), graph.edge_ids)
    x = np.ones((60, 1), np.float32)
    y = graph.update_all(fn.u_mul_e(sar.tensor(graph.local_rows(x)), graph.edge_weight), "sum")
    expected = np.zeros((60, 1))
    np.add.at(expected, dst, weight[:, None])
    np.testing.assert_allclose(whole(graph, y), expected, rtol=1e-5)


def test_fields_as_in_dgl():
    src, dst, graph = random_graph()
    x = np.random.default_rng(2).normal(size=(60, 3)).astype(np.float32)
    graph.ndata["h"] = sar.tensor(graph.local_rows(x))
    with graph.local_scope():
        graph.apply_edges(fn.u_dot_v("h", "h", "s"))
        graph.edata["a"] = sar.edge_softmax(graph, graph.edata["s"])
        graph.update_all(fn.u_mul_e("h", "a", "m"), fn.sum("m", "y"))
        y = graph.dstdata["y"]
    assert "y" not in graph.ndata and not graph.edata
    score = np.exp((x[src] * x[dst]).sum(1))
    total = np.zeros(60)
    np.add.at(total, dst, score)
    expected = np.zeros((60, 3))
    np.add.at(expected, dst, x[src] * (score / total[dst])[:, None])
    np.testing.assert_allclose(whole(graph, y), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(sar.InputError, match="the field 'z' of u"):
        graph.update_all(fn.copy_u("z", "m"), fn.sum("m", "y"))


def test_messages_in_python():
    src, dst, graph = random_graph()
    draw = np.random.default_rng(2)
    rows = draw.normal(size=(60, 3)).astype(np.float32)
    results = []
    for own in (False, True):
        x = sar.tensor(graph.local_rows(rows), requires_grad=True)
        w = sar.tensor(draw.normal(size=(3, 3)) if not results else results[0][2].numpy(), requires_grad=True)
        if own:
            graph.ndata["x"] = x
            y = graph.update_all(lambda edges: {"m": F.tanh(edges.src["x"] @ w) * edges.dst(x)}, fn.sum)
        else:
            y = graph.update_all(fn.u_mul_v(F.tanh(x @ w), x), fn.sum)
        (y * y).sum().backward()
        results.append((np.asarray(y), np.asarray(x.grad), w, np.asarray(sar.all_reduce(w.grad))))
    for one, other in zip(*results):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-4)
    edges = graph.apply_edges(lambda edges: edges.src(x) - edges.dst(x))
    np.testing.assert_allclose(np.asarray(edges), np.asarray(graph.apply_edges(fn.u_sub_v(x, x))), atol=1e-6)


def test_a_function_names_the_field_as_in_dgl(comm):
    graph = sar.Graph(([0, 0], [0, 0]), 4)  # all edges on one rank
    h = sar.tensor(np.ones((graph.num_nodes(), 2)), requires_grad=True)
    with graph.local_scope():
        graph.ndata["h"] = h
        graph.apply_edges(lambda edges: {"score": edges.src["h"] + edges.dst["h"]})
        score = graph.edata["score"]
    assert score.shape == (graph.num_edges(), 2)
    score.sum().backward()  # runs the function again, on the fields of then
    np.testing.assert_allclose(whole(graph, h.grad), np.array([[4.0], [0], [0], [0]]) * np.ones((1, 2)))
    graph.ndata["h"] = h.detach()
    with pytest.raises(sar.Error, match="returned 2 fields"):
        graph.apply_edges(lambda edges: {"a": edges.src["h"], "b": edges.src["h"]})


def test_an_exception_in_a_message_is_raised_by_all_ranks(comm):
    _, _, graph = random_graph()
    x = sar.tensor(graph.local_rows(np.ones((60, 2))))

    def message(edges):
        if comm.rank == comm.size - 1:
            raise KeyError("nothing here")
        return edges.src(x)

    with pytest.raises(sar.Error, match="KeyError: 'nothing here'"):
        graph.update_all(message, "sum")
    with pytest.raises(sar.Error, match="no sar.Tensor"):
        graph.update_all(lambda edges: 3, "sum")
    kept = []
    graph.update_all(lambda edges: kept.append(edges) or edges.src(x), "sum")
    with pytest.raises(sar.Error, match="after it has returned"):
        kept[0].src(x)
    graph.update_all(fn.copy_u(x), "sum")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_is_raised_as_itself(comm, kind):
    _, _, graph = random_graph()
    x, last = sar.tensor(graph.local_rows(np.ones((60, 2)))), comm.rank == comm.size - 1

    def end(rows):
        if last:
            raise kind
        return rows

    conv = sar.nn.GINConv(type("Net", (sar.nn.Module,), {"forward": lambda self, x: end(x)})())
    calls = (lambda: graph.update_all(lambda edges: end(edges.src(x)), "sum"), lambda: graph.apply_edges(lambda edges: end(edges.src(x))),
             lambda: conv(graph, x), lambda: comm.agree(lambda: end(x)))
    for call in calls:
        with pytest.raises(kind if last else sar.Error) as caught:
            call()
        assert last or kind.__name__ in str(caught.value)
        if last:
            assert caught.traceback[-1].name == "end"
        with pytest.raises(sar.ShapeError):
            x + sar.tensor(np.ones((61, 3)))
        graph.update_all(fn.copy_u(x), "sum")


def test_an_exception_of_sar_keeps_its_class(comm):
    def body():
        if comm.rank == 0:
            raise sar.ShapeError("wrong")

    with pytest.raises(sar.ShapeError, match="^wrong" if comm.size == 1 else "^rank 0: wrong"):
        comm.agree(body)


def test_reverse_edges_and_loops():
    graph = sar.Graph(([0, 1, 1], [1, 2, 1]), 4, edge_weight=[2, 3, 4], add_reverse_edges=True, add_self_loops="remaining")
    assert graph.num_global_edges() == 8
    x = sar.tensor(graph.local_rows(np.ones((4, 1), np.float32)))
    y = graph.update_all(fn.u_mul_e(x, graph.edge_weight), "sum")
    np.testing.assert_allclose(whole(graph, y)[:, 0], [3, 9, 4, 1])
    assert sar.Graph(([0, 1], [1, 1]), 4, add_self_loops=True).num_global_edges() == 6
    rows = graph.edge_rows([[1], [2], [3]], fill=-1)
    y = graph.update_all(fn.copy_e(rows), "sum")
    np.testing.assert_allclose(whole(graph, y)[:, 0], [0, 1 + 3 + 2, 1, -1])


def test_each_rank_gives_its_nodes(comm):
    mine = np.array([7 * comm.rank, 7 * comm.rank + 3]) if comm.rank % 2 == 0 else np.array([], int)
    ranks = [r for r in range(comm.size) if r % 2 == 0]
    nodes = np.concatenate([[7 * r, 7 * r + 3] for r in ranks])
    src, dst = (np.concatenate([nodes, nodes[::-1]]), np.concatenate([nodes[::-1], nodes])) if comm.rank == comm.size - 1 else ([], [])
    graph = sar.Graph((np.array(src, int), np.array(dst, int)), nodes=mine)
    np.testing.assert_array_equal(graph.src_ids, mine)
    y = graph.update_all(fn.copy_u(sar.tensor(mine.reshape(-1, 1))), "sum")
    np.testing.assert_allclose(np.asarray(y)[:, 0], 2 * (nodes[0] + nodes[-1] - mine))
    with pytest.raises(sar.InputError, match="local_rows"):
        graph.local_rows(np.ones(4))


def test_remaining_self_loops_are_those_of_pyg():
    graph = sar.Graph(([0, 0, 1], [0, 0, 0]), 2, edge_weight=[2, 3, 1], add_self_loops="remaining")
    assert graph.num_global_edges() == 3
    x = sar.tensor(graph.local_rows(np.array([[1.0], [10]])))
    y = sar.nn.GCNConv(1, 1, bias=False)
    y.load_state_dict({name: np.ones(np.shape(value), np.float32) for name, value in y.state_dict().items()})
    np.testing.assert_allclose(np.asarray(y(graph, x, graph.edge_weight)), graph.local_rows(np.array([[5.75], [10]])), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(y(graph, x)), graph.local_rows(np.array([[0.5 + 10 / 2**0.5], [10]])), rtol=1e-6)
    rows = np.asarray(graph.edge_rows([7, 8, 9], fill=1)).reshape(-1)
    np.testing.assert_array_equal(rows, [{1: 8, 2: 9, 3: 1}[i] for i in graph.edge_ids.tolist()])


def test_loops_of_nodes_whose_loops_other_ranks_give(comm):
    nodes, loops = np.arange(12), np.array([1, 5, 5, 9])
    mine = nodes[comm.rank::comm.size][::-1]
    ends = loops[(comm.rank + 1) % comm.size::comm.size]
    graph = sar.Graph((np.r_[ends, mine[:1]], np.r_[ends, mine[-1:]]), nodes=mine, add_self_loops="remaining")
    assert graph.num_global_edges() == 12 + comm.size
    y = graph.update_all(fn.copy_u(sar.tensor(np.ones((len(mine), 1)))), "sum")
    np.testing.assert_array_equal(np.asarray(y)[:, 0], 1 + (mine == mine[-1]))
    # the loop of the highest rank is the last one
    graph = sar.Graph(([3, 3, 7], [3, 3, 4]), nodes=mine, edge_weight=[2 + comm.rank, 5 + comm.rank, 1], add_self_loops="remaining")
    y = graph.update_all(fn.u_mul_e(sar.tensor(np.ones((len(mine), 1))), graph.edge_weight), "sum")
    np.testing.assert_array_equal(np.asarray(y)[:, 0], np.select([mine == 3, mine == 4], [4 + comm.size, 1 + comm.size], 1))
    assert np.asarray(graph.edge_rows([1, 2, 3])).sum() == 2 * (3 in mine) + 3 * comm.size * (4 in mine)
    if comm.size > 1:
        with pytest.raises(sar.InputError):
            sar.Graph(([100 * comm.rank], [100 * comm.rank]), nodes=mine, add_self_loops="remaining")


def test_whole_graphs_that_differ_between_ranks(comm):
    src, dst, weight, own = np.arange(6), np.arange(6)[::-1].copy(), np.ones(6), comm.rank == comm.size - 1
    other = src.copy()
    other[0] = 3
    wrong = [(src, dst, 6 + own, None, "num_nodes: 6 and 7"), (src[own:], dst[own:], 6, None, "numbers of edges: 6 and 5"),
             (other if own else src, dst, 6, None, "sources of edges"), (src, other if own else dst, None, None, "destinations of edges"),
             (src, dst, 6, weight + own, "weights"), (src, dst, 6, weight if own else None, "weights")]
    for s, d, count, w, text in wrong:
        types = {("a", "joins", "b"): (s, d) if w is None else (s, d, w)}
        if comm.size == 1:
            sar.Graph((s, d), count, edge_weight=w)
            sar.Graph(types, count and {"a": count, "b": count})
            continue
        with pytest.raises(sar.InputError, match=text):
            sar.Graph((s, d), count, edge_weight=w)
        with pytest.raises(sar.InputError, match=text.replace("num_nodes", "num_nodes of 'a'").split(" of edges")[0]):
            sar.Graph(types, count and {"a": count, "b": count})
    if comm.size > 1:  # what is wrong on one rank only, all ranks raise
        with pytest.raises(sar.InputError, match="an edge has the source -1"):
            sar.Graph((src - own, dst), 6)
        with pytest.raises(sar.ShapeError, match="6 sources of edges and 5 destinations"):
            sar.Graph((src, dst[own:]), 6)


def test_bipartite_graph(comm):
    mine = np.array([comm.rank])
    graph = sar.Graph((mine, mine), nodes=(mine, mine))
    conv = sar.nn.SAGEConv((3, 2), 4)
    y = conv(graph, (sar.tensor(np.ones((1, 3))), sar.tensor(np.ones((1, 2)))))
    assert y.shape == (1, 4) and graph.num_src_nodes() == graph.num_dst_nodes() == 1
    with pytest.raises(sar.ShapeError):
        conv(graph, sar.tensor(np.ones((1, 3))))


def test_graphs_of_other_packages():
    scipy = pytest.importorskip("scipy.sparse")
    networkx = pytest.importorskip("networkx")
    matrix = scipy.csr_matrix(np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]]))
    undirected = networkx.Graph([("a", "b"), ("b", "c"), ("c", "c")])

    class Pyg:
        edge_index, num_nodes = np.array([[0, 0, 2], [1, 2, 0]]), 3

    class Dgl:
        ndata = {}

        def edges(self):
            return np.array([0, 0, 2]), np.array([1, 2, 0])

        def num_nodes(self):
            return 3

    for given in (matrix, Pyg(), Dgl(), networkx.from_scipy_sparse_array(matrix, create_using=networkx.DiGraph),
                  np.array([[0, 0, 2], [1, 2, 0]]), [[0, 0, 2], [1, 2, 0]]):
        graph = sar.Graph(given)
        np.testing.assert_array_equal(whole(graph, graph.in_degrees()), [1, 1, 1])
        np.testing.assert_array_equal(whole(graph, graph.out_degrees()), [2, 0, 1])
    assert sar.Graph(undirected).num_global_edges() == 5


def test_weights_of_other_packages(comm):
    scipy = pytest.importorskip("scipy.sparse")
    networkx = pytest.importorskip("networkx")
    matrix = np.array([[0, 2, 0.5], [0, 0, 0], [3, 0, 0]])
    undirected = networkx.Graph()
    undirected.add_weighted_edges_from([(0, 1, 2.0), (0, 2, 0.5), (2, 2, 3.0)])
    undirected.add_edge(1, 2)

    class Pyg:
        edge_index, num_nodes, edge_weight = np.array([[0, 0, 2], [1, 2, 0]]), 3, np.array([[2], [0.5], [3]])
        edge_attr = np.ones((3, 4))

    class PygAttr:
        edge_index, num_nodes, edge_attr = Pyg.edge_index, 3, Pyg.edge_weight

    rows = sar.Graph(Pyg(), comm=comm).edata["edge_attr"]
    assert rows.shape[1:] == (4,) and np.all(rows.numpy() == 1)
    assert "edge_attr" not in sar.Graph(PygAttr(), comm=comm).edata
    both = matrix.copy()
    both[2, 2], both[1, 2] = 3, 1
    both[2, 0] = 0
    both = both + both.T - np.diag(both.diagonal())
    x = np.array([[1.0], [10], [100]])
    for given, expected in ((scipy.csr_matrix(matrix), matrix), (scipy.coo_array(matrix), matrix), (scipy.dok_matrix(matrix), matrix), (Pyg(), matrix), (PygAttr(), matrix),
                            (networkx.from_numpy_array(matrix, create_using=networkx.DiGraph), matrix), (undirected, both)):
        graph = sar.Graph(given)
        y = graph.update_all(fn.u_mul_e(sar.tensor(graph.local_rows(x)), graph.edge_weight), "sum")
        np.testing.assert_allclose(whole(graph, y), expected.T @ x)
        assert sar.Graph(given, edge_weight=np.full(graph.num_global_edges(), 7)).edge_weight.numpy().max(initial=7) == 7
    assert sar.Graph(scipy.csr_matrix(matrix != 0)).edge_weight is None and sar.Graph(networkx.path_graph(3)).edge_weight is None
    undirected[0][1]["weight"] = "heavy"
    with pytest.raises(sar.InputError, match="the weights have dtype <U"):
        sar.Graph(undirected)
    mine = np.arange(3)[comm.rank::comm.size]  # the weights of one rank only differ from 1
    rows = np.where(np.isin(np.arange(3), mine)[:, None], matrix, 0)
    assert sar.Graph(scipy.csr_matrix(rows), nodes=mine).num_global_edges() == 3


@pytest.mark.parametrize("edges, options, error, text", [
    (([0, 1], [1]), {}, sar.ShapeError, "2 sources of edges and 1 destinations"),
    (([0, 9], [1, 1]), {"num_nodes": 4}, sar.InputError, "the source 9, expected nodes 0 to 3"),
    (([0, 1], [-1, 1]), {"num_nodes": 4}, sar.InputError, "the destination -1"),
    (([0.5, 1], [0, 1]), {}, sar.InputError, "dtype float64, expected integers"),
    ((np.ones((2, 2), int), [1, 1]), {}, sar.ShapeError, "2 dimensions, expected 1"),
    (([0, 1], [1, 0]), {"edge_weight": [1.0]}, sar.ShapeError, r"weights of shape \[1\] for 2 edges"),
    (([0, 1], [1, 0]), {"edge_weight": [[1.0, 2]]}, sar.ShapeError, r"weights of shape \[1, 2\] for 2 edges"),
    (([0, 1], [1, 0]), {"num_nodes": 5, "nodes": [0, 1]}, sar.InputError, "num_nodes is 5 beside `nodes`"),
    (([0, 1], [1, 0]), {"num_nodes": 2.5}, sar.InputError, "num_nodes is 2.5, expected an integer"),
    (([0, 1], [1, 0]), {"mode": "fast"}, sar.InputError, "mode is 'fast', expected 'rematerialize'"),
    (([0, 1], [1, 0]), {"speed": 1}, sar.InputError, "no option 'speed'"),
    (([0, 1], [1, 0]), {"add_self_loops": "some"}, sar.InputError, "expected True, False or 'remaining'"),
    (7, {}, sar.InputError, "expected \\(sources, destinations\\)"),
])
def test_wrong_graphs(edges, options, error, text):
    with pytest.raises(error, match=text):
        sar.Graph(edges, **options)


def test_modes_give_the_same(comm):
    results = []
    for mode in ("rematerialize", "sequential", "one_shot"):
        src, dst, graph = random_graph(mode=mode)
        sar.manual_seed(1)
        conv = sar.nn.GATConv(3, 2, 2)
        results.append(whole(graph, conv(graph, sar.tensor(graph.local_rows(np.eye(60, 3))))))
    np.testing.assert_allclose(results[0], results[1], atol=1e-6)
    np.testing.assert_allclose(results[0], results[2], atol=1e-6)


def test_samples_keep_what_a_field_belongs_to():
    class LikeDGL:  # a ring has as many edges as nodes
        ndata = {"h": np.ones(4, np.float32), "x": np.zeros((4, 2), np.float32)}
        edata = {"w": np.full(4, 9, np.float32)}

        def edges(self):
            return np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0])

        def num_nodes(self):
            return 4

    batch = sar.batch([LikeDGL(), LikeDGL()])
    assert sorted(batch.ndata) == ["h", "x"] and list(batch.edata) == ["w"]
    LikeDGL.edata = {"h": np.full(4, 9, np.float32)}
    with pytest.raises(sar.InputError, match=r"nodes and edges of a sample have the fields \['h'\]"):
        sar.batch([LikeDGL()])


def test_a_graph_of_sar_is_no_graph_of_another_package():
    graph = sar.Graph(([0, 1], [1, 0]), 2, edge_weight=[5, 7])
    for call in (lambda: sar.Graph(graph), lambda: sar.batch([graph])):
        with pytest.raises(sar.InputError, match="a sar.Graph is given"):
            call()


def test_options_stay_until_they_are_set_again(comm):
    _, _, graph = random_graph(halo_format="bf16")
    x = sar.tensor(graph.local_rows(np.random.default_rng(0).normal(size=(60, 16))))
    y = graph.update_all(sar.fn.copy_u(x), "sum").numpy().copy()
    graph.set_options(pipeline_depth=3)
    np.testing.assert_array_equal(graph.update_all(sar.fn.copy_u(x), "sum"), y)
    graph.set_options(halo_format="exact", edge_chunk=np.int32(7))
    exact = graph.update_all(sar.fn.copy_u(x), "sum")
    assert comm.all_reduce(float(not np.array_equal(exact, y)), "max") == (comm.size > 1)


def test_fields_of_types_in_a_local_scope():
    graph = sar.Graph({("user", "rates", "item"): ([0, 1, 2], [1, 0, 1]), ("item", "rated", "user"): ([1, 0], [0, 2])},
                      num_nodes={"user": 3, "item": 2})
    users = graph.num_nodes("user")
    graph.nodes["user"].data["kept"] = sar.ones((users, 2))
    with graph.local_scope():
        graph.nodes["user"].data["h"] = sar.zeros((users, 2))
        graph["rates"].edata["w"] = sar.zeros((graph["rates"].num_edges(), 1))
        del graph.nodes["user"].data["kept"]
    assert "h" not in graph.nodes["user"].data and "kept" in graph.nodes["user"].data and "w" not in graph["rates"].edata

# SPDX-License-Identifier: MIT
import numpy as np
import pytest
from conftest import random_graph, whole

import sar
from sar import fn
from sar.nn import functional as F


class Net(sar.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = sar.nn.ModuleList([sar.nn.SAGEConv(4, 8), sar.nn.SAGEConv(8, 2)])

    def forward(self, graphs, x):
        for layer, graph in zip(self.layers, graphs):
            x = layer(graph, x)
        return x


def test_all_neighbors_give_the_whole_result(comm):
    _, _, graph = random_graph()
    sar.manual_seed(1)
    net = Net()
    x = sar.tensor(graph.local_rows(np.random.default_rng(0).normal(size=(60, 4))))
    y = np.asarray(net([graph, graph], x))
    loader = sar.DataLoader(graph, np.arange(graph.num_nodes()), sar.NeighborSampler([-1, -1]), batch_size=16)
    seen = []
    assert len(loader) == 4
    for inputs, outputs, blocks in loader:
        assert blocks[0].num_src_nodes() == len(inputs) and blocks[-1].num_dst_nodes() == len(outputs)
        np.testing.assert_allclose(np.asarray(net(blocks, x[inputs])), y[outputs], rtol=1e-4, atol=1e-5)
        seen.extend(outputs)
        assert type(inputs + 1) is np.ndarray and (len(inputs) == 0 or isinstance(inputs.max(), np.integer))
    assert sorted(seen) == list(range(graph.num_nodes()))
    assert loader.epoch == 1


def test_training_on_batches(comm):
    _, _, graph = random_graph()
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 60)
    x = sar.tensor(graph.local_rows(np.eye(4)[labels * 2] + 0.1 * draw.normal(size=(60, 4))))
    labels, mask = graph.local_rows(labels), graph.local_rows(np.arange(60) % 3 != 0)
    sar.manual_seed(2)
    net = Net()
    optimizer = sar.optim.Adam(net, lr=0.05)
    loader = sar.DataLoader(graph, mask, sar.NeighborSampler([3, 3], seed=1), batch_size=16, seed=2)
    losses = []
    for _ in range(6):
        for inputs, outputs, blocks in loader:
            loss = F.cross_entropy(net(blocks, x[inputs]), labels[outputs])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.mean(losses[-3:]) < 0.5 * np.mean(losses[:3])
    sar.compare_params(net)


@pytest.mark.parametrize("write", [lambda x, value: x.__setitem__(slice(None), value), lambda x, value: x.copy_(value)], ids=["assign", "copy_"])
def test_rows_of_a_batch_do_not_change_when_the_features_are_overwritten(write):
    """As in a training that keeps the rows of earlier batches."""
    _, _, graph = random_graph()
    values = graph.local_rows(np.random.default_rng(0).normal(size=(60, 4))).astype(np.float32)
    sar.manual_seed(1)
    net = Net()
    gradients = []
    for overwrite in (False, True):
        x = sar.tensor(values, copy=True)
        loader = sar.DataLoader(graph, None, sar.NeighborSampler([3, 3]), batch_size=32)
        inputs, _, blocks = next(iter(loader))
        rows, part = x[inputs], x[inputs][:2]
        y = net(blocks, rows)
        if overwrite:
            write(x, np.full(x.shape, 7))
        np.testing.assert_array_equal(part, values[inputs][:2])
        net.zero_grad()
        sar.sum(y * y).backward()
        np.testing.assert_array_equal(rows, values[inputs])
        gradients.append([parameter.grad.numpy().copy() for parameter in net.parameters()])
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("write", [lambda x: x.__setitem__(slice(0, 5), 0), lambda x: x.copy_(np.concatenate([np.zeros((5, 4)), x[5:]]))],
                         ids=["assign", "copy_"])
def test_rows_of_a_batch_may_be_overwritten(write):
    """As by a mask of features: layers read the new values."""
    _, _, graph = random_graph()
    x = sar.tensor(graph.local_rows(np.random.default_rng(0).normal(size=(60, 4))).astype(np.float32), copy=True)
    sar.manual_seed(1)
    net = Net()
    inputs, _, blocks = next(iter(sar.DataLoader(graph, None, sar.NeighborSampler([3, 3]), batch_size=32)))
    rows = x[inputs]
    with pytest.raises(ValueError, match="read-only"):
        rows.numpy()[0] = 0
    write(rows)
    np.testing.assert_array_equal(rows[:5], 0)
    np.testing.assert_allclose(net(blocks, rows), net(blocks, sar.tensor(np.asarray(rows), copy=True)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("negatives, k", [("per_source", 2), ("global", 1), (None, 1)])
def test_batches_of_edges_of_several_types(comm, negatives, k):
    draw = np.random.default_rng(0)
    ends = {"plays": (draw.integers(0, 20, 70), draw.integers(0, 9, 70)), "knows": (draw.integers(0, 20, 50), draw.integers(0, 20, 50)),
            "likes": (draw.integers(0, 9, 30), draw.integers(0, 20, 30))}
    types = {"plays": ("user", "plays", "game"), "knows": ("user", "knows", "user"), "likes": ("game", "likes", "user")}
    graph = sar.Graph({types[name]: pair for name, pair in ends.items()}, {"user": 20, "game": 9})
    ids = {ntype: sar.tensor(np.eye(20)[graph.node_ids(ntype)]) for ntype in graph.ntypes}  # a row says which node it is
    chosen = {"plays": graph["plays"].edge_ids % 3 > 0, "knows": None}
    loader = sar.EdgeDataLoader(graph, chosen, sar.NeighborSampler([4]), batch_size=16, negatives=negatives, k=k, exclude=None, seed=3)
    seen = {name: [] for name in chosen}
    known = {name: set(zip(*(each.tolist() for each in pair))) for name, pair in ends.items()}
    for input_nodes, rows, positive, negative, blocks in loader:
        h = {ntype: ids[ntype][np.asarray(blocks[-1].dst_rows[ntype])] for ntype in graph.ntypes}
        assert set(rows) == set(positive) == set(chosen) and (negative is None) == (negatives is None) and set(input_nodes) == set(graph.ntypes)
        for name, pairs in positive.items():
            source, _, destination = types[name]
            src, dst = (np.asarray(of(h[ntype])).argmax(1) for of, ntype in ((pairs.src, source), (pairs.dst, destination)))
            mine = graph[name].edge_ids[rows[name]]
            np.testing.assert_array_equal([src, dst], [each[mine] for each in ends[name]])
            seen[name].extend(mine.tolist())
            if negative is not None:
                drawn = negative[name]
                assert drawn.num_pairs == k * len(mine)
                u, v = (np.asarray(of(h[ntype])).argmax(1) for of, ntype in ((drawn.src, source), (drawn.dst, destination)))
                assert not set(zip(u.tolist(), v.tolist())) & known[name]
                assert negatives == "global" or np.array_equal(u, np.repeat(src, k))
    everywhere = {name: np.sort(comm.all_gather(mine)).tolist() for name, mine in seen.items()}
    assert everywhere == {"plays": [i for i in range(70) if i % 3], "knows": list(range(50))}


@pytest.mark.parametrize("exclude, left", [(None, {"plays": 1, "knows": 1, "likes": 1}), ("self", {"plays": 0, "knows": 1, "likes": 1}),
                                           ("reverse", {"plays": 0, "knows": 1, "likes": 0})])
def test_edges_of_a_batch_are_left_out_of_the_blocks_of_their_types(comm, exclude, left):
    graph = sar.Graph({("user", "plays", "game"): ([0], [0]), ("user", "knows", "user"): ([1], [0]), ("game", "likes", "user"): ([0], [0])},
                      {"user": 2, "game": 1})
    loader = sar.EdgeDataLoader(graph, {("user", "plays", "game"): None}, sar.NeighborSampler([-1]), negatives=None, exclude=exclude)
    ((_, _, _, _, (block,)),) = loader
    assert {name: int(comm.all_reduce(block[name].num_edges())) for name in left} == left


def test_training_on_batches_of_edges_of_several_types(comm):
    """The same losses on any number of ranks: these are of one rank."""
    draw = np.random.default_rng(1)
    graph = sar.Graph({("user", "plays", "game"): (draw.integers(0, 20, 60), draw.integers(0, 9, 60)),
                       ("game", "likes", "user"): (draw.integers(0, 9, 40), draw.integers(0, 20, 40))}, {"user": 20, "game": 9})
    x = {"user": sar.tensor(graph.local_rows(draw.normal(size=(20, 3)), "user")), "game": sar.tensor(graph.local_rows(draw.normal(size=(9, 3)), "game"))}
    sar.manual_seed(2)
    conv = sar.nn.HeteroGraphConv({"plays": sar.nn.SAGEConv((3, 3), 4), "likes": sar.nn.SAGEConv((3, 3), 4)})
    optimizer = sar.optim.SGD(conv, lr=0.1)
    losses = []
    for _, _, positive, negative, blocks in sar.EdgeDataLoader(graph, {"plays": None, "likes": None}, sar.NeighborSampler([3]), batch_size=25):
        rows = {ntype: x[ntype][chosen] for ntype, chosen in blocks[0].src_rows.items()}
        h = conv(blocks[0], rows)
        scores = [(pairs[name].src(h[source]) * pairs[name].dst(h[destination])).sum(-1) for pairs in (positive, negative)
                  for name, source, destination in (("plays", "user", "game"), ("likes", "game", "user"))]
        ones = np.concatenate([np.full(len(each), value) for each, value in zip(scores, (1.0, 1, 0, 0))])
        loss = F.binary_cross_entropy_with_logits(sar.cat(scores), ones)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, [3.182798, 2.723415, 2.188833, 1.739481], rtol=1e-4)


def test_iterators_of_one_loader():
    _, _, graph = random_graph()
    make = lambda: sar.DataLoader(graph, np.arange(graph.num_nodes()), sar.NeighborSampler([2, 2]), batch_size=16)  # noqa: E731
    loader, alone = make(), make()
    one = [batch[1] for batch in alone]
    two = [batch[1] for batch in alone]
    pairs = list(zip(loader, loader, strict=True))
    assert len(pairs) == len(loader) == 4
    for (a, b), x, y in zip(pairs, one, two, strict=True):
        np.testing.assert_array_equal(a[1], x)
        np.testing.assert_array_equal(b[1], y)


def test_wrong_batches(comm):
    _, _, graph = random_graph()
    n, last = graph.num_nodes(), comm.rank == comm.size - 1
    for rows, error, text in ((np.ones((n, 2), bool), sar.ShapeError, "a mask of shape"), (np.ones((n, 2), int), sar.ShapeError, "2 dimensions"),
                              ([-1], sar.InputError, "the row -1, expected 0 to"), ([n], sar.InputError, f"the row {n}")):
        with pytest.raises(error, match=text):  # on all ranks, if it is wrong on one
            sar.DataLoader(graph, rows if last else [0], sar.NeighborSampler([2]))
    with pytest.raises(sar.ShapeError, match="a mask of shape \\[3\\]"):
        sar.DataLoader(graph, np.ones(3, bool), sar.NeighborSampler([2]))
    with pytest.raises(sar.InputError, match="expected integers or bool"):
        sar.DataLoader(graph, np.ones(3), sar.NeighborSampler([2]))
    with pytest.raises(sar.InputError):
        sar.DataLoader(graph, np.arange(0), sar.NeighborSampler([-2]))
    with pytest.raises(sar.InputError):
        sar.DataLoader(graph, np.arange(0), sar.NeighborSampler([2]), batch_size=0)


def test_hetero_graph(comm):
    draw = np.random.default_rng(0)
    ends = {("user", "follows", "user"): (draw.integers(0, 20, 50), draw.integers(0, 20, 50)),
            ("user", "plays", "game"): (draw.integers(0, 20, 40), draw.integers(0, 10, 40))}
    graph = sar.Graph(ends, {"user": 20, "game": 10})
    assert graph.etypes == [relation for _, relation, _ in graph.canonical_etypes] and set(graph.etypes) == {each[1] for each in ends}
    assert all(graph.num_edges(etype) == graph[etype].num_edges() for etype in graph.etypes)
    assert graph.ntypes == ["user", "game"] and graph.canonical_etypes == list(ends)
    users, games = draw.normal(size=(20, 3)).astype(np.float32), draw.normal(size=(10, 2)).astype(np.float32)
    h = sar.tensor(graph.local_rows(users, "user"), requires_grad=True)
    plays = graph["plays"].update_all(fn.copy_u(h), fn.sum)
    expected = np.zeros((10, 3))
    np.add.at(expected, ends["user", "plays", "game"][1], users[ends["user", "plays", "game"][0]])
    np.testing.assert_allclose(np.asarray(plays), graph.local_rows(expected, "game"), rtol=1e-4, atol=1e-5)
    both = graph.multi_update_all({"plays": (fn.copy_u(h), "sum"), "follows": (fn.copy_u(h), "mean")}, "sum")
    np.testing.assert_allclose(np.asarray(both["game"]), np.asarray(plays), atol=1e-5)
    graph.nodes["user"].data["h"] = h
    graph.multi_update_all({"plays": (fn.copy_u("h", "m"), fn.sum("m", "y"))}, "sum")
    np.testing.assert_allclose(np.asarray(graph.nodes["game"].data["y"]), np.asarray(plays), atol=1e-5)
    conv = sar.nn.HeteroGraphConv({"plays": sar.nn.SAGEConv((3, 2), 4), "follows": sar.nn.GraphConv(3, 4)})
    out = conv(graph, {"user": h, "game": sar.tensor(graph.local_rows(games, "game"))})
    assert sorted(out) == ["game", "user"] and out["game"].shape[1] == 4
    sar.optim.SGD(conv).zero_grad()
    (sar.sum(out["game"]) + sar.sum(out["user"])).backward()
    assert h.grad is not None
    assert [name for name, _ in conv.named_parameters()][0].startswith("mods.plays.")
    with pytest.raises(sar.InputError, match="0 edge types 'likes'"):
        graph["likes"]
    for ends, error, text in ((([0], [3]), sar.InputError, "the game 3, expected nodes 0 to 1"), (([0], [-1]), sar.InputError, "the game -1"),
                              (([-1], [0]), sar.InputError, "the user -1"), (([0, 0], [1]), sar.ShapeError, "2 sources of edges and 1"),
                              (([0], [1, 0]), sar.ShapeError, "1 sources of edges and 2"), (([0], [0], [1, 2]), sar.ShapeError, "weights of plays"),
                              (([0], [0], [1], [1]), sar.InputError, "4 arrays")):
        for count in ({"user": 1, "game": 2}, None):
            if count or "3, expected" not in text:
                with pytest.raises(error, match=text):
                    sar.Graph({("user", "plays", "game"): ends}, count)


def test_typed_batches(comm):
    draw = np.random.default_rng(0)
    ends = {("user", "follows", "user"): (draw.integers(0, 30, 90), draw.integers(0, 30, 90)),
            ("user", "plays", "game"): (draw.integers(0, 30, 60), draw.integers(0, 12, 60)),
            ("game", "played_by", "user"): (draw.integers(0, 12, 60), draw.integers(0, 30, 60))}
    graph = sar.Graph(ends, {"user": 30, "game": 12})
    x = {"user": sar.tensor(graph.local_rows(draw.normal(size=(30, 3)).astype(np.float32), "user"), requires_grad=True),
         "game": sar.tensor(graph.local_rows(draw.normal(size=(12, 3)).astype(np.float32), "game"))}
    sar.manual_seed(1)
    first, second = (sar.nn.HeteroGraphConv({name: sar.nn.SAGEConv((3, 3), 3) for name in graph.etypes}) for _ in range(2))
    whole_result = {ntype: np.asarray(rows) for ntype, rows in second(graph, first(graph, x)).items()}
    users = np.arange(graph.num_nodes("user")) % 2 == 0
    games = np.arange(graph.num_nodes("game"))[::-1]
    seen = {"user": [], "game": []}
    loader = sar.DataLoader(graph, {"user": users, "game": games}, sar.NeighborSampler([-1, -1]), batch_size=8)
    for inputs, outputs, blocks in loader:
        assert set(inputs) == set(outputs) == {"user", "game"} and blocks[0].canonical_etypes == list(ends)
        h = {ntype: x[ntype][rows] for ntype, rows in inputs.items()}
        for layer, block in zip((first, second), blocks):
            h = layer(block, h)
        for ntype, rows in outputs.items():
            np.testing.assert_allclose(np.asarray(h[ntype]), whole_result[ntype][rows], rtol=1e-4, atol=1e-5)
            seen[ntype].extend(rows)
        relation = blocks[0]["plays"]
        np.testing.assert_array_equal(relation.edge_ids, graph["plays"].edge_ids[blocks[0].edge_rows["user", "plays", "game"]])
    assert sorted(seen["user"]) == list(np.flatnonzero(users)) and sorted(seen["game"]) == sorted(games)
    few = sar.NeighborSampler([{"follows": 2, "plays": 1, "played_by": 0}], seed=4).of(graph)
    (block,) = few.sample_blocks({"user": np.arange(graph.num_nodes("user")) + graph._first_id("user")})
    assert block["played_by"].num_edges() == block["plays"].num_edges() == 0 and block["follows"].in_degrees().max(initial=0) <= 2
    np.testing.assert_array_equal(block.dst_rows["user"], np.arange(graph.num_nodes("user")))
    with pytest.raises(sar.InputError, match="has no fan-out for the edge type 'game:played_by:user'"):
        sar.NeighborSampler([{"follows": 2, "plays": 1}]).of(graph)
    with pytest.raises(sar.InputError, match="no node type 'book'"):
        few.sample_blocks({"book": []})
    with pytest.raises(sar.InputError, match="there is no node 30 of the type 'user'"):
        few.sample_blocks({"user": [30]})
    with pytest.raises(sar.InputError, match="expected a dict by node type"):
        sar.DataLoader(graph, [0], sar.NeighborSampler([2]))
    with pytest.raises(sar.InputError, match="a node type is 1, expected one of"):
        sar.DataLoader(graph, {1: [0]}, sar.NeighborSampler([2]))
    with pytest.raises(sar.InputError, match="c is given as a int, expected"):
        sar.Graph({("a", "c", "b"): 3})
    with pytest.raises(sar.InputError, match="add_self_loops of a graph with types"):
        sar.Graph(ends, {"user": 30, "game": 12}, add_self_loops=True)
    with pytest.raises(sar.InputError, match="say of which"):
        graph.local_rows(np.zeros((30, 1)))
    weights = np.arange(60)  # edges have the same ids on any number of ranks
    np.testing.assert_array_equal(np.asarray(graph.edge_rows(weights, etype="plays")).reshape(-1), graph["plays"].edge_ids)
    with pytest.raises(sar.InputError, match="the row 1000"):
        sar.DataLoader(graph, {"user": [1000]}, sar.NeighborSampler([2]))


def test_names_of_relations_with_colons():
    graph = sar.Graph({("d", "rdf:type", "e"): ([0, 1], [1, 0])}, num_nodes={"d": 2, "e": 2})
    conv = sar.nn.HeteroGraphConv({("d", "rdf:type", "e"): sar.nn.SAGEConv((3, 3), 4)})
    feats = {"d": sar.ones((graph.num_nodes("d"), 3)), "e": sar.ones((graph.num_nodes("e"), 3))}
    assert conv(graph, feats)["e"].shape == (graph.num_nodes("e"), 4)
    assert sar.nn.HeteroGraphConv({"rdf:type": sar.nn.SAGEConv((3, 3), 4)})(graph, feats)["e"].shape == (graph.num_nodes("e"), 4)
    assert [name for name, _ in conv.named_parameters()][0].startswith("mods.('d', 'rdf:type', 'e').")
    conv.mods["('d', 'rdf:type', 'e')"] = sar.nn.SAGEConv((3, 3), 5)
    assert conv(graph, feats)["e"].shape == (graph.num_nodes("e"), 5)
    with pytest.raises(sar.InputError, match="'items' is the name of a method"):
        sar.nn.HeteroGraphConv({"items": sar.nn.SAGEConv((3, 3), 4)})


def test_negatives_of_a_source_that_most_nodes_have():
    graph = sar.Graph((np.zeros(95, int), np.arange(1, 96)), num_nodes=101)
    ids = sar.tensor(graph.local_rows(np.arange(101.0).reshape(-1, 1)))
    found = [np.asarray(sar.negative_pairs(graph, epoch=epoch).dst(ids)).reshape(-1) for epoch in range(20)]
    assert set(np.unique(np.concatenate(found))) <= {96, 97, 98, 99, 100}


def test_edges_and_clusters_that_do_not_fit():
    graph = sar.Graph({("user", "plays", "game"): ([0, 1, 2], [0, 0, 1])}, {"user": 3, "game": 2})
    with pytest.raises(sar.InputError, match="expected a dict: .*plays"):
        sar.EdgeDataLoader(graph, None, sar.NeighborSampler([2]), negatives=None)
    graph = sar.Graph(([0, 1], [1, 0]), 2)
    with pytest.raises(sar.InputError, match="a cluster is 4294967296"):
        sar.ClusterLoader(graph, clusters=graph.local_rows(np.array([0, 2**32])))


@pytest.mark.parametrize("method", ["ldg", "contiguous", "random"])
def test_clusters_of_nodes_with_any_ids(comm, method):
    ids = np.array([70, 10, 2**40, 30, 11, 45])[comm.rank::comm.size]
    src, dst = np.array([70, 10, 2**40, 30, 11]), np.array([10, 2**40, 30, 11, 45])
    mine = np.isin(dst, ids)
    graph = sar.Graph((src[mine], dst[mine]), nodes=ids)
    seen = []
    for batch in sar.ClusterLoader(graph, num_clusters=3, method=method):
        seen.extend(graph.dst_ids[batch.dst_rows].tolist())
    assert sorted(comm.all_gather(np.asarray(seen, np.int64)).tolist()) == sorted([70, 10, 2**40, 30, 11, 45])

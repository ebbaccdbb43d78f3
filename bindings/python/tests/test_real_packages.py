# SPDX-License-Identifier: MIT
"""Objects of torch, PyTorch Geometric and DGL themselves, where these are installed; the other tests have stand-ins for them."""
import numpy as np
import pytest
from conftest import whole

import sar
from sar.nn import functional as F

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def ends():
    draw = np.random.default_rng(0)
    ends = np.unique(draw.integers(0, 30, (2, 150)), axis=1)
    ends = ends[:, ends[0] != ends[1]]
    return np.concatenate([ends, np.arange(30)[None].repeat(2, 0)], 1)


def test_tensors_share_memory_both_ways():
    theirs = torch.arange(6.0).reshape(3, 2)
    ours = sar.tensor(theirs)
    theirs[0, 0] = 7
    assert ours[0, 0].item() == 7
    torch.from_dlpack(ours)[0, 1] = 8
    assert theirs[0, 1] == 8
    np.testing.assert_array_equal(sar.tensor(theirs.bfloat16()), theirs)
    with pytest.raises(sar.InputError, match="Can't call numpy"):
        ours + theirs.clone().requires_grad_()


def test_operands_indexes_and_masks():
    x, theirs = sar.tensor(np.arange(1.0, 7).reshape(3, 2), requires_grad=True), torch.rand(3, 2) + 1
    for f in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a @ b.T):
        for y, expected in ((f(x, theirs), f(x.numpy(), theirs.numpy())), (f(theirs, x), f(theirs.numpy(), x.numpy()))):
            assert isinstance(y, sar.Tensor) and y.requires_grad
            np.testing.assert_allclose(y, expected, rtol=1e-5)
    for key in (torch.tensor([True, False, True]), torch.tensor([2, 0]), torch.tensor(1), torch.rand(3, 2) > 0.5,
                (torch.tensor([0, 2]), torch.tensor([1, 0]))):
        arrays = tuple(map(np.asarray, key)) if isinstance(key, tuple) else key.numpy()
        np.testing.assert_array_equal(np.ravel(x[key]), np.ravel(x.numpy()[arrays]))
    labels, mask = torch.tensor([0, 1, 0]), torch.tensor([True, False, True])
    assert F.cross_entropy(x, labels, mask).item() == F.cross_entropy(x, labels.numpy(), mask.numpy()).item()


def compare(ends, ours, theirs, given, mean_heads=()):
    """Gives the weights of a layer of PyG to ours, compares the results, and gives the weights back."""
    graph = sar.Graph(ends, 30)
    x = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    tree, module = sar.nn.Module(), torch.nn.Module()
    tree.layer, module.layer = ours, theirs
    module.eval(), tree.eval()
    sar.load_pyg_state_dict(tree, module.state_dict())
    expected = given(theirs, x).detach().numpy()
    with sar.no_grad():
        y = whole(graph, tree.layer(graph, sar.tensor(graph.local_rows(x))))
    y = y.mean(1) if mean_heads else y.reshape(expected.shape)
    np.testing.assert_allclose(y, expected, atol=1e-5)
    module.load_state_dict({name: torch.as_tensor(value) for name, value in sar.pyg_state_dict(tree, mean_heads).items()})
    np.testing.assert_allclose(given(theirs, x).detach(), expected, atol=1e-5)


LAYERS = {
    "GCN": (lambda: sar.nn.GCNConv(5, 4), lambda pyg: pyg.GCNConv(5, 4)),
    "SAGE": (lambda: sar.nn.SAGEConv(5, 4), lambda pyg: pyg.SAGEConv(5, 4)),
    "SAGE pool": (lambda: sar.nn.SAGEConv(5, 4, "pool"), lambda pyg: pyg.SAGEConv(5, 4, aggr="max", project=True)),
    "GAT": (lambda: sar.nn.GATConv(5, 4, 2), lambda pyg: pyg.GATConv(5, 4, 2)),
    "GAT mean": (lambda: sar.nn.GATConv(5, 4, 2), lambda pyg: pyg.GATConv(5, 4, 2, concat=False)),
    "GATv2": (lambda: sar.nn.GATv2Conv(5, 4, 2), lambda pyg: pyg.GATv2Conv(5, 4, 2)),
    "GIN": (lambda: sar.nn.GINConv(sar.nn.Linear(5, 4), learn_eps=True), lambda pyg: pyg.GINConv(torch.nn.Linear(5, 4), train_eps=True)),
    "SG": (lambda: sar.nn.SGConv(5, 4, k=2), lambda pyg: pyg.SGConv(5, 4, K=2)),
    "TAG": (lambda: sar.nn.TAGConv(5, 4, k=2), lambda pyg: pyg.TAGConv(5, 4, K=2)),
    "Transformer": (lambda: sar.nn.TransformerConv(5, 4, 2), lambda pyg: pyg.TransformerConv(5, 4, 2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_weights_of_pyg_itself(name, comm, ends):
    pyg = pytest.importorskip("torch_geometric.nn")
    ours, theirs = LAYERS[name]
    torch.manual_seed(0)  # the same weights on all ranks
    edges = torch.from_numpy(ends)
    compare(ends, ours(), theirs(pyg), lambda layer, x: layer(x, edges), ["layer"] if name == "GAT mean" else ())


def test_data_of_pyg_itself(comm, ends):
    data = pytest.importorskip("torch_geometric.data")
    x = torch.arange(60.0).reshape(30, 2)
    one = data.Data(x=torch.nn.Parameter(x), edge_index=torch.from_numpy(ends), y=torch.arange(30), h=x.bfloat16())
    graph = sar.Graph(one)
    np.testing.assert_array_equal(graph.ndata["x"], x[graph.src_ids])
    np.testing.assert_array_equal(graph.ndata["h"], x[graph.src_ids])
    np.testing.assert_array_equal(graph.ndata["y"], graph.src_ids)
    adjacency = torch.sparse_coo_tensor(torch.from_numpy(ends), torch.ones(ends.shape[1]), (30, 30))
    assert sar.Graph(adjacency.to_sparse_csr()).num_global_edges() == graph.num_global_edges() == ends.shape[1]
    several = data.HeteroData()
    several["user"].x, several["item"].num_nodes = x, 30
    several["user", "rates", "item"].edge_index = torch.from_numpy(ends)
    assert sar.Graph(several)["rates"].num_global_edges() == ends.shape[1]
    assert len(sar.GraphSamples([one, one])) == 2


def test_graphs_of_dgl_itself(comm, ends):
    dgl = pytest.importorskip("dgl")
    theirs = dgl.graph((torch.from_numpy(ends[0]), torch.from_numpy(ends[1])), num_nodes=30)
    theirs.ndata["x"] = torch.arange(60.0).reshape(30, 2)
    graph = sar.Graph(theirs)
    np.testing.assert_array_equal(graph.ndata["x"], theirs.ndata["x"][graph.src_ids])
    conv, layer = sar.nn.GraphConv(2, 3), dgl.nn.GraphConv(2, 3)
    layer.load_state_dict({name: torch.as_tensor(np.asarray(value)) for name, value in conv.state_dict().items()})
    np.testing.assert_allclose(whole(graph, conv(graph, graph.ndata["x"])), layer(theirs, theirs.ndata["x"]).detach(), atol=1e-5)


def test_an_mlp_of_pyg_itself_with_norms(comm, ends):
    pyg = pytest.importorskip("torch_geometric.nn")
    theirs = pyg.GINConv(pyg.MLP([5, 8, 8, 4]), train_eps=True).eval()
    for value in theirs.state_dict().values():
        if value.is_floating_point():
            value.uniform_(0.5, 1.5)
    ours = sar.nn.GINConv(sar.nn.Sequential(sar.nn.Linear(5, 8), sar.nn.BatchNorm1d(8), sar.nn.ReLU(), sar.nn.Linear(8, 8),
                                            sar.nn.BatchNorm1d(8), sar.nn.ReLU(), sar.nn.Linear(8, 4)), learn_eps=True).eval()
    sar.load_pyg_state_dict(ours, theirs.state_dict())
    graph, x = sar.Graph(ends, 30), torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    with sar.no_grad():
        y = whole(graph, ours(graph, sar.tensor(graph.local_rows(x))))
    np.testing.assert_allclose(y, theirs(x, torch.as_tensor(ends)).detach().numpy(), rtol=1e-5, atol=1e-5)

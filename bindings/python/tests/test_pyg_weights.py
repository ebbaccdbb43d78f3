# SPDX-License-Identifier: MIT
"""Weights under the names of PyTorch Geometric: of its releases, in tests/data/peer, and by hand."""
import copy

import numpy as np
import pytest
from conftest import DATA, Golden, tensors_of_file, whole

import sar
from sar.nn import functional as F


class Two(sar.nn.Module):
    """The nets of tests/data/peer/make.py."""

    def __init__(self, first, second, act=F.relu, names=("conv1", "conv2"), extra=None):
        super().__init__()
        setattr(self, names[0], first)
        setattr(self, names[1], second)
        self._names, self._act, self._extra = names, act, extra

    def forward(self, graph, x, *more):
        h = self._act(getattr(self, self._names[0])(graph, x, *more).flatten(1))
        y = getattr(self, self._names[1])(graph, h, *more)
        return y.mean(1) if len(y.shape) == 3 else y


def mlp(a, b, c):
    return sar.nn.Sequential(sar.nn.Linear(a, b), sar.nn.BatchNorm1d(b), sar.nn.ReLU(), sar.nn.Linear(b, c))


NETS = {
    "gat_pyg": lambda: Two(sar.nn.GATConv(5, 3, 2), sar.nn.GATConv(6, 4, 3), F.elu),
    "gatv2_pyg": lambda: Two(sar.nn.GATv2Conv(5, 3, 2), sar.nn.GATv2Conv(6, 4, 3), F.elu),
    "gcn_pyg": lambda: Two(sar.nn.GraphConv(5, 6), sar.nn.GraphConv(6, 4)),
    "versions/pyg_2_8_sage": lambda: Two(sar.nn.SAGEConv(5, 6), sar.nn.SAGEConv(6, 4)),
    "rgcn_pyg": lambda: Two(sar.nn.RelGraphConv(5, 6, 3), sar.nn.RelGraphConv(6, 4, 3)),
    "rgcn_bases_pyg": lambda: Two(sar.nn.RelGraphConv(5, 6, 3, "basis", 2), sar.nn.RelGraphConv(6, 4, 3, "basis", 2)),
}


@pytest.mark.parametrize("name", NETS)
def test_weights_of_pyg_give_its_logits_and_come_back(comm, name, shared_dir):
    state = {key: np.array(value) for key, value in tensors_of_file(DATA / "peer" / f"{name}.safetensors").items()}
    case = name.rpartition("/")[2]
    golden = Golden("versions" if "/" in name else "peer")
    arrays = golden.arrays[case]
    net = NETS[name]().eval()
    sar.load_pyg_state_dict(net, state)
    graph = sar.Graph((arrays["src"], arrays["dst"]), 12)
    x = sar.tensor(graph.local_rows(arrays["in.feat"]))
    more = ()
    if "rgcn" in name:
        norm = sar.tensor(graph.edge_rows(arrays["norm"]))
        more = arrays["etype"][graph.edge_ids], norm
    with sar.no_grad():
        logits = whole(graph, net(graph, x, *more))
    np.testing.assert_allclose(logits, arrays["out"], rtol=2e-4, atol=2e-5)
    back = sar.pyg_state_dict(net, mean_heads=["conv2"] if "gat" in name else ())
    assert {key: value.shape for key, value in back.items()} == {key: value.shape for key, value in state.items()}
    for key in state:
        if "gatv2" not in name or "bias" not in key:  # its bias is in those of both ends
            np.testing.assert_allclose(back[key], state[key], rtol=1e-6, atol=1e-7, err_msg=key)
    path = shared_dir / "net.safetensors"
    sar.save_pyg_weights(net, path, mean_heads=["conv2"] if "gat" in name else ())
    assert set(tensors_of_file(path)) == set(state)
    other = NETS[name]().eval()
    sar.load_pyg_state_dict(other, tensors_of_file(path))
    with sar.no_grad():
        np.testing.assert_allclose(whole(graph, other(graph, x, *more)), logits, rtol=1e-5, atol=1e-6)
    with pytest.raises(sar.InputError, match="the state has no 'conv2"):
        sar.load_pyg_state_dict(net, {key: value for key, value in state.items() if "conv1" in key})
    with pytest.raises(sar.InputError, match="the state has 'conv3.bias', which"):
        sar.load_pyg_state_dict(net, {**state, "conv3.bias": np.zeros(6)})
    with pytest.raises(sar.ShapeError, match="has shape"):
        sar.load_pyg_state_dict(net, {**state, next(iter(state)): np.zeros(7)})


def test_gin_of_pyg(comm):
    state = tensors_of_file(DATA / "peer" / "gin_pyg.safetensors")
    arrays = Golden("peer").arrays["gin_pyg"]
    net = sar.nn.Module()
    net.convs = sar.nn.ModuleList([sar.nn.GINConv(mlp(5, 6, 6)), sar.nn.GINConv(mlp(6, 6, 4))])
    net.eval()
    sar.load_pyg_state_dict(net, state)
    graph = sar.Graph((arrays["src"], arrays["dst"]), 12)
    with sar.no_grad():
        logits = net.convs[1](graph, F.relu(net.convs[0](graph, sar.tensor(graph.local_rows(arrays["in.feat"])))))
    np.testing.assert_allclose(whole(graph, logits), arrays["out"], rtol=2e-4, atol=2e-5)
    back = sar.pyg_state_dict(net)
    assert set(back) == set(state)
    for key in state:
        np.testing.assert_allclose(back[key], state[key], rtol=1e-6, atol=1e-7, err_msg=key)


@pytest.mark.parametrize("make, shapes", [
    (lambda: sar.nn.SAGEConv(5, 4), {"lin_l.weight": (4, 5), "lin_l.bias": (4,), "lin_r.weight": (4, 5)}),
    (lambda: sar.nn.SAGEConv(5, 4, "pool"), {"lin.weight": (5, 5), "lin.bias": (5,), "lin_l.weight": (4, 5), "lin_l.bias": (4,),
                                             "lin_r.weight": (4, 5)}),
    (lambda: sar.nn.GCNConv(5, 4), {"lin.weight": (4, 5), "bias": (4,)}),
    (lambda: sar.nn.GATConv((5, 6), 4, 2), {"lin_src.weight": (8, 5), "lin_dst.weight": (8, 6), "att_src": (1, 2, 4),
                                            "att_dst": (1, 2, 4), "bias": (8,)}),
    (lambda: sar.nn.GATConv(5, 4, 2, residual=True), {"lin.weight": (8, 5), "att_src": (1, 2, 4), "att_dst": (1, 2, 4), "bias": (8,),
                                                      "res.weight": (8, 5)}),
    (lambda: sar.nn.GATv2Conv(5, 4, 2, share_weights=True), {"lin_l.weight": (8, 5), "lin_l.bias": (8,), "lin_r.weight": (8, 5),
                                                             "lin_r.bias": (8,), "att": (1, 2, 4), "bias": (8,)}),
    (lambda: sar.nn.SGConv(5, 4, k=2), {"lin.weight": (4, 5), "lin.bias": (4,)}),
    (lambda: sar.nn.TAGConv(5, 4, k=2), {"lins.0.weight": (4, 5), "lins.1.weight": (4, 5), "lins.2.weight": (4, 5), "bias": (4,)}),
    (lambda: sar.nn.GINEConv(sar.nn.Linear(5, 4)), {"nn.weight": (4, 5), "nn.bias": (4,), "eps": (1,)}),
    (lambda: sar.nn.GINEConv(sar.nn.Linear(5, 4), in_feats=5, edge_dim=3),
     {"nn.weight": (4, 5), "nn.bias": (4,), "eps": (1,), "lin.weight": (5, 3), "lin.bias": (5,)}),
    (lambda: sar.nn.TransformerConv(5, 4, 2), {f"lin_{part}.{name}": shape for part in ("key", "query", "value", "skip")
                                               for name, shape in (("weight", (8, 5)), ("bias", (8,)))}),
    (lambda: sar.nn.RelGraphConv(6, 4, 3, "bdd", 2), {"weight": (3, 2, 3, 2), "root": (6, 4), "bias": (4,)}),
    (lambda: sar.nn.HeteroGraphConv({("user", "rates", "item"): sar.nn.SAGEConv(5, 4)}),
     {f"convs.<user___rates___item>.{name}": shape for name, shape in (("lin_l.weight", (4, 5)), ("lin_l.bias", (4,)), ("lin_r.weight", (4, 5)))}),
])
def test_names_and_shapes_of_layers(make, shapes):
    layer = make()
    state = sar.pyg_state_dict(layer)
    assert {name: value.shape for name, value in state.items()} == shapes
    other = make()
    sar.load_pyg_state_dict(other, state)
    for (name, one), (_, two) in zip(layer.named_parameters(), other.named_parameters()):
        np.testing.assert_array_equal(one, two, err_msg=name)
    draw = np.random.default_rng(0)
    drawn = {name: draw.normal(size=value.shape).astype(np.float32) for name, value in state.items()}
    if "lin_r.bias" in shapes:  # share_weights
        drawn.update({"lin_r.weight": drawn["lin_l.weight"], "lin_r.bias": drawn["lin_l.bias"], "bias": drawn["bias"] * 0})
    sar.load_pyg_state_dict(other, drawn)
    for name, value in sar.pyg_state_dict(other).items():
        np.testing.assert_allclose(value, drawn[name], rtol=1e-6, err_msg=name)


def test_a_batch_norm_of_pyg_is_torchs_as_its_module():
    net = sar.nn.Module()
    net.norm, net.linear = sar.nn.BatchNorm1d(3), sar.nn.Linear(3, 2)
    state = {**sar.pyg_state_dict(net), "norm.weight": np.arange(3.0)}
    sar.load_pyg_state_dict(net, {name.replace("norm.", "norm.module."): value for name, value in state.items()})
    np.testing.assert_array_equal(net.state_dict()["norm.weight"], np.arange(3.0))


def test_an_mlp_of_pyg():
    conv = sar.nn.GINConv(sar.nn.MLP(3, 4, 2))
    state = sar.pyg_state_dict(conv)
    drawn = {name: np.random.default_rng(0).normal(size=value.shape).astype(np.float32) for name, value in state.items()}
    sar.load_pyg_state_dict(conv, {name.replace("nn.0", "nn.lins.0").replace("nn.2", "nn.lins.1"): value for name, value in drawn.items()})
    for name, value in sar.pyg_state_dict(conv).items():
        np.testing.assert_array_equal(value, drawn[name], err_msg=name)


@pytest.mark.parametrize("inside", ["", "conv.nn."])
def test_an_mlp_of_pyg_with_norms(inside):
    mlp = sar.nn.Sequential(sar.nn.Linear(3, 4), sar.nn.BatchNorm1d(4), sar.nn.ReLU(), sar.nn.Linear(4, 4), sar.nn.BatchNorm1d(4),
                            sar.nn.ReLU(), sar.nn.Linear(4, 2))
    net = mlp
    if inside:
        net = sar.nn.Module()
        net.conv = sar.nn.GINConv(mlp, learn_eps=True)
    drawn = {name: np.random.default_rng(len(name)).uniform(0.5, 1.5, np.shape(value)).astype(np.float32)
             for name, value in sar.pyg_state_dict(net).items() if not name.endswith("num_batches_tracked")}
    places = {f"{inside}0.": "lins.0.", f"{inside}1.": "norms.0.module.", f"{inside}3.": "lins.1.", f"{inside}4.": "norms.1.module.",
              f"{inside}6.": "lins.2."}
    of_pyg = dict(drawn)
    for own, other in places.items():
        of_pyg.update({name.replace(own, inside + other, 1): of_pyg.pop(name) for name in drawn if name.startswith(own)})
    assert inside + "norms.1.module.running_var" in of_pyg and inside + "lins.2.weight" in of_pyg
    sar.load_pyg_state_dict(net, of_pyg)
    for name, value in drawn.items():
        np.testing.assert_array_equal(sar.pyg_state_dict(net)[name], value, err_msg=name)
    with pytest.raises(sar.InputError, match="the state has '.*lins.3.weight', which the module has not"):
        sar.load_pyg_state_dict(net, {**of_pyg, inside + "lins.3.weight": drawn[inside + "6.weight"]})


def test_layers_without_a_name_in_pyg():
    with pytest.raises(sar.InputError, match="'theta.weight' of a EdgeConv has no name in PyTorch Geometric"):
        sar.pyg_state_dict(sar.nn.EdgeConv(5, 4))
    with pytest.raises(sar.InputError, match="the relation 'rates'"):
        sar.pyg_state_dict(sar.nn.HeteroGraphConv({"rates": sar.nn.SAGEConv(5, 4)}))
    shared = sar.nn.GATv2Conv(5, 4, 2, share_weights=True)
    state = sar.pyg_state_dict(shared)
    with pytest.raises(sar.InputError, match="differ, expected a layer without share_weights"):
        sar.load_pyg_state_dict(shared, {**state, "lin_r.weight": state["lin_r.weight"] + 1})
    with pytest.raises(sar.InputError, match="'bias' is not 0"):
        sar.load_pyg_state_dict(shared, {**state, "bias": state["bias"] + 1})
    assert copy.deepcopy(shared).state_dict().keys() == shared.state_dict().keys()

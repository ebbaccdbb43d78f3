# SPDX-License-Identifier: MIT

"""Layers give the values and gradients of DGL and PyG, on any number of ranks."""

import numpy as np
import pytest
from conftest import Golden, whole

import sar

CONV, PYG = Golden("conv"), Golden("pyg")
LAYERS = {
    "AGNNConv": ("init_beta", "learn_beta"),
    "APPNPConv": ("k", "alpha"),
    "CFConv": ("node_in_feats", "edge_in_feats", "hidden_feats", "out_feats"),
    "DotGatConv": ("in_feats", "out_feats", "num_heads"),
    "EdgeConv": ("in_feat", "out_feat"),
    "EdgeGATConv": ("in_feats", "edge_feats", "out_feats", "num_heads", "residual", "bias"),
    "GATConv": ("in_feats", "out_feats", "num_heads", "negative_slope", "residual", "bias"),
    "GATv2Conv": ("in_feats", "out_feats", "num_heads", "residual", "bias", "share_weights"),
    "GraphConv": ("in_feats", "out_feats", "norm", "weight", "bias"),
    "RelGraphConv": ("in_feat", "out_feat", "num_rels", "regularizer", "num_bases", "bias", "self_loop", "layer_norm"),
    "SAGEConv": ("in_feats", "out_feats", "aggregator_type", "bias"),
    "SGConv": ("in_feats", "out_feats", "k", "bias"),
    "TAGConv": ("in_feats", "out_feats", "k", "bias"),
    "TransformerConv": ("in_channels", "out_channels", "heads", "concat", "beta", "edge_dim", "bias", "root_weight"),
}
OTHER_NAMES = {"in_feat": "in_feats", "out_feat": "out_feats", "in_channels": "in_feats", "out_channels": "out_feats",
               "node_in_feats": "in_feats"}


def cases():
    for golden in (CONV, PYG):
        for case, args in golden.args.items():
            if args.get("graph") == "homogeneous" and case.split("__")[0] in LAYERS:
                yield pytest.param(golden, case, id=case)


def number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def make(case, args, arrays):
    name = case.split("__")[0]
    options = {}
    for option in LAYERS[name]:
        key = option if option in args else OTHER_NAMES.get(option, option)
        if key in args:
            options[option] = number(args[key])
        elif key == "in_feats":
            options[option] = arrays["in.feat"].shape[1]
    if name in ("SAGEConv", "GATConv", "GATv2Conv", "EdgeGATConv", "GraphConv", "RelGraphConv", "SGConv", "TAGConv", "TransformerConv"):
        for flag in {"bias", "residual", "share_weights", "self_loop", "layer_norm", "concat", "beta", "root_weight", "weight"} & options.keys():
            options[flag] = bool(options[flag])
    if name == "AGNNConv":
        options["learn_beta"] = bool(options["learn_beta"])
    return getattr(sar.nn, name)(**options)


@pytest.mark.parametrize("golden, case", list(cases()))
def test_layer(golden, case):
    args, arrays = golden.args[case], golden.arrays[case]
    nodes = int(args["num_src"])
    graph = sar.Graph((arrays["src"], arrays["dst"]), nodes)
    layer = make(case, args, arrays)
    parameters = {key.removeprefix("param."): value for key, value in arrays.items() if key.startswith("param.")}
    layer.load_state_dict(parameters, strict=False)
    x = sar.tensor(graph.local_rows(arrays["in.feat"]), requires_grad=True)
    more = []
    if "etype" in arrays:
        more.append(graph.edge_rows(arrays["etype"]).numpy().astype(int))
        if "in.norm" in arrays:
            more.append(graph.edge_rows(arrays["in.norm"]))
    for key in ("in.efeat", "in.edge_weight"):
        if key in arrays:
            more.append(graph.edge_rows(arrays[key]))
    y = layer(graph, x, *more)
    np.testing.assert_allclose(whole(graph, y), arrays["out"], rtol=2e-4, atol=2e-5)
    y.backward(graph.local_rows(arrays["grad_out"]))
    np.testing.assert_allclose(whole(graph, x.grad), arrays["grad_in.feat"], rtol=2e-3, atol=1e-4)
    optimizer = sar.optim.SGD(layer, comm=graph.comm) if layer.parameters() else None
    if optimizer:
        optimizer.gather_grads()
    for name, parameter in layer.named_parameters():
        if "grad_param." + name in arrays:
            wanted = arrays["grad_param." + name]
            found = np.zeros_like(wanted) if parameter.grad is None else parameter.grad.numpy()
            np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-4, err_msg=name)

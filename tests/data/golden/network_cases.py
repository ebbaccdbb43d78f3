# SPDX-License-Identifier: MIT

"""network_cases.py OUT

Writes OUT/network/<case>/*.npy and args.txt, for pack.py: node classifiers of PyTorch Geometric 2.8.1 with residual connections, norms, jumping
knowledge and linear layers before and after, in double precision: weights under their names, logits and gradients in training mode without dropout.

classic: the network of arXiv 2406.08993, with the names of its code, of which some tensors are not used. list: convs, lins, norms, head. basic:
torch_geometric.nn.models."""
import json
import sys

import torch
from cases import Group, values
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, SAGEConv
from torch_geometric.nn.models import GAT, GCN, GIN, GraphSAGE

save = Group(sys.argv[1], "network", seed=44).save
NODES, IN, HIDDEN, CLASSES = 12, 3, 4, 2
ENDS = [(v, (v + step) % NODES) for v in range(NODES) for step in (1, 5)]
EDGES = torch.tensor(ENDS + [(v, u) for u, v in ENDS] + [(v, v) for v in range(NODES)]).T.contiguous()


def conv(kind, width_in, width_out, heads=1, bias=True):
    if kind in ("gat", "gatv2"):
        layer = GATConv if kind == "gat" else GATv2Conv
        return layer(width_in, width_out // heads, heads=heads, add_self_loops=False, bias=bias)
    return SAGEConv(width_in, width_out) if kind == "sage" else GCNConv(width_in, width_out)


def modules(make, widths):
    return nn.ModuleList(make(a, b) for a, b in zip(widths, widths[1:]))


class Classic(nn.Module):
    def __init__(self, kind, layers, norm, jk=False, pre_linear=False):
        super().__init__()
        widths = [HIDDEN if pre_linear else IN] + layers * [HIDDEN]
        self.norm, self.jk, self.pre_linear = norm, jk, pre_linear
        self.local_convs = modules(lambda a, b: conv(kind, a, b, bias=kind != "gat"), widths)
        self.lins = modules(nn.Linear, widths)
        self.lns = modules(lambda a, b: nn.LayerNorm(b), widths)
        self.bns = modules(lambda a, b: nn.BatchNorm1d(b), widths)
        self.lin_in = nn.Linear(IN, HIDDEN)
        self.pred_local = nn.Linear(HIDDEN, CLASSES)

    def forward(self, x):
        h = self.lin_in(x) if self.pre_linear else x
        total = 0
        for local_conv, lin, ln, bn in zip(self.local_convs, self.lins, self.lns, self.bns):
            y = local_conv(h, EDGES) + lin(h)
            h = torch.relu({"layer": ln, "batch": bn, "none": nn.Identity()}[self.norm](y))
            total = total + h if self.jk else h
        return self.pred_local(total)


class Lists(nn.Module):
    def __init__(self, kind, norm, heads=(1, 1, 1), bias=True, linear_bias=True):
        super().__init__()
        widths = [IN, HIDDEN, HIDDEN, HIDDEN]
        self.convs = nn.ModuleList(conv(kind, a, b, n, bias) for a, b, n in zip(widths, widths[1:], heads))
        self.lins = modules(lambda a, b: nn.Linear(a, b, bias=linear_bias), widths)
        self.norms = modules(lambda a, b: norm(b), widths)
        self.head = nn.Linear(HIDDEN, CLASSES)

    def forward(self, h):
        for layer, lin, norm in zip(self.convs, self.lins, self.norms):
            h = torch.relu(norm(layer(h, EDGES) + lin(h)))
        return self.head(h)


class Basic(nn.Module):
    """A model of torch_geometric.nn.models."""

    def __init__(self, model, **options):
        super().__init__()
        self.model = model(IN, HIDDEN, num_layers=3, out_channels=CLASSES, **options)

    def forward(self, x):
        return self.model(x, EDGES)


def write(case, model, **keys):
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        tensor.copy_(values(*tensor.shape).abs() + 0.5 if name.endswith("running_var") else 0.6 * values(*tensor.shape) + (0.2 if tensor.dim() == 1 else 0))
    weights = {f"weights.{name}": value.clone() for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    x = values(NODES, IN).requires_grad_()
    out = model(x)
    grad_out = values(*out.shape)
    (out * grad_out).sum().backward()
    gradients = {f"grad.{name}": value.grad for name, value in model.named_parameters() if value.grad is not None}
    model.eval()
    description = {"sar_model": 1, "in_feats": IN, "hidden": HIDDEN, "out_feats": CLASSES, "layers": 3, "activation": "relu", **keys}
    if keys["type"] == "gcn":
        description["gcn_norm"] = "in_weights"
    arrays = {"src": EDGES[0], "dst": EDGES[1], "in.feat": x, "grad_in.feat": x.grad, "out": out, "grad_out": grad_out, "out_eval": model(x)}
    save(case, {"description": json.dumps(description), "graph": "homogeneous", "num_src": NODES, "num_dst": NODES}, **arrays, **weights, **gradients)


linear = dict(residual="linear", jk="last")
write("classic_gcn", Classic("gcn", 3, "batch", jk=True), type="gcn", norm="batch", residual="linear", jk="sum")
write("classic_gat", Classic("gat", 3, "layer", pre_linear=True), type="gat", heads=1, norm="layer", pre_linear=True, **linear)
write("classic_sage", Classic("sage", 3, "none", jk=True), type="sage", residual="linear", jk="sum")
write("list_gcn", Lists("gcn", nn.BatchNorm1d), type="gcn", norm="batch", **linear)
write("list_gcn_no_linear_bias", Lists("gcn", nn.LayerNorm, linear_bias=False), type="gcn", norm="layer", **linear)
write("list_sage", Lists("sage", nn.BatchNorm1d), type="sage", norm="batch", **linear)
write("list_gat", Lists("gat", nn.BatchNorm1d, heads=(2, 4, 1), bias=False), type="gat", heads=[2, 4, 1], norm="batch", **linear)
write("list_gatv2", Lists("gatv2", nn.LayerNorm, heads=(2, 2, 2)), type="gatv2", heads=2, norm="layer", **linear)
write("basic_gcn_cat", Basic(GCN, jk="cat", norm="layer_norm", norm_kwargs=dict(mode="node")), type="gcn", jk="cat", norm="layer")
write("basic_sage_max", Basic(GraphSAGE, jk="max", norm="batch_norm"), type="sage", jk="max", norm="batch")
write("basic_gat_last", Basic(GAT, jk="last", heads=2, add_self_loops=False), type="gat", jk="last", heads=2)
write("basic_gin_cat", Basic(GIN, jk="cat", norm="batch_norm", train_eps=True), type="gin", jk="cat", norm="batch")

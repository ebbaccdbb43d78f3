# SPDX-License-Identifier: MIT

"""sample_cases.py OUT

Writes OUT/samples/<case>/*.npy and args.txt, for pack.py: networks on a batch of small graphs, with GINConv, GINEConv and the pooling functions of PyTorch
Geometric 2.8.1, in double precision: weights under the names of this library, logits and gradients. The graphs have 5, 1, 4, 7 and 2 nodes; one
has no edges, others have loops, equal edges and isolated nodes."""
import json
import sys

import torch
from cases import Group, values
from torch import nn
from torch_geometric.nn import GINConv, GINEConv, global_add_pool, global_max_pool, global_mean_pool

save = Group(sys.argv[1], "samples", seed=45).save
IN, HIDDEN, OUT, LAYERS, EDGE = 3, 4, 2, 2, 2
SIZES = [5, 1, 4, 7, 2]
BEGIN = [sum(SIZES[:g]) for g in range(len(SIZES) + 1)]
ENDS = [[(0, 1), (1, 0), (1, 2), (2, 1), (3, 3)], [], [(0, 1), (0, 1), (2, 1), (1, 3)], [(v, (v + 2) % 7) for v in range(7)] + [(6, 0)], [(1, 0)]]
EDGES = torch.tensor([(BEGIN[g] + u, BEGIN[g] + v) for g, ends in enumerate(ENDS) for u, v in ends]).T.contiguous()
BATCH = torch.tensor([g for g, size in enumerate(SIZES) for _ in range(size)])
POOLS = {"sum": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}


class Network(nn.Module):
    """h_l = relu(GIN_l(h_{l-1})), a readout of each layer, a linear layer of them, and an MLP."""

    def __init__(self, readout, jk, head_layers, edge_feats):
        super().__init__()
        self.readout, self.jk = POOLS[readout], jk
        widths = [IN] + LAYERS * [HIDDEN]
        networks = [nn.Sequential(nn.Linear(a, HIDDEN), nn.BatchNorm1d(HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, b)) for a, b in zip(widths, widths[1:])]
        make = (lambda f: GINEConv(f, eps=0.1, train_eps=True, edge_dim=edge_feats)) if edge_feats else (lambda f: GINConv(f, eps=0.1, train_eps=True))
        self.convs = nn.ModuleList(make(network) for network in networks)
        self.lin = nn.Linear(LAYERS * HIDDEN if jk == "cat" else HIDDEN, HIDDEN if head_layers > 1 else OUT)
        self.mlp = nn.ModuleList(nn.Linear(HIDDEN, OUT if i == head_layers else HIDDEN) for i in range(2, head_layers + 1))

    def forward(self, x, *edge_attr):
        pooled = []
        for conv in self.convs:
            x = conv(x, EDGES, *edge_attr).relu()
            pooled.append(self.readout(x, BATCH, len(SIZES)))
        y = self.lin(torch.cat(pooled, dim=1) if self.jk == "cat" else pooled[-1] if self.jk == "last" else sum(pooled))
        for linear in self.mlp:
            y = linear(y.relu())
        return y


def renamed(name):
    name = name.replace("convs.", "layers.").replace(".nn.", ".apply_func.")
    return name.replace(".lin.", ".lin_edge.") if name.startswith("layers.") else name


for readout, jk, head_layers, edge_feats in (("sum", "last", 1, 0), ("mean", "last", 2, 0), ("max", "last", 1, 0), ("sum", "cat", 1, 0), ("max", "sum", 3, 0), ("mean", "cat", 2, EDGE)):
    model = Network(readout, jk, head_layers, edge_feats)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                tensor.copy_(values(*tensor.shape).abs() + 0.5 if name.endswith("running_var") else 0.6 * values(*tensor.shape) + (0.2 if tensor.dim() == 1 else 0))
    weights = {f"weights.{renamed(name)}": value.clone() for name, value in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    x = values(len(BATCH), IN).requires_grad_()
    edges = [values(EDGES.shape[1], EDGE).requires_grad_()] if edge_feats else []
    out = model(x, *edges)
    grad_out = values(*out.shape)
    (out * grad_out).sum().backward()
    # a bias in front of a batch norm is frozen
    gradients = {f"grad.{renamed(name)}": value.grad for name, value in model.named_parameters() if not name.endswith("nn.0.bias")}
    description = {"sar_model": 1, "type": "gin", "in_feats": IN, "hidden": HIDDEN, "out_feats": OUT, "layers": LAYERS, "activation": "relu", "jk": jk, "readout": readout, "head_layers": head_layers, "edge_feats": edge_feats}
    graph_of_edge = BATCH[EDGES[0]]
    of_edges = {"in.edge": edges[0], "grad_in.edge": edges[0].grad} if edge_feats else {}
    save(f"{readout}_{jk}_{head_layers}{'_edges' if edge_feats else ''}", {"description": json.dumps(description)}, node_begin=torch.tensor(BEGIN), src=EDGES[0], dst=EDGES[1], graph_of_edge=graph_of_edge,
         **{"in.feat": x, "grad_in.feat": x.grad, "out": out, "grad_out": grad_out}, **of_edges, **weights, **gradients)

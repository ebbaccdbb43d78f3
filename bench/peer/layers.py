# SPDX-License-Identifier: MIT

"""Epochs of networks of two layers in the Python package beside PyTorch Geometric, from the same weights and epoch by epoch in turns:

    layers.py [--kinds gcn,sage,gat,difference,mlp] [--nodes N] [--edges E] [options]

The graph is drawn at random, with self loops. PyG gets its edges as a tensor, and as a sparse adjacency: a SparseTensor where
torch_sparse is installed, otherwise a sparse tensor of torch. Its GCNConv caches the normalized edges. `difference` and `mlp` are messages that are written in Python: relu(x_j - x_i), and
tanh(W [x_i, x_j - x_i]), both with the mean. Each line is a JSON object: median seconds of an epoch, how many times as fast sar is, and the
largest relative difference of the losses. PYTHONPATH names the folder of the package.
"""

import argparse
import json
import statistics
import time

import numpy as np
import torch
import torch_geometric.nn as pyg

import sar
from sar.nn import functional as F


def parse():
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("--kinds", default="gcn,sage,gat,difference,mlp")
    p.add_argument("--nodes", type=int, default=50_000)
    p.add_argument("--edges", type=int, default=1_000_000)
    p.add_argument("--features", type=int, default=64)
    p.add_argument("--hidden", type=int, default=128)
    p.add_argument("--classes", type=int, default=16)
    p.add_argument("--epochs", type=int, default=6, help="of which the first is not counted")
    p.add_argument("--threads", type=int, default=2)
    return p.parse_args()


class OurMessages(sar.nn.Module):
    def __init__(self, width, out, with_edges):
        super().__init__()
        self.lin, self.with_edges = sar.nn.Linear(2 * width if with_edges else width, out), with_edges

    def forward(self, graph, x):
        if self.with_edges:
            return graph.update_all(
                lambda edges: F.tanh(self.lin(sar.cat([edges.dst(x), edges.src(x) - edges.dst(x)], 1))), sar.fn.mean)
        return self.lin(graph.update_all(lambda edges: F.relu(edges.src(x) - edges.dst(x)), sar.fn.mean))


class TheirMessages(pyg.MessagePassing):
    def __init__(self, width, out, with_edges):
        super().__init__(aggr="mean")
        self.lin, self.with_edges = torch.nn.Linear(2 * width if with_edges else width, out), with_edges

    def forward(self, x, edge_index):
        y = self.propagate(edge_index, x=x)
        return y if self.with_edges else self.lin(y)

    def message(self, x_i, x_j):
        return torch.tanh(self.lin(torch.cat([x_i, x_j - x_i], 1))) if self.with_edges else torch.relu(x_j - x_i)


LAYERS = {
    "gcn": (lambda i, o, last: sar.nn.GCNConv(i, o), lambda i, o, last: pyg.GCNConv(i, o, add_self_loops=False, cached=True)),
    "sage": (lambda i, o, last: sar.nn.SAGEConv(i, o), lambda i, o, last: pyg.SAGEConv(i, o)),
    "gat": (lambda i, o, last: sar.nn.GATConv(i, o, 1) if last else sar.nn.GATConv(i, o // 4, 4),
            lambda i, o, last: pyg.GATConv(i, o, 1, add_self_loops=False) if last else pyg.GATConv(i, o // 4, 4, add_self_loops=False)),
    "difference": (lambda i, o, last: OurMessages(i, o, False), lambda i, o, last: TheirMessages(i, o, False)),
    "mlp": (lambda i, o, last: OurMessages(i, o, True), lambda i, o, last: TheirMessages(i, o, True)),
}


class Ours(sar.nn.Module):
    def __init__(self, layer, widths):
        super().__init__()
        self.first, self.second = layer(widths[0], widths[1], False), layer(widths[1], widths[2], True)

    def forward(self, graph, x):
        return self.second(graph, F.relu(self.first(graph, x).flatten(1))).flatten(1)


class Theirs(torch.nn.Module):
    def __init__(self, layer, widths):
        super().__init__()
        self.first, self.second = layer(widths[0], widths[1], False), layer(widths[1], widths[2], True)

    def forward(self, edges, x):
        return self.second(torch.relu(self.first(x, edges)), edges)


def sparse_edges(edges, nodes):
    """The edges as a SparseTensor, or without torch_sparse as a sparse tensor of torch (CSR), as PyG's ToSparseTensor makes them."""
    try:
        from torch_sparse import SparseTensor
    except ImportError:
        return torch.sparse_coo_tensor(edges.flip(0), torch.ones(edges.shape[1]), (nodes, nodes)).to_sparse_csr()
    return SparseTensor(row=edges[1], col=edges[0], sparse_sizes=(nodes, nodes))


def main():
    o = parse()
    sar.set_num_threads(o.threads)
    torch.set_num_threads(o.threads)
    draw = np.random.default_rng(0)
    ends = draw.integers(0, o.nodes, (2, o.edges))
    ends = np.unique(ends[:, ends[0] != ends[1]], axis=1)  # a sparse tensor of torch adds edges between the same nodes
    ends = np.concatenate([ends, np.arange(o.nodes)[None].repeat(2, 0)], 1)
    x, labels = draw.normal(size=(o.nodes, o.features)).astype(np.float32), draw.integers(0, o.classes, o.nodes)
    graph, ours_x, widths = sar.Graph(ends, o.nodes), sar.tensor(x), (o.features, o.hidden, o.classes)
    graph.drop_edge_ids()
    edges, their_x, their_labels = torch.from_numpy(ends), torch.from_numpy(x.copy()), torch.from_numpy(labels)
    for kind in o.kinds.split(","):
        ours = Ours(LAYERS[kind][0], widths)
        state = {name: torch.from_numpy(value) for name, value in sar.pyg_state_dict(ours).items()}
        runs = {"sar": (lambda net=ours: F.cross_entropy(net(graph, ours_x), labels), sar.optim.Adam(ours, lr=0.01))}
        sparse = sparse_edges(edges, o.nodes) if kind in ("gcn", "sage", "gat") else None
        for name, given in (("pyg", edges), ("pyg_sparse", sparse)):
            if given is None:
                continue
            theirs = Theirs(LAYERS[kind][1], widths)
            theirs.load_state_dict(state)
            runs[name] = (lambda net=theirs, given=given: torch.nn.functional.cross_entropy(net(given, their_x), their_labels),
                          torch.optim.Adam(theirs.parameters(), lr=0.01))
        losses, seconds = {name: [] for name in runs}, {name: [] for name in runs}
        for _ in range(o.epochs):
            for name, (loss_of, optimizer) in runs.items():
                begin = time.perf_counter()
                loss = loss_of()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seconds[name].append(time.perf_counter() - begin)
                losses[name].append(loss.item())
        one = {name: statistics.median(each[1:]) for name, each in seconds.items()}
        line = {"kind": kind, "sar_seconds": one["sar"]}
        for name in list(runs)[1:]:
            line[f"{name}_seconds"], line[f"{name}_times"] = one[name], one[name] / one["sar"]
            line[f"{name}_loss_difference"] = max(abs(a - b) / abs(b) for a, b in zip(losses["sar"], losses[name]))
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

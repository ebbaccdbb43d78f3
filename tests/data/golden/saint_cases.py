# SPDX-License-Identifier: MIT

"""saint_cases.py OUT

Writes OUT/saint/<case>/*.npy and args.txt, for pack.py: the normalization coefficients of PyTorch Geometric's GraphSAINTSampler for given subgraphs of the
graph of tests/graph/sampling/saint_test.cpp: those that SaintLoader counts with the options of that test (the test prints them when they differ). PyG's
edge (row, col) is normalized by the count of row, which is the destination of the messages in the paper, hence edges are given from destination to
source. Coefficients of nodes and edges that no subgraph has are 0 here: PyG and this library replace them by different numbers."""
import sys
import types

import torch
from cases import Group
from torch_geometric.loader.graph_saint import GraphSAINTSampler

EDGES = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 0), (0, 3), (4, 0), (0, 4), (5, 0), (0, 5), (5, 6), (6, 7), (7, 8), (8, 6), (6, 6), (1, 4), (1, 4), (7, 0)]
SUBGRAPHS = {
    "edge": "0123 - 03 04 12 2367 - 0124568 012 67 03478 67 2367 - 23 01478 04 014578",
    "walk": "01235 678 01678 01234 01 12678 - 012456 013459 567 035678 67 1236789",
}


class Sampler(GraphSAINTSampler):
    """GraphSAINTSampler's own normalization, with the subgraphs of a list and without torch_sparse."""

    def __init__(self, sets):
        self.sets, self.N, self.num_workers, self.log = sets, 10, 0, False
        self.num_steps, self.sample_coverage = len(sets), 1e-9  # each subgraph once
        row, col = torch.tensor([v for _, v in EDGES]), torch.tensor([u for u, _ in EDGES])
        self.E = len(EDGES)
        self.adj = types.SimpleNamespace(coo=lambda: (row, col, torch.arange(self.E)))

    def __getitem__(self, i):
        edges = [e for e, (u, v) in enumerate(EDGES) if u in self.sets[i] and v in self.sets[i]]
        adj = types.SimpleNamespace(storage=types.SimpleNamespace(value=lambda: torch.tensor(edges, dtype=torch.long)))
        return torch.tensor(sorted(self.sets[i]), dtype=torch.long), adj


save = Group(sys.argv[1], "saint", seed=46).save
for case, text in SUBGRAPHS.items():
    sets = [{int(v) for v in word if v != "-"} for word in text.split()]
    torch.set_default_dtype(torch.float32)  # as PyG counts
    node_norm, edge_norm = Sampler(sets)._compute_norm()
    torch.set_default_dtype(torch.float64)
    for v in range(10):
        if not any(v in nodes for nodes in sets):
            node_norm[v] = 0
    for e, (u, v) in enumerate(EDGES):
        if not any(u in nodes and v in nodes for nodes in sets):
            edge_norm[e] = 0
    begin = [sum(len(nodes) for nodes in sets[:i]) for i in range(len(sets) + 1)]
    save(case, nodes=torch.tensor([v for nodes in sets for v in sorted(nodes)]), begin=torch.tensor(begin), node_norm=node_norm.double(), edge_norm=edge_norm.double())

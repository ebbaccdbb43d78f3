# SPDX-License-Identifier: MIT

"""rgcn_cases.py OUT

Writes OUT/rgcn/<case>/*.npy and args.txt, for pack.py: five steps of Adam on two layers of dgl.nn.RelGraphConv with norms of edges, in double
precision, one case for each regularizer, and one with more types of edges than bases and edges of a node."""
import sys

import dgl
import numpy as np
import torch
import torch.nn.functional as F
from cases import Group, values
from dgl.nn import RelGraphConv

save = Group(sys.argv[1], "rgcn", seed=41).save
nodes, width, hidden, classes = 41, 6, 8, 4


class Net(torch.nn.Module):
    def __init__(self, relations, regularizer, bases):
        super().__init__()
        kind = (relations, None if regularizer == "none" else regularizer, bases)
        self.convs = torch.nn.ModuleList([RelGraphConv(width, hidden, *kind, activation=F.relu),
                                          RelGraphConv(hidden, classes, *kind, layer_norm=regularizer == "none")])


def train(case, regularizer, bases, relations, edges):
    src, dst = torch.randint(nodes - 3, (edges,)), torch.randint(nodes - 3, (edges,))  # the last three nodes are isolated
    dst[:40] = 7  # a hub
    src[40:80] = 11  # a hub of sources
    dst[80:90] = src[80:90]  # self loops
    src[90:100], dst[90:100] = src[100:110].clone(), dst[100:110].clone()  # parallel edges
    graph = dgl.graph((src, dst), num_nodes=nodes)
    etype = torch.randint(relations - 1, (edges,))  # the last relation has no edges
    norm = 1 / torch.bincount(dst * relations + etype)[dst * relations + etype].double().reshape(-1, 1)
    net = Net(relations, regularizer, bases)
    for p in net.parameters():
        p.data = values(*p.shape) / 3

    def forward(x):
        return net.convs[1](graph, net.convs[0](graph, x, etype, norm), etype, norm)

    start = {f"param.{n}": p.detach().clone() for n, p in net.named_parameters()}
    x, labels = values(nodes, width), torch.randint(classes, (nodes,))
    mask = torch.arange(nodes) % 3 != 0
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=1e-3)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(x)[mask], labels[mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    save(case, {"graph": "homogeneous", "num_src": nodes, "num_dst": nodes, "lr": 0.01, "weight_decay": 1e-3, "num_rels": relations,
                "regularizer": regularizer, "num_bases": bases},
         **{"src": src, "dst": dst, "etype": etype, "norm": norm, "in.feat": x, "labels": labels, "mask": mask, "losses": np.array(losses),
            "out.logits": forward(x)}, **start, **{f"param_after.{n}": p for n, p in net.named_parameters()})


train("train_none", "none", 5, 5, 300)
train("train_basis", "basis", 2, 5, 300)
train("train_bdd", "bdd", 2, 5, 300)
train("train_many_types", "basis", 1, 40, 400)

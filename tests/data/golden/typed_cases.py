# SPDX-License-Identifier: MIT

"""typed_cases.py OUT

Writes OUT/typed/<case>/*.npy and args.txt, for pack.py: layers of typed nodes and edges (dgl.nn.TypedLinear, HGTConv, HeteroLinear, HeteroEmbedding, and
SimpleHGN's attention by its formula), and five steps of Adam on two layers of HGTConv, in double precision."""
import sys

import dgl
import numpy as np
import torch
import torch.nn.functional as F
from cases import Group, values
from dgl.nn import HeteroEmbedding, HeteroLinear, HGTConv, TypedLinear
from dgl.nn.functional import edge_softmax

save = Group(sys.argv[1], "typed", seed=23).save


def draw(module, scale=2):
    for p in module.parameters():
        p.data = values(*p.shape) / scale
    return module


def of_module(module):
    return {**{f"param.{n}": p for n, p in module.named_parameters()},
            **{f"grad_param.{n}": p.grad for n, p in module.named_parameters() if p.grad is not None}}


def typed_linear(case, types, **options):
    rows, n = 31, 4
    types = torch.sort(types)[0] if case.endswith("sorted") else types
    layer = draw(TypedLinear(6, 4, n, **options))
    x = values(rows, 6).requires_grad_()
    y = layer(x, types)
    seed = values(*y.shape)
    y.backward(seed)
    save(case, {"num_types": n, "regularizer": options.get("regularizer", "none"), "num_bases": options.get("num_bases", 0)},
         x=x, types=types, out=y, grad_out=seed, grad_x=x.grad, **of_module(layer))


types = torch.randint(4, (31,))
types[types == 2] = 1  # one type has no rows
typed_linear("TypedLinear__none", types)
typed_linear("TypedLinear__none_sorted", types)
typed_linear("TypedLinear__basis", types, regularizer="basis", num_bases=3)
typed_linear("TypedLinear__bdd", types, regularizer="bdd", num_bases=2)

nodes, edges, ntypes, etypes = 37, 300, 3, 5
src, dst = torch.randint(nodes - 3, (edges,)), torch.randint(nodes - 3, (edges,))  # the last three nodes are isolated
dst[:60] = 7  # a hub
src[60:110] = 11  # a hub of sources
dst[110:120] = src[110:120]  # self loops
src[120:130], dst[120:130] = src[130:140], dst[130:140]  # parallel edges
graph = dgl.graph((src, dst), num_nodes=nodes)
ntype, etype = torch.randint(ntypes, (nodes,)), torch.randint(etypes - 1, (edges,))  # the last relation has no edges


def conv(case, layer, width, args, forward):
    x = values(nodes, width).requires_grad_()
    y = forward(layer, x)
    seed = values(*y.shape)
    y.backward(seed)
    save(case, {"graph": "homogeneous", "num_src": nodes, "num_dst": nodes, **args},
         **{"src": src, "dst": dst, "ntype": ntype, "etype": etype, "in.feat": x, "out": y, "grad_out": seed, "grad_in.feat": x.grad}, **of_module(layer))


for case, width, head, heads, norm in (("HGTConv__same_width", 8, 4, 2, 0), ("HGTConv__residual", 5, 4, 3, 0), ("HGTConv__norm", 6, 3, 2, 1), ("HGTConv__wide", 7, 19, 2, 0)):
    layer = draw(HGTConv(width, head, heads, ntypes, etypes, dropout=0.0, use_norm=bool(norm)))
    conv(case, layer, width, {"head_size": head, "num_heads": heads, "num_ntypes": ntypes, "num_etypes": etypes, "use_norm": norm},
         lambda layer, x: layer(graph, x, ntype, etype))


class SimpleHGN(torch.nn.Module):
    """Lv et al., "Are we really making much progress?", KDD 2021, equations 4 and 5, without the mixture with the coefficients of the layer below."""

    def __init__(self, width, edge_width, head, heads, residual):
        super().__init__()
        self.edge_emb = torch.nn.Parameter(torch.empty(etypes, edge_width))
        self.W = torch.nn.Parameter(torch.empty(width, heads * head))
        self.W_e = torch.nn.Parameter(torch.empty(edge_width, heads * edge_width))
        self.a_l, self.a_r = (torch.nn.Parameter(torch.empty(1, heads, head)) for _ in range(2))
        self.a_e = torch.nn.Parameter(torch.empty(1, heads, edge_width))
        self.residual = torch.nn.Linear(width, heads * head) if residual else None

    def forward(self, x):
        heads = self.a_l.shape[1]
        h = (x @ self.W).view(nodes, heads, -1)
        r = (self.edge_emb @ self.W_e).view(etypes, heads, -1)
        e = (h * self.a_l).sum(-1)[src] + (h * self.a_r).sum(-1)[dst] + (r * self.a_e).sum(-1)[etype]
        alpha = edge_softmax(graph, F.leaky_relu(e, 0.2))
        y = torch.zeros(nodes, heads, h.shape[2]).index_add(0, dst, h[src] * alpha[:, :, None]).flatten(1)
        return y if self.residual is None else y + self.residual(x)


for case, residual in (("SimpleHGNConv__plain", 0), ("SimpleHGNConv__residual", 1)):
    layer = draw(SimpleHGN(6, 3, 4, 2, residual))
    conv(case, layer, 6, {"edge_size": 3, "head_size": 4, "num_heads": 2, "num_etypes": etypes, "residual": residual}, lambda layer, x: layer(x))

for bias in (True, False):
    layer = draw(HeteroLinear({"user": 3, "item": 5}, 4, bias=bias))
    x = {"user": values(7, 3).requires_grad_(), "item": values(2, 5).requires_grad_()}
    y = layer(x)
    seeds = {t: values(*y[t].shape) for t in y}
    sum((y[t] * seeds[t]).sum() for t in y).backward()
    save("HeteroLinear__bias" if bias else "HeteroLinear__no_bias", **{f"in.{t}": v for t, v in x.items()}, **{f"out.{t}": v for t, v in y.items()},
         **{f"grad_out.{t}": v for t, v in seeds.items()}, **{f"grad_in.{t}": v.grad for t, v in x.items()}, **of_module(layer))

layer = draw(HeteroEmbedding({"user": 9, "item": 4}, 3))
ids = {"user": torch.tensor([4, 0, 4, 8]), "item": torch.tensor([3, 1])}
y = layer(ids)
seeds = {t: values(*y[t].shape) for t in y}
sum((y[t] * seeds[t]).sum() for t in y).backward()
save("HeteroEmbedding__rows", **{f"ids.{t}": v for t, v in ids.items()}, **{f"out.{t}": v for t, v in y.items()}, **{f"grad_out.{t}": v for t, v in seeds.items()},
     **of_module(layer))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([HGTConv(6, 4, 2, ntypes, etypes, dropout=0.0), HGTConv(8, 3, 2, ntypes, etypes, dropout=0.0, use_norm=True)])

    def forward(self, x):
        return self.convs[1](graph, F.relu(self.convs[0](graph, x, ntype, etype)), ntype, etype)


net = draw(Net(), 3)
start = {f"param.{n}": p.detach().clone() for n, p in net.named_parameters()}
x, labels = values(nodes, 6), torch.randint(6, (nodes,))
mask = (torch.arange(nodes) % 3 != 0) & (ntype == ntype[7])
optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=1e-3)
losses = []
for _ in range(5):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x)[mask], labels[mask])
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
save("hgt_train", {"graph": "homogeneous", "num_src": nodes, "num_dst": nodes, "lr": 0.01, "weight_decay": 1e-3, "num_ntypes": ntypes, "num_etypes": etypes},
     **{"src": src, "dst": dst, "ntype": ntype, "etype": etype, "in.feat": x, "labels": labels, "mask": mask, "losses": np.array(losses), "out.logits": net(x)}, **start,
     **{f"param_after.{n}": p for n, p in net.named_parameters()})

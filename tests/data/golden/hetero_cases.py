# SPDX-License-Identifier: MIT

"""hetero_cases.py OUT

Writes OUT/hetero/<case>/*.npy and args.txt, for pack.py: DGL's multi_update_all with each cross-type reducer, and HeteroGraphConv with each aggregate
over layers of several kinds, on a graph of three node types and six edge types, in double precision."""
import sys

import dgl
import dgl.function as fn
import torch
from cases import Group, values
from dgl.nn import GATConv, GINConv, GraphConv, HeteroGraphConv, SAGEConv

save = Group(sys.argv[1], "hetero", seed=29).save

nodes = {"paper": 23, "author": 17, "field": 5}
widths = {"paper": 6, "author": 5, "field": 4}
relations = [("author", "knows", "author"), ("author", "writes", "paper"), ("field", "of", "paper"), ("paper", "about", "field"), ("paper", "cites", "paper"),
             ("paper", "written_by", "author")]


def edges(source, destination, number):
    src, dst = torch.randint(nodes[source] - 1, (number,)), torch.randint(nodes[destination] - 1, (number,))  # the last node is isolated
    if number > 20:
        dst[:8] = 2  # a hub
        src[8:10], dst[8:10] = src[10:12], dst[10:12]  # parallel edges
    if number > 20 and source == destination:
        dst[12:15] = src[12:15]  # self loops
    return src, dst


numbers = {"knows": 0, "writes": 60, "of": 25, "about": 30, "cites": 70, "written_by": 60}
ends = {r: edges(r[0], r[2], numbers[r[1]]) for r in relations}
graph = dgl.heterograph(ends, num_nodes_dict=nodes)
assert graph.canonical_etypes == relations  # the order of stack
described = {f"src.{r}": s for (_, r, _), (s, _) in ends.items()} | {f"dst.{r}": d for (_, r, _), (_, d) in ends.items()}
sizes = {f"num_nodes.{t}": n for t, n in nodes.items()}


def finish(case, args, inputs, outputs, module=None):
    seeds = {t: values(*y.shape) for t, y in outputs.items()}
    sum((y * seeds[t]).sum() for t, y in outputs.items()).backward()
    arrays = dict(described)
    for name, x in inputs.items():
        arrays[f"in.{name}"] = x
        if x.grad is not None:
            arrays[f"grad_in.{name}"] = x.grad
    for t, y in outputs.items():
        arrays[f"out.{t}"], arrays[f"grad_out.{t}"] = y, seeds[t]
    if module is not None:
        for name, p in module.named_parameters():
            arrays[f"param.{name}"] = p
            if p.grad is not None:
                arrays[f"grad_param.{name}"] = p.grad
    save(case, {**sizes, **args}, **arrays)


for reducer in ("sum", "mean", "min", "max", "stack"):
    x = {t: values(n, 4).requires_grad_() for t, n in nodes.items()}
    w = {r: values(numbers[r], 1).requires_grad_() for r in ("writes", "cites")}
    for t, rows in x.items():
        graph.nodes[t].data["h"] = rows
    for r, column in w.items():
        graph.edges[r].data["w"] = column
    graph.multi_update_all({
        "knows": (fn.copy_u("h", "m"), fn.sum("m", "y")),
        "writes": (fn.u_mul_e("h", "w", "m"), fn.sum("m", "y")),
        "of": (fn.copy_u("h", "m"), fn.mean("m", "y")),
        "about": (fn.u_add_v("h", "h", "m"), fn.sum("m", "y")),
        "cites": (fn.u_mul_e("h", "w", "m"), fn.mean("m", "y")),
        "written_by": (fn.copy_u("h", "m"), fn.max("m", "y")),
    }, reducer)
    finish(f"multi_update_all__{reducer}", {"reducer": reducer}, {**x, **w}, {t: graph.nodes[t].data["y"] for t in nodes})

for aggregate in ("sum", "mean", "min", "max", "stack"):
    out = 4
    pair = {r: (widths[s], widths[d]) for s, r, d in relations}
    conv = HeteroGraphConv({
        "knows": SAGEConv(pair["knows"], out, "mean"),
        "writes": SAGEConv(pair["writes"], out, "pool"),
        "of": GATConv(pair["of"], 2, 2, allow_zero_in_degree=True),
        "about": SAGEConv(pair["about"], out, "mean"),
        "cites": GINConv(torch.nn.Linear(widths["paper"], out), "sum", init_eps=0.25),
        "written_by": GraphConv(widths["paper"], out, norm="both", allow_zero_in_degree=True),
    }, aggregate)
    gat = conv.mods["of"]
    forward = gat.forward
    gat.forward = lambda *args, forward=forward: forward(*args).flatten(1)  # heads side by side, as the other layers' rows
    for p in conv.parameters():
        p.data = values(*p.shape) / 2
    x = {t: values(n, widths[t]).requires_grad_() for t, n in nodes.items()}
    finish(f"HeteroGraphConv__{aggregate}", {"aggregate": aggregate, "out_feats": out, **{f"in_feats.{t}": n for t, n in widths.items()}}, x, conv(graph, x), conv)

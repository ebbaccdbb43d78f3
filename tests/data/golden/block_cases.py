# SPDX-License-Identifier: MIT

"""block_cases.py OUT

Writes OUT/blocks/<case>/*.npy and args.txt, for pack.py: the blocks that DGL makes of its own draws, and networks of two layers on them with the
gradients of a weighted sum of the seeds' rows; and the blocks of DGL's edge samplers, from which edges are left out.

Array block<l>.src: the nodes that are sources of layer l, its destinations first; block<l>.eid: its edges, as numbers of the whole graph."""
import sys

import dgl
import dgl.function as fn
import torch
import torch.nn.functional as F
from cases import Group, values
from dgl.dataloading import MultiLayerFullNeighborSampler, NeighborSampler, as_edge_prediction_sampler
from dgl.nn import GATConv, GraphConv, SAGEConv

save = Group(sys.argv[1], "blocks", seed=17).save
dgl.seed(17)

nodes, edges, width, hidden, classes, heads = 43, 230, 5, 6, 3, 2
src, dst = torch.randint(nodes - 3, (edges,)), torch.randint(nodes - 3, (edges,))  # the last three nodes are isolated
dst[:40] = 7  # a hub
dst[40:50] = src[40:50]  # self loops
src[50:58], dst[50:58] = src[58:66], dst[58:66]  # parallel edges
graph = dgl.graph((src, dst), num_nodes=nodes)
seeds = torch.tensor([30, 7, 41, 0, 12, 29, 3, 18])  # the hub and an isolated node among them
out_degrees = graph.out_degrees().clamp(min=1).double()


class SAGE(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([SAGEConv(width, hidden, "mean"), SAGEConv(hidden, classes, "mean")])

    def forward(self, blocks, h, weight):
        h = F.relu(self.convs[0](blocks[0], h, weight[blocks[0].edata[dgl.EID]]))
        return self.convs[1](blocks[1], h, weight[blocks[1].edata[dgl.EID]])


class GCN(torch.nn.Module):
    """Out-degrees are those in the whole graph, which DGL's GraphConv does not see; in-degrees are those in the block."""

    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([GraphConv(width, hidden, norm="none"), GraphConv(hidden, classes, norm="none")])

    def forward(self, blocks, h, weight):
        for layer, (conv, block) in enumerate(zip(self.convs, blocks)):
            with block.local_scope():
                block.srcdata["h"] = h * out_degrees[block.srcdata[dgl.NID]][:, None] ** -0.5
                block.edata["w"] = weight[block.edata[dgl.EID]]
                block.update_all(fn.u_mul_e("h", "w", "m"), fn.sum("m", "h"))
                h = block.dstdata["h"] * block.in_degrees().clamp(min=1).double()[:, None] ** -0.5 @ conv.weight + conv.bias
            h = F.relu(h) if layer == 0 else h
        return h


class GAT(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = torch.nn.ModuleList([GATConv(width, hidden, heads, allow_zero_in_degree=True),
                                          GATConv(heads * hidden, classes, heads, allow_zero_in_degree=True)])

    def forward(self, blocks, h, weight):
        h = F.elu(self.convs[0](blocks[0], h).flatten(1))
        return self.convs[1](blocks[1], h).mean(1)


def of_blocks(blocks):
    arrays = {}
    for layer, block in enumerate(blocks):
        arrays[f"block{layer}.src"] = block.srcdata[dgl.NID]
        arrays[f"block{layer}.eid"] = block.edata[dgl.EID]
    return arrays


for draws, sampler in {
    "full": MultiLayerFullNeighborSampler(2),
    "uniform": NeighborSampler([4, 3]),
    "replace": NeighborSampler([4, 3], replace=True),
}.items():
    for name, make in {"sage": SAGE, "gcn": GCN, "gat": GAT}.items():
        _, _, blocks = sampler.sample_blocks(graph, seeds)
        model = make()
        for p in model.parameters():
            p.data = values(*p.shape) / 2
        x, weight = values(nodes, width).requires_grad_(), (values(edges).abs() + 0.5).requires_grad_()
        out = model(blocks, x[blocks[0].srcdata[dgl.NID]], weight)
        seed = values(*out.shape)
        out.backward(seed)
        save(f"{draws}_{name}", {"draws": draws, "model": name}, src=src, dst=dst, seeds=seeds, x=x, out=out, seed=seed, grad_x=x.grad,
             **({} if name == "gat" else {"weight": weight, "grad_weight": weight.grad}), **of_blocks(blocks),
             **{f"param.{n}": p for n, p in model.named_parameters()}, **{f"grad_param.{n}": p.grad for n, p in model.named_parameters()})

pairs = torch.combinations(torch.arange(25))
pairs = pairs[torch.randperm(len(pairs))[:70]]
both = dgl.graph((torch.cat([pairs[:, 0], pairs[:, 1]]), torch.cat([pairs[:, 1], pairs[:, 0]])), num_nodes=nodes)
reverse = torch.cat([torch.arange(70, 140), torch.arange(70)])
batch = torch.tensor([5, 90, 33, 2, 139, 61, 20])
for exclude, options in {"none": {}, "self": {}, "reverse": {"reverse_eids": reverse}}.items():
    kind = {"none": None, "self": "self", "reverse": "reverse_id"}[exclude]
    sampler = as_edge_prediction_sampler(MultiLayerFullNeighborSampler(2), exclude=kind, **options)
    _, _, blocks = sampler.sample(both, batch)
    save(f"edges_{exclude}", src=both.edges()[0], dst=both.edges()[1], batch=batch, **of_blocks(blocks))

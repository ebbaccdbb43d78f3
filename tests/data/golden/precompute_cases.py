# SPDX-License-Identifier: MIT

"""precompute_cases.py OUT

Writes OUT/precompute/<case>/*.npy and args.txt, for pack.py: hops of features and the network of SIGN, label propagation (DGL's), and
correct-and-smooth (the formulas of PyTorch Geometric's CorrectAndSmooth on dense matrices), in double precision."""
import sys

import dgl
import numpy as np
import torch
from dgl.nn import LabelPropagation
from cases import Group, values

save = Group(sys.argv[1], "precompute", seed=13).save
nodes, classes, width = 29, 4, 5
half = torch.randint(nodes - 2, (2, 50))  # the last two nodes are isolated
half[0, :12] = 3  # a hub
src = torch.cat([half[0], half[1], torch.tensor([5, 6])])  # both directions, and two self loops
dst = torch.cat([half[1], half[0], torch.tensor([5, 6])])
src, dst = torch.cat([src, src[:2]]), torch.cat([dst, dst[:2]])  # parallel edges, in one direction only
A = torch.zeros(nodes, nodes)
A.index_put_((dst, src), torch.ones(len(src)), accumulate=True)
inverse = lambda degrees, power: degrees.clamp(min=1) ** power
S = inverse(A.sum(1), -0.5)[:, None] * A * inverse(A.sum(0), -0.5)
M = inverse(A.sum(1), -1.0)[:, None] * A

x = values(nodes, width)
for case, operator in (("hops_symmetric", S), ("hops_mean", M)):
    save(case, src=src, dst=dst, x=x, out=torch.cat([x, operator @ x, operator @ operator @ x, operator @ operator @ operator @ x], 1))


class FeedForwardNet(torch.nn.Module):  # of DGL's example
    def __init__(self, in_feats, hidden, out_feats, n_layers):
        super().__init__()
        widths = [in_feats] + [hidden] * (n_layers - 1) + [out_feats]
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        if n_layers > 1:
            self.prelu = torch.nn.PReLU()

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i + 1 < len(self.layers):
                x = self.prelu(x)
        return x


class Model(torch.nn.Module):
    def __init__(self, in_feats, hidden, out_feats, R, n_layers):
        super().__init__()
        self.prelu = torch.nn.PReLU()
        self.inception_ffs = torch.nn.ModuleList(FeedForwardNet(in_feats, hidden, hidden, n_layers) for _ in range(R + 1))
        self.project = FeedForwardNet((R + 1) * hidden, hidden, out_feats, n_layers)

    def forward(self, feats):
        return self.project(self.prelu(torch.cat([ff(feat) for feat, ff in zip(feats, self.inception_ffs)], -1)))


for case, layers in (("sign", 2), ("sign_one_layer", 1)):
    model = Model(width, 6, classes, 2, layers)
    for p in model.parameters():
        p.data = values(*p.shape) / 2
    rows = values(nodes, 3 * width).requires_grad_()
    out = model(rows.split(width, 1))
    seed = values(*out.shape)
    out.backward(seed)
    save(case, x=rows, out=out, seed=seed, grad_x=rows.grad, **{f"param.{n}": p for n, p in model.named_parameters()},
         **{f"grad_param.{n}": p.grad for n, p in model.named_parameters()})

labels = torch.randint(classes, (nodes,))
labels[:classes] = torch.arange(classes)
mask = torch.rand(nodes) < 0.5
graph = dgl.graph((src, dst), num_nodes=nodes)
for case, options in {
    "labels": dict(k=10, alpha=0.9),
    "labels_row": dict(k=5, alpha=0.5, norm_type="row"),
    "labels_normalize": dict(k=7, alpha=0.8, clamp=False, normalize=True),
    "labels_reset": dict(k=7, alpha=0.8, reset=True),
}.items():
    # DGL computes in single precision: its formulas once more in double precision, compared with its result
    one_hot = torch.eye(classes)[labels]
    start = torch.where(mask[:, None], one_hot, 0.0)
    y = start
    operator = M if options.get("norm_type") == "row" else S
    for _ in range(options["k"]):
        y = options["alpha"] * operator @ y + (1 - options["alpha"]) * start
        if options.get("clamp", True):
            y = y.clamp(0, 1)
        if options.get("normalize"):
            y = torch.nn.functional.normalize(y, p=1)
        if options.get("reset"):
            y = torch.where(mask[:, None], one_hot, y)
    assert torch.allclose(y.float(), LabelPropagation(**options)(graph, labels, mask).float(), atol=1e-5)
    save(case, src=src, dst=dst, labels=labels, mask=mask, out=y)

y = torch.softmax(values(nodes, classes), 1).float().double()
truth = torch.eye(classes)[labels]


def correct(operator, autoscale, layers=6, alpha=0.9, scale=0.7):
    error = torch.where(mask[:, None], truth - y, 0.0)
    e = error
    for _ in range(layers):
        e = alpha * operator @ e + (1 - alpha) * error
        e = e.clamp(-1, 1) if autoscale else torch.where(mask[:, None], error, e)
    if not autoscale:
        return y + scale * e
    sigma = error[mask].abs().sum() / mask.sum()
    factor = sigma / e.abs().sum(1, keepdim=True)
    factor[factor.isinf() | (factor > 1000)] = 1.0
    return y + factor * e


def smooth(operator, y, layers=4, alpha=0.8):
    start = torch.where(mask[:, None], truth, y)
    out = start
    for _ in range(layers):
        out = (alpha * operator @ out + (1 - alpha) * start).clamp(0, 1)
    return out


for case, operator, autoscale in (("correct_autoscale", S, True), ("correct_fixed", S, False), ("correct_mean", M, True)):
    corrected = correct(operator, autoscale)
    save(case, src=src, dst=dst, y=y, labels=labels, mask=mask, corrected=corrected, smoothed=smooth(operator, y), out=smooth(operator, corrected))

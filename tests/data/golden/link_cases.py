# SPDX-License-Identifier: MIT

"""link_cases.py OUT

Writes OUT/link/<case>/*.npy and args.txt, for pack.py: predictors of links (DGL's EdgePredictor and the models of its guide), their losses, and
metrics by their definitions (all pairs; SciPy's Mann-Whitney statistic; OGB's formulas), in double precision."""
import sys

import dgl
import dgl.function as fn
import numpy as np
import torch
import torch.nn.functional as F
from dgl.nn import EdgePredictor
from scipy.stats import mannwhitneyu
from cases import Group, values

save = Group(sys.argv[1], "link", seed=11).save
nodes, pairs, width, rels = 17, 40, 6, 3
h = values(nodes, width).requires_grad_()
src, dst = torch.randint(nodes, (pairs,)), torch.randint(nodes, (pairs,))
dst[:3] = src[:3]  # loops
src[3:6], dst[3:6] = 1, 2  # parallel edges
src[6:20] = 4  # a hub
etype = torch.randint(rels, (pairs,))
graph = dgl.graph((src, dst), num_nodes=nodes)
seed = values(pairs, 1)


class MLPPredictor(torch.nn.Module):
    def __init__(self, feats, hidden, out):
        super().__init__()
        self.W1 = torch.nn.Linear(2 * feats, hidden)
        self.W2 = torch.nn.Linear(hidden, out)
        for p in self.parameters():
            p.data = values(*p.shape) / 2

    def forward(self, edges):
        return {"score": self.W2(F.relu(self.W1(torch.cat([edges.src["h"], edges.dst["h"]], 1))))}


def predictor(case, score, seed, parameters):
    h.grad = None
    out = score()
    out.backward(seed)
    save(case, h=h, src=src, dst=dst, etype=etype, seed=seed, out=out, grad_h=h.grad, **{f"param.{n}": p for n, p in parameters},
         **{f"grad_param.{n}": p.grad for n, p in parameters})


predictor("dot", lambda: EdgePredictor("dot")(h[src], h[dst]), seed, [])
for case, hidden, out in (("mlp", width, 1), ("mlp_wide", 9, 4)):
    mlp = MLPPredictor(width, hidden, out)

    def on_graph():
        with graph.local_scope():
            graph.ndata["h"] = h
            graph.apply_edges(mlp)
            return graph.edata["score"]

    predictor(case, on_graph, values(pairs, out), list(mlp.named_parameters()))
w = values(rels, width).requires_grad_()


def dist_mult():
    with graph.local_scope():
        graph.ndata["h"] = h
        graph.edata["w"] = w[etype]
        graph.apply_edges(fn.u_mul_e("h", "w", "m"))
        graph.apply_edges(fn.e_dot_v("m", "h", "score"))
        return graph.edata["score"]


predictor("dist_mult", dist_mult, seed, [("w_relation", w)])

n, k = 13, 4


def loss(case, f):
    pos, neg = (2 * values(n, 1)).requires_grad_(), (2 * values(n, k)).requires_grad_()
    out = f(pos, neg)
    out.backward()
    save(case, pos=pos, neg=neg, out=out.reshape(1), grad_pos=pos.grad, grad_neg=neg.grad)


loss("bce", lambda p, q: F.binary_cross_entropy_with_logits(torch.cat([p.flatten(), q.flatten()]), torch.cat([torch.ones(n), torch.zeros(n * k)])))
loss("margin", lambda p, q: (1 - p + q).clamp(min=0).mean())
loss("margin_half", lambda p, q: (0.5 - p + q).clamp(min=0).mean())
for case, t in (("info_nce", 1.0), ("info_nce_cold", 0.2)):
    loss(case, lambda p, q: (-torch.log(torch.exp(p / t) / (torch.exp(p / t) + torch.exp(q / t).sum(1, keepdim=True)))).mean())


def metrics(case, pos, neg, hits):
    all_pairs = ((pos[:, None] > neg.flatten()) + 0.5 * (pos[:, None] == neg.flatten())).mean()
    statistic = mannwhitneyu(pos, neg.flatten()).statistic / (pos.size * neg.size)
    assert abs(all_pairs - statistic) < 1e-12
    kth = [np.sort(neg.flatten())[-k] for k in hits]
    rank = 1 + 0.5 * ((neg > pos[:, None]).sum(1) + (neg >= pos[:, None]).sum(1))  # OGB: the mean of the optimistic and the pessimistic rank
    save(case, pos=pos.reshape(-1, 1), neg=neg, auc=[all_pairs], hits_k=np.array(hits), hits=[(pos > x).mean() for x in kth], mrr=[(1 / rank).mean()])


draws = np.random.default_rng(5)
metrics("metrics", draws.normal(0.5, 1, 211).astype(np.float32).astype(float), draws.normal(0, 1, (211, 7)).astype(np.float32).astype(float), [1, 3, 10, 100, 1477])
metrics("metrics_ties", draws.integers(-3, 4, 97) / 4, draws.integers(-4, 3, (97, 5)) / 4, [1, 20, 50, 485])
metrics("metrics_all_ties", np.full(12, 0.25), np.full((12, 3), 0.25), [1, 36])

# SPDX-License-Identifier: MIT

"""relation_cases.py OUT

Writes OUT/relation/<case>/*.npy and args.txt, for pack.py: scores of edges with a relation, in double precision. TransE and RotatE as DGL-KE
defines them (gamma minus a distance; the moduli of complex numbers are added), ComplEx as PyTorch Geometric does, by PyTorch's own norms and
complex numbers."""
import sys

import torch
from cases import Group, values

save = Group(sys.argv[1], "relation", seed=29).save
nodes, pairs, width, rels = 17, 40, 6, 3
h = values(nodes, width).requires_grad_()
src, dst = torch.randint(nodes, (pairs,)), torch.randint(nodes, (pairs,))
dst[:3] = src[:3]  # loops
src[3:6], dst[3:6] = 1, 2  # parallel edges
src[6:20] = 4  # a hub
etype = torch.randint(rels, (pairs,))
seed = values(pairs, 1)


def complex_of(rows):
    return torch.complex(*rows.chunk(2, -1))


def case(name, parameter, shape, score):
    h.grad = None
    w = values(*shape).requires_grad_()
    out = score(h[src], w[etype], h[dst]).reshape(pairs, 1)
    out.backward(seed)
    save(name, h=h, src=src, dst=dst, etype=etype, seed=seed, out=out, grad_h=h.grad, **{f"param.{parameter}": w, f"grad_param.{parameter}": w.grad})


gamma = 5.0
case("transe_l1", "w_relation", (rels, width), lambda u, w, v: gamma - torch.norm(u + w - v, p=1, dim=-1))
case("transe_l2", "w_relation", (rels, width), lambda u, w, v: gamma - torch.norm(u + w - v, p=2, dim=-1))
case("complex", "w_relation", (rels, width), lambda u, w, v: (complex_of(u) * complex_of(w) * complex_of(v).conj()).sum(-1).real)
case("rotate", "phase", (rels, width // 2),
     lambda u, w, v: gamma - (complex_of(u) * torch.polar(torch.ones_like(w), w) - complex_of(v)).abs().sum(-1))

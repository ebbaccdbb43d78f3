# SPDX-License-Identifier: MIT

"""sparse_cases.py OUT

Writes OUT/sparse/<case>/*.npy and args.txt, for pack.py: five steps of PyTorch's optimizers for sparse gradients on an embedding, in double
precision. Step t looks ids.step_t up (with repetitions; none in one step), and its loss is the sum of the rows times weight.step_t."""
import sys

import torch
from cases import Group, values

NODES, WIDTH = 11, 3
IDS = [[0, 4, 4, 10, 7], [4, 3, 0, 0, 9, 2, 4], [], [10, 10, 10, 1], [5, 6, 0, 8, 3, 7, 4, 10]]

OPTIMIZERS = {
    "SparseSGD": (torch.optim.SGD, {"lr": 0.05}),
    "SparseAdagrad": (torch.optim.Adagrad, {"lr": 0.05, "lr_decay": 0.02, "initial_accumulator_value": 0.1, "eps": 1e-6}),
    "SparseAdam": (torch.optim.SparseAdam, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-4}),
}

for kind, (make, options) in OPTIMIZERS.items():
    group = Group(sys.argv[1], "sparse", seed=11)
    embedding = torch.nn.Embedding(NODES, WIDTH, sparse=True)
    with torch.no_grad():
        embedding.weight.copy_(values(NODES, WIDTH))
    optimizer = make(embedding.parameters(), **options)
    arrays = {"init": embedding.weight.detach().clone()}
    for step, ids in enumerate(IDS):
        ids, weight = torch.tensor(ids, dtype=torch.int64), values(len(ids), WIDTH)
        optimizer.zero_grad()
        (embedding(ids) * weight).sum().backward()
        optimizer.step()
        arrays.update({f"ids.step_{step}": ids, f"weight.step_{step}": weight, f"rows.step_{step}": embedding.weight.detach().clone()})
    args = {"optimizer": kind, "steps": len(IDS)}
    for key, value in options.items():
        args.update({"beta1": value[0], "beta2": value[1]} if key == "betas" else {key: value})
    group.save(kind, args, **arrays)

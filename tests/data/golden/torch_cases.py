# SPDX-License-Identifier: MIT

"""torch_cases.py OUT

Writes OUT/torch/<case>/*.npy and args.txt, for pack.py: what PyTorch computes in double precision for activations, losses, clipped gradients and
learning rates."""
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F
from cases import Group, values

save = Group(sys.argv[1], "torch", seed=7).save


def function(case, f, x):
    x.requires_grad_()
    seed = values(*x.shape)
    y = f(x)
    y.backward(seed)
    save(case, x=x, seed=seed, out=y, grad_x=x.grad)


function("sqrt", torch.sqrt, values(5, 7).abs() + 0.25)
function("abs", torch.abs, values(5, 7))
function("tanh", torch.tanh, values(5, 7))
function("softplus", F.softplus, values(5, 7))
function("silu", F.silu, 3 * values(5, 7))
function("gelu", F.gelu, 3 * values(5, 7))
function("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), 3 * values(5, 7))
function("clamp", lambda x: torch.clamp(x, -0.5, 0.75), values(5, 7))
condition = values(5, 7) > 0
function("where", lambda x: torch.where(condition, x, x.sum(0) * torch.ones(5, 7)), values(5, 7))
save("where", condition=condition.double())

for case, loss in {"l1": F.l1_loss, "huber": F.huber_loss, "huber_half": lambda p, t: F.huber_loss(p, t, delta=0.5)}.items():
    pred, target = values(6, 3).requires_grad_(), values(6, 3).requires_grad_()
    out = loss(pred, target)
    out.backward()
    save(case, pred=pred, target=target, out=out.reshape(1), grad_pred=pred.grad, grad_target=target.grad)

a, b = values(4, 3).requires_grad_(), values(5).requires_grad_()
for name, clip in {"clip_norm": lambda p: torch.nn.utils.clip_grad_norm_(p, 1.5), "clip_value": lambda p: torch.nn.utils.clip_grad_value_(p, 0.4)}.items():
    a.grad, b.grad = values(4, 3), values(5)
    before = a.grad.clone(), b.grad.clone()
    norm = clip([a, b])
    save(name, a=before[0], b=before[1], clipped_a=a.grad, clipped_b=b.grad, norm=[float(norm if norm is not None else 0)])


def rates(case, make, metrics=None, epochs=30):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.05)
    scheduler = make(optimizer)
    seen = [optimizer.param_groups[0]["lr"]]
    for epoch in range(epochs):
        optimizer.step()
        scheduler.step(*([metrics[epoch]] if metrics else []))
        seen.append(optimizer.param_groups[0]["lr"])
    save(case, lr=seen, **({"metrics": metrics} if metrics else {}))


S = torch.optim.lr_scheduler
rates("step_lr", lambda o: S.StepLR(o, step_size=7, gamma=0.3))
rates("cosine_annealing_lr", lambda o: S.CosineAnnealingLR(o, T_max=30, eta_min=0.002))
rates("linear_lr", lambda o: S.LinearLR(o, start_factor=0.1, total_iters=8))
rates("warm_up_cosine", lambda o: S.SequentialLR(o, [S.LinearLR(o, start_factor=0.1, total_iters=8), S.CosineAnnealingLR(o, T_max=22, eta_min=0.002)],
                                                 milestones=[8]))
metrics = [1 + math.cos(0.7 * e) / (1 + e) + (0.02 * e if e > 14 else 0) for e in range(30)]
rates("reduce_lr_on_plateau", lambda o: S.ReduceLROnPlateau(o, factor=0.5, patience=3, threshold=1e-2, cooldown=2, min_lr=0.004), metrics)
rates("reduce_lr_on_plateau_max", lambda o: S.ReduceLROnPlateau(o, mode="max", factor=0.5, patience=2, threshold=1e-2, threshold_mode="abs"), metrics)

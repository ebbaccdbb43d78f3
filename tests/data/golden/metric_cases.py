# SPDX-License-Identifier: MIT

"""metric_cases.py OUT

Writes OUT/metrics/<case>/*.npy and args.txt, for pack.py: metrics by scikit-learn (the mean over classes or columns that have both labels, as
OGB's evaluator takes it), and torch's cross entropy with class weights and label smoothing, in double precision."""
import sys

import numpy as np
import torch
from sklearn import metrics
from cases import Group, values

save = Group(sys.argv[1], "metrics", seed=17).save
draws = np.random.default_rng(3)
single = lambda x: x.astype(np.float32).astype(float)


def mean_of(metric, truths, scores):
    """The mean over the columns that have both labels, of the elements that are not NaN."""
    found = [metric(t[~np.isnan(t)], s[~np.isnan(t)]) for t, s in zip(truths.T, scores.T) if len(np.unique(t[~np.isnan(t)])) == 2]
    return [np.mean(found)]


def f1(truth, predicted, **how):
    return [metrics.f1_score(truth, predicted, zero_division=0, **how)]


def classes(case, logits, labels, mask):
    chosen = mask & (labels >= 0)
    z, y = logits[chosen], labels[chosen]
    softmax = np.exp(z - z.max(1, keepdims=True))
    softmax /= softmax.sum(1, keepdims=True)
    scores = (z[:, 1] - z[:, 0])[:, None] if z.shape[1] == 2 else softmax
    truths = (y == 1).astype(float)[:, None] if z.shape[1] == 2 else (y[:, None] == np.arange(z.shape[1])).astype(float)
    out = {"roc_auc": mean_of(metrics.roc_auc_score, truths, scores),
           "average_precision": mean_of(metrics.average_precision_score, truths, scores),
           "f1_micro": f1(y, z.argmax(1), average="micro"), "f1_macro": f1(y, z.argmax(1), average="macro")}
    if z.shape[1] == 2:
        out["f1"] = f1(y, z.argmax(1))
    elif len(np.unique(y)) == z.shape[1]:
        assert abs(out["roc_auc"][0] - metrics.roc_auc_score(y, softmax, multi_class="ovr", average="macro")) < 1e-12
    save(case, logits=logits, labels=labels, mask=mask, **out)


def labels_of(n, count):
    labels = draws.integers(0, count, n)
    labels[::11] = -1
    return labels


mask = draws.random(43) < 0.8
classes("binary", single(draws.normal(0, 1, (43, 2))), labels_of(43, 2), mask)
classes("binary_ties", draws.integers(-2, 3, (43, 2)) / 4, labels_of(43, 2), mask)
classes("four", single(2 * draws.normal(0, 1, (43, 4))), labels_of(43, 4), mask)
classes("four_ties", single(draws.normal(0, 1, (6, 4)))[draws.integers(0, 6, 43)], labels_of(43, 4), mask)  # equal rows
classes("absent", single(draws.normal(0, 1, (43, 5))), labels_of(43, 3), mask)  # two classes without a row


def several(case, scores, targets, mask):
    s, t = scores[mask], targets[mask]
    known = ~np.isnan(t)
    columns = [f1(t[known[:, c], c], s[known[:, c], c] > 0)[0] for c in range(t.shape[1]) if known[:, c].any()]
    save(case, scores=scores, targets=targets, mask=mask, roc_auc=mean_of(metrics.roc_auc_score, t, s),
         average_precision=mean_of(metrics.average_precision_score, t, s), f1_micro=f1(t[known], s[known] > 0), f1_macro=[np.mean(columns)])


scores = draws.integers(-8, 9, (43, 4)) / 4
targets = (draws.random((43, 4)) < [0.3, 0.6, 0.1, 0]).astype(float)  # the last column has no 1
several("several", scores, targets, mask)
assert abs(metrics.f1_score(targets[mask], scores[mask] > 0, average="macro", zero_division=0) - f1(targets[mask], scores[mask] > 0, average="macro")[0]) == 0
targets[draws.random((43, 4)) < 0.2] = np.nan
several("several_missing", scores, targets, mask)


def regression(case, predictions, targets, mask):
    p, t = predictions[mask], targets[mask]
    pairs = [(a[~np.isnan(a)], b[~np.isnan(a)]) for a, b in zip(t.T, p.T)]
    mean = lambda metric: [np.mean([metric(*pair) for pair in pairs])]
    save(case, predictions=predictions, targets=targets, mask=mask, mae=mean(metrics.mean_absolute_error), mse=mean(metrics.mean_squared_error),
         rmse=mean(metrics.root_mean_squared_error), r2=mean(metrics.r2_score))


predictions, targets = single(draws.normal(0, 1, (43, 3))), single(draws.normal(3, 2, (43, 3)))
targets[:, 2] = 5  # all equal
regression("values", predictions, targets, mask)
targets[draws.random((43, 3)) < 0.2] = np.nan
regression("values_missing", predictions, targets, mask)


def cross_entropy(case, weights, smoothing):
    logits, labels = (3 * values(23, 5)).requires_grad_(), torch.randint(5, (23,))
    mask = torch.arange(23) % 4 != 0
    out = torch.nn.CrossEntropyLoss(weight=None if weights is None else torch.tensor(weights), label_smoothing=smoothing)(logits[mask], labels[mask])
    out.backward()
    save(case, logits=logits, labels=labels, mask=mask, weights=np.array(weights or [], dtype=float), smoothing=[smoothing], out=out.reshape(1),
         grad_logits=logits.grad)


cross_entropy("cross_entropy_weights", [0.5, 2, 0, 1, 3.25], 0.0)
cross_entropy("cross_entropy_smoothing", None, 0.125)
cross_entropy("cross_entropy_both", [0.5, 2, 0, 1, 3.25], 0.125)

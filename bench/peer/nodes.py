# SPDX-License-Identifier: MIT

"""The networks of `train` in PyTorch Geometric, on the same files and splits, for docs/accuracy.md:

    nodes.py --dataset FILE [the other options of the `train` command]

Reads one file of published node data, trains as `train` with the same options does, and prints a line for each run:
test value at the first epoch with the best validation value, and seconds of a training step. --log FILE has their mean
and standard deviation. Options of `train` that are not listed below are refused.

Self loops and reverse edges are added to the graph by the options, as `train` adds them, so the layers add none.
Splits that `train --split-nodes` drew are read from the folder of its --predict, by --drawn.
"""

import argparse
import csv
import json
import pathlib
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

MASKS = ("train_mask", "val_mask", "test_mask")


def parse():
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("--dataset", type=pathlib.Path, required=True)
    p.add_argument("--node-table", type=pathlib.Path)
    p.add_argument("--node-columns", default="")
    p.add_argument("--node-features", type=pathlib.Path)
    p.add_argument("--normalize-features", action="store_true")
    p.add_argument("--add-reverse-edges", action="store_true")
    p.add_argument("--drop-duplicates", action="store_true")
    p.add_argument("--add-self-loops", nargs="?", const="all", choices=["all", "remaining"])
    p.add_argument("--drawn", type=pathlib.Path, help="folder of train --predict")
    p.add_argument("--model", choices=["gcn", "sage", "gat"], required=True)
    p.add_argument("--layers", type=int, default=3)
    p.add_argument("--hidden", type=int, default=64)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--out-heads", type=int, default=1)
    p.add_argument("--attn-dropout", type=float, default=0)
    p.add_argument("--dropout", type=float, default=0)
    p.add_argument("--norm", choices=["none", "batch", "layer"], default="none")
    p.add_argument("--residual", choices=["none", "linear"], default="none")
    p.add_argument("--jk", choices=["none", "last"], default="none")
    p.add_argument("--activation", choices=["relu", "elu"])
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--weight-decay", type=float, default=0)
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--metric", choices=["accuracy", "roc-auc"], default="accuracy")
    p.add_argument("--splits", default="0", help="all, or a list such as 0,1,2")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--eval-every", type=int, default=1)
    p.add_argument("--log", type=pathlib.Path, help="JSON of the mean, standard deviation and values")
    return p.parse_args()


def csr(z, name):
    """A sparse matrix as a dense one."""
    dense = np.zeros(z[f"{name}_shape"], np.float32)
    rows = np.repeat(np.arange(dense.shape[0]), np.diff(z[f"{name}_indptr"]))
    dense[rows, z[f"{name}_indices"]] = z[f"{name}_data"]
    return dense


def read_archive(path):
    """Platonov et al.: node_features, node_labels, edges, *_masks. Shchur et al.: adj_*, attr_*, labels."""
    with np.load(path) as z:
        if "edges" in z:
            splits = [[z[f"{mask}s"][k] for mask in MASKS] for k in range(len(z["train_masks"]))]
            return z["node_features"], z["node_labels"], z["edges"].T, splits
        return csr(z, "attr"), z["labels"], np.stack(np.nonzero(csr(z, "adj"))), []


def read_folder(path):
    load = lambda name: np.load(path / f"{name}.npy")
    return load("features"), load("labels"), load("edge_index"), [[load(mask) for mask in MASKS]]


def read_table(a):
    """An edge list, a table of nodes and the JSON lists of the features that each node has."""
    columns = dict(pair.split("=") for pair in a.node_columns.split(","))
    with open(a.node_table) as table:
        labels = {int(row[columns["key"]]): row[columns["labels"]] == "True" for row in csv.DictReader(table)}
    lists = json.loads(a.node_features.read_text())
    x = np.zeros((len(labels), 1 + max(max(l, default=0) for l in lists.values())), np.float32)
    for node, has in lists.items():
        x[int(node), has] = 1
    edges = np.loadtxt(a.dataset, np.int64, delimiter=",", skiprows=1).T
    return x, np.array([labels[v] for v in range(len(labels))]), edges, []


def read(a):
    """Returns features, labels, edges and a list of splits, each of three masks."""
    if a.node_table:
        x, y, e, splits = read_table(a)
    else:
        x, y, e, splits = read_folder(a.dataset) if a.dataset.is_dir() else read_archive(a.dataset)
    x = x.astype(np.float32)
    if a.normalize_features:
        x = x / np.maximum(np.abs(x).sum(1, keepdims=True), 1e-30)
    if a.add_reverse_edges:
        e = np.concatenate([e, e[::-1]], axis=1)
    if a.drop_duplicates:
        e = np.unique(e, axis=1)
    if a.add_self_loops:
        nodes = np.arange(len(y))
        if a.add_self_loops == "remaining":
            nodes = np.setdiff1d(nodes, e[0, e[0] == e[1]])
        e = np.concatenate([e, np.stack([nodes, nodes])], axis=1)
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.int64)), torch.from_numpy(e.astype(np.int64)), splits


def read_drawn(a, seed):
    split = np.load(a.drawn / (f"seed-{seed}" if a.runs > 1 else "") / "split.npy")
    return [split == part for part in range(3)]


class Net(nn.Module):
    """h = dropout(activation(norm(conv(h) + linear(h)))) for each layer, then a linear layer with --jk last; without
    it, the last convolution makes the logits."""

    def __init__(self, a, width, classes):
        super().__init__()
        head = a.jk == "last"
        sizes = [width] + [a.hidden] * (a.layers - 1) + [a.hidden if head else classes]
        norms = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm, "none": lambda _: nn.Identity()}
        self.convs, self.lins, self.norms = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
            result = i == a.layers - 1 and not head
            self.convs.append(self.conv(a, n, m, result))
            if a.residual == "linear":
                self.lins.append(nn.Linear(n, m))
            if not result:
                self.norms.append(norms[a.norm](m))
        self.head = nn.Linear(a.hidden, classes) if head else None
        self.dropout = nn.Dropout(a.dropout)
        self.drops_input = a.model in ("gcn", "gat") and not head
        elu = a.activation == "elu" or (a.activation is None and a.model == "gat")
        self.activation = nn.functional.elu if elu else torch.relu

    @staticmethod
    def conv(a, n, m, result):
        if a.model == "gcn":
            return GCNConv(n, m, add_self_loops=False)
        if a.model == "sage":
            return SAGEConv(n, m)
        heads = a.out_heads if result else a.heads
        return GATConv(n, m if result else m // heads, heads, not result, dropout=a.attn_dropout, add_self_loops=False)

    def forward(self, h, edges):
        if self.drops_input:
            h = self.dropout(h)
        for i, conv in enumerate(self.convs):
            y = conv(h, edges)
            h = y + self.lins[i](h) if self.lins else y
            if i < len(self.norms):
                h = self.dropout(self.activation(self.norms[i](h)))
        return self.head(h) if self.head else h


def measure(metric, logits, y):
    if metric == "accuracy":
        return (logits.argmax(1) == y).float().mean().item()
    _, inverse, counts = np.unique((logits[:, 1] - logits[:, 0]).numpy(), return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[inverse]  # from 1; equal scores share the mean rank
    is_one = y.numpy() == 1
    ones = is_one.sum()
    return (rank[is_one].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones))


def train(a, x, y, edges, masks, seed):
    """Returns the test value at the best epoch, that epoch, and the seconds of the training steps."""
    torch.manual_seed(seed)
    learn, valid, test = (torch.from_numpy(mask.astype(bool)) for mask in masks)
    net = Net(a, x.shape[1], int(y.max()) + 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=a.lr, weight_decay=a.weight_decay)
    best, value, at, seconds = -1.0, 0.0, 0, []
    for epoch in range(1, a.epochs + 1):
        begin = time.perf_counter()
        net.train()
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x, edges)[learn], y[learn]).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        if a.eval_every == 0 or (epoch % a.eval_every and epoch < a.epochs):
            continue
        net.eval()
        with torch.no_grad():
            logits = net(x, edges)
        now = measure(a.metric, logits[valid], y[valid])
        if now > best:
            best, value, at = now, measure(a.metric, logits[test], y[test]), epoch
    return value, at, seconds


def report(log, values, seconds):
    result = {
        "runs": len(values),
        "mean": statistics.fmean(values),
        "std": statistics.stdev(values) if len(values) > 1 else 0,
        "values": values,
        "least_seconds": min(seconds),
        "median_seconds": statistics.median(seconds),
    }
    log.write_text(json.dumps(result) + "\n")


def main():
    a = parse()
    torch.set_num_threads(a.threads)
    x, y, edges, splits = read(a)
    chosen = range(len(splits)) if a.splits == "all" else [int(k) for k in a.splits.split(",")]
    values, seconds = [], []
    for k in chosen:
        for seed in range(a.seed, a.seed + a.runs):
            masks = read_drawn(a, seed) if a.drawn else splits[k]
            value, epoch, steps = train(a, x, y, edges, masks, seed)
            values.append(value)
            seconds += steps
            print(f"split {k} seed {seed}: test {value:.4f} at epoch {epoch}, {min(steps):.4f} s a step", flush=True)
    if a.log:
        report(a.log, values, seconds)


if __name__ == "__main__":
    main()

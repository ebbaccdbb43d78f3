# SPDX-License-Identifier: MIT

"""graphs.py TRAIN DATASET [options]

Trains GIN on a TU folder with the program TRAIN and with PyTorch Geometric, in turns, with the same network, splits, batch size, optimizer and
number of threads: for each seed, TRAIN draws the split and both train. Both evaluate all graphs after each epoch. Prints a line for each run,
then mean and standard deviation of the test accuracy at the first epoch with the best validation accuracy, and the ratio of the seconds an epoch
(the median of all epochs but the first). For bench/RESULTS.md."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool, global_max_pool, global_mean_pool

POOLS = {"sum": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}


def parse():
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("train", type=pathlib.Path)
    p.add_argument("dataset", type=pathlib.Path)
    p.add_argument("--readout", choices=POOLS, default="sum")
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--epochs", type=int, default=60)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    return p.parse_args()


def read(folder):
    """The graphs, with node labels as one-hot features."""
    name = next(folder.glob("*_graph_indicator.txt")).name.removesuffix("graph_indicator.txt")
    column = lambda what: np.loadtxt(folder / f"{name}{what}.txt", dtype=np.int64, delimiter=",", ndmin=1)
    indicator, edges, labels, atoms = (column(what) for what in ("graph_indicator", "A", "graph_labels", "node_labels"))
    x = torch.eye(int(atoms.max() - atoms.min()) + 1)[torch.from_numpy(atoms - atoms.min())]
    classes = torch.from_numpy(np.unique(labels, return_inverse=True)[1])
    graphs = []
    for g, label in enumerate(classes, 1):
        nodes = np.flatnonzero(indicator == g)
        ends = edges[indicator[edges[:, 0] - 1] == g] - 1 - nodes[0]
        graphs.append(Data(x=x[nodes], edge_index=torch.from_numpy(ends.T.copy()), y=label))
    return graphs, x.shape[1], int(classes.max()) + 1


class Network(nn.Module):
    def __init__(self, o, width, classes):
        super().__init__()
        widths = [width] + o.layers * [o.hidden]
        mlp = lambda a, b: nn.Sequential(nn.Linear(a, o.hidden), nn.BatchNorm1d(o.hidden), nn.ReLU(), nn.Linear(o.hidden, b))
        self.convs = nn.ModuleList(GINConv(mlp(a, b), train_eps=True) for a, b in zip(widths, widths[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm1d(o.hidden) for _ in range(o.layers))
        self.dropout, self.pool = nn.Dropout(o.dropout), POOLS[o.readout]
        self.lin = nn.Linear(o.hidden, classes)

    def forward(self, data):
        h = data.x
        for conv, norm in zip(self.convs, self.norms):
            h = self.dropout(norm(conv(h, data.edge_index)).relu())
        return self.lin(self.pool(h, data.batch, data.num_graphs))


def peer(o, seed, graphs, width, classes, split):
    """Test accuracy at the best epoch, and seconds of each epoch."""
    torch.manual_seed(seed)
    model = Network(o, width, classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=o.lr)
    loader = DataLoader([graphs[i] for i in np.flatnonzero(split == 0)], o.batch_size, shuffle=True)
    everything = DataLoader(graphs, o.batch_size)
    best, test, seconds = -1, 0, []
    for _ in range(o.epochs):
        begin = time.perf_counter()
        model.train()
        for batch in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = torch.cat([model(batch).argmax(1) == batch.y for batch in everything]).numpy()
        seconds.append(time.perf_counter() - begin)
        if right[split == 1].mean() > best:
            best, test = right[split == 1].mean(), right[split == 2].mean()
    return test, seconds


def ours(o, seed, folder):
    """The same of TRAIN, and the split that it drew."""
    command = [o.train, "--task", "graph", "--dataset", o.dataset, "--model", "gin", "--norm", "batch", "--split-graphs", "0.6,0.2,0.2"]
    for name in ("readout", "layers", "hidden", "dropout", "batch-size", "lr", "epochs", "threads"):
        command += ["--" + name, getattr(o, name.replace("-", "_"))]
    command += ["--seed", seed, "--log", folder + "/log", "--predict", folder]
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
    *epochs, summary = [json.loads(line) for line in open(folder + "/log")]
    return summary["test_acc"], [epoch["seconds"] for epoch in epochs], np.load(folder + "/split.npy")


def main():
    o = parse()
    torch.set_num_threads(o.threads)
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    graphs, width, classes = read(o.dataset)
    tests, medians = {"train": [], "pyg": []}, {"train": [], "pyg": []}
    for seed in range(o.seeds):
        with tempfile.TemporaryDirectory() as folder:
            test, seconds, split = ours(o, seed, folder)
        results = {"train": (test, seconds), "pyg": peer(o, seed, graphs, width, classes, split)}
        for name, (test, seconds) in results.items():
            tests[name].append(float(test))
            medians[name].append(statistics.median(seconds[1:]))
            print(f"seed {seed} {name:6} test {test:.4f}  {medians[name][-1]:.4f} s an epoch", flush=True)
    for name in tests:
        print(f"{name:6} test {statistics.mean(tests[name]):.4f} +- {statistics.stdev(tests[name]):.4f}, {statistics.median(medians[name]):.4f} s an epoch")
    print("ratio of the seconds, pyg / train:", " ".join(f"{b / a:.2f}" for a, b in zip(medians["train"], medians["pyg"])))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT

"""python_overhead.py TRAIN DATASET [options]

What the Python package costs, and how fast it is beside DGL and PyTorch Geometric where the interpreter has them. Each line is a JSON object:

    import    seconds that `import sar` adds to the start of the interpreter
    epoch     SAGE on DATASET, by the program TRAIN and by the package, in turns: median seconds of an epoch, and their ratio
    step      the same on the generated graph of --small nodes; microseconds that a step takes longer
    dgl, pyg  SAGE of two layers, from the same weights and epoch by epoch in turns with the package: the largest relative difference of the
              losses, the ratio of the epochs

PYTHONPATH names the folder of the package."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import sar
from sar.nn import functional as F


def parse():
    p = argparse.ArgumentParser(allow_abbrev=False)
    p.add_argument("train", type=pathlib.Path)
    p.add_argument("dataset", type=pathlib.Path)
    p.add_argument("--generate", type=pathlib.Path, help="the program; default: beside TRAIN")
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--layers", type=int, default=3)
    p.add_argument("--dropout", type=float, default=0.5)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--small", type=int, default=1000)
    p.add_argument("--steps", type=int, default=300)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--only", default="import,epoch,step,dgl,pyg", help="the lines to print")
    return p.parse_args()


def say(name, **values):
    print(json.dumps({"name": name, **values}), flush=True)


def import_seconds(turns):
    def run(code):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    return min(run("import sar") for _ in range(turns)) - min(run("import numpy") for _ in range(turns)), min(
        run("import sar") for _ in range(turns)) - min(run("pass") for _ in range(turns))


def of_program(o, folder, hidden, epochs):
    with tempfile.TemporaryDirectory() as place:
        log = os.path.join(place, "log.jsonl")
        subprocess.run([o.train, "--dataset", folder, "--model", "sage", "--layers", str(o.layers), "--hidden", str(hidden), "--batch-norm",
                        "--dropout", str(o.dropout), "--epochs", str(epochs), "--threads", str(o.threads), "--eval-every", "0", "--log", log],
                       check=True, capture_output=True)
        lines = [json.loads(line) for line in open(log)]
    epochs = [line for line in lines if "epoch" in line]
    return [line["seconds"] for line in epochs][1:], epochs[-1]["loss"]


def of_package(o, folder, hidden, epochs):
    data = sar.load_dataset(folder)
    data.graph.drop_edge_ids()
    sar.manual_seed(0)
    net = sar.GraphModel({"type": "sage", "in_feats": data.features.shape[1], "hidden": hidden, "out_feats": data.num_classes,
                          "layers": o.layers, "norm": "batch", "dropout": o.dropout}, cached=not data.features.is_sparse)
    optimizer = sar.optim.Adam(net, lr=0.01)
    seconds = []
    for _ in range(epochs):
        begin = time.perf_counter()
        loss = F.cross_entropy(net(data.graph, data.features), data.labels, data.train_mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    return seconds[1:], loss.item()


def in_turns(o, name, folder, hidden, epochs):
    times, losses = ([], []), [0, 0]
    for _ in range(o.turns):
        for side, run in enumerate((of_program, of_package)):
            seconds, losses[side] = run(o, folder, hidden, epochs)
            times[side].append(statistics.median(seconds))
    one, two = (statistics.median(each) for each in times)
    say(name, nodes=len(np.load(os.path.join(folder, "labels.npy"), mmap_mode="r")), hidden=hidden, layers=o.layers, train_seconds=one, package_seconds=two,
        ratio=two / one, ratios=[b / a for a, b in zip(*times)], more_microseconds=(two - one) * 1e6, last_losses=losses)


class Ours(sar.nn.Module):
    def __init__(self, width, hidden, classes):
        super().__init__()
        self.first, self.second = sar.nn.SAGEConv(width, hidden), sar.nn.SAGEConv(hidden, classes)

    def forward(self, graph, x):
        return self.second(graph, F.relu(self.first(graph, x)))


def dgl_layers(ends, nodes):
    import dgl

    graph = dgl.graph((ends[0], ends[1]), num_nodes=nodes).formats(["csr", "csc"])
    graph.create_formats_()
    return lambda i, o: dgl.nn.SAGEConv(i, o, "mean"), lambda layer, x: layer(graph, x), {}, dgl.__version__


def pyg_layers(ends, nodes):
    import torch_geometric

    names = {"fc_neigh.weight": "lin_l.weight", "fc_self.bias": "lin_l.bias", "fc_self.weight": "lin_r.weight"}
    return torch_geometric.nn.SAGEConv, lambda layer, x: layer(x, ends), names, torch_geometric.__version__


def beside(o, peers):
    """Trains the same network with the package and with each peer, epoch by epoch in turns, from the same weights."""
    try:
        import torch
    except ImportError as error:
        return [say(peer, skipped=str(error)) for peer in peers]

    torch.set_num_threads(o.threads)
    data = sar.load_dataset(o.dataset)
    ends = torch.from_numpy(np.load(os.path.join(o.dataset, "edge_index.npy")).astype(np.int64))
    x, labels = torch.from_numpy(data.features.numpy().copy()), torch.from_numpy(np.asarray(data.labels))
    mask = torch.from_numpy(np.asarray(data.train_mask))
    sizes = x.shape[1], o.hidden, data.num_classes

    class Theirs(torch.nn.Module):
        def __init__(self, layer, call, width, hidden, classes):
            super().__init__()
            self.call, self.first, self.second = call, layer(width, hidden), layer(hidden, classes)

        def forward(self, x):
            return self.call(self.second, self.call(self.first, x).relu())

    def our_loss():
        return F.cross_entropy(ours(data.graph, data.features), data.labels, data.train_mask)

    def their_loss(net):
        return lambda: torch.nn.functional.cross_entropy(net(x)[mask], labels[mask])

    ours = Ours(*sizes)
    runs, versions = {"sar": (our_loss, sar.optim.Adam(ours, lr=0.01))}, {}
    for peer in peers:
        try:
            layer, call, names, versions[peer] = {"dgl": dgl_layers, "pyg": pyg_layers}[peer](ends, len(x))
        except ImportError as error:
            say(peer, skipped=str(error))
            continue
        theirs = Theirs(layer, call, *sizes)
        weights = {}
        for name, value in ours.state_dict().items():
            part, inner = name.split(".", 1)
            weights[f"{part}.{names.get(inner, inner)}"] = torch.tensor(np.array(value))
        theirs.load_state_dict(weights)
        runs[peer] = their_loss(theirs), torch.optim.Adam(theirs.parameters(), lr=0.01)
    losses, seconds = {name: [] for name in runs}, {name: [] for name in runs}
    for _ in range(o.epochs):
        for name, (loss_of, optimizer) in runs.items():
            begin = time.perf_counter()
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seconds[name].append(time.perf_counter() - begin)
            losses[name].append(loss.item())
    one = statistics.median(seconds["sar"][1:])
    for peer in list(runs)[1:]:
        two = statistics.median(seconds[peer][1:])
        say(peer, nodes=len(x), hidden=o.hidden, epochs=o.epochs, loss_difference=max(abs(a - b) / abs(b) for a, b in zip(losses["sar"], losses[peer])),
            seconds=one, peer_seconds=two, times_as_fast=two / one, version=versions[peer], torch=torch.__version__)


def main():
    o = parse()
    sar.set_num_threads(o.threads)
    only = o.only.split(",")
    if "import" in only:
        over_numpy, seconds = import_seconds(o.turns)
        say("import", seconds=seconds, seconds_without_numpy=over_numpy)
    if "epoch" in only:
        in_turns(o, "epoch", o.dataset, o.hidden, o.epochs)
    if "step" in only:
        with tempfile.TemporaryDirectory() as place:
            folder = os.path.join(place, "graph")
            generate = o.generate or o.train.parent / "generate"
            subprocess.run([generate, "--nodes", str(o.small), "--degree", "14", "--out", folder], check=True, capture_output=True)
            in_turns(o, "step", folder, 16, o.steps)
    if peers := [peer for peer in ("dgl", "pyg") if peer in only]:
        beside(o, peers)


if __name__ == "__main__":
    main()

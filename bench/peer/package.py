"""package.py TRAIN GENERATE [options]

What the Python package costs, and how fast it is beside PyTorch Geometric (where the interpreter has it): the program GENERATE makes a graph with
communities. Prints the median seconds of an epoch of SAGE with TRAIN and with the package, in turns; the same on a graph of 1,000 nodes, where the
difference is what a step costs more; the seconds of the import; and with PyG, the largest relative difference of the losses from the same weights,
and the ratio of the epochs. For bench/RESULTS.md. PYTHONPATH names the folder of the package."""
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
    p.add_argument("generate", type=pathlib.Path)
    p.add_argument("--nodes", type=int, default=160000)
    p.add_argument("--degree", type=int, default=14)
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--layers", type=int, default=3)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    return p.parse_args()


def generated(o, nodes, folder):
    subprocess.run([o.generate, "--nodes", str(nodes), "--degree", str(o.degree), "--out", folder], check=True, capture_output=True)
    return folder


def of_program(o, folder, hidden, epochs):
    log = os.path.join(folder, "log.jsonl")
    subprocess.run([o.train, "--dataset", folder, "--model", "sage", "--layers", str(o.layers), "--hidden", str(hidden), "--epochs", str(epochs), "--threads",
                    str(o.threads), "--dropout", "0", "--eval-every", "0", "--log", log], check=True, capture_output=True)
    lines = [json.loads(line) for line in open(log)]
    return [line["seconds"] for line in lines if "epoch" in line and "seconds" in line][1:]


def of_package(o, folder, hidden, epochs):
    data = sar.load_dataset(folder)
    data.graph.drop_edge_ids()
    net = sar.GraphModel({"type": "sage", "in_feats": data.features.shape[1], "hidden": hidden, "out_feats": data.num_classes, "layers": o.layers})
    optimizer = sar.optim.Adam(net, lr=0.01)
    seconds = []
    for _ in range(epochs):
        begin = time.perf_counter()
        loss = F.cross_entropy(net(data.graph, data.features), data.labels, data.train_mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]


def beside_pyg(o, folder):
    """Losses and seconds of both from the same weights: SAGE of two layers."""
    import torch
    from torch_geometric.nn import SAGEConv

    torch.set_num_threads(o.threads)
    data = sar.load_dataset(folder)
    src_dst, x = np.load(os.path.join(folder, "edge_index.npy")), data.features.numpy()
    width, classes = x.shape[1], data.num_classes

    class Ours(sar.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = sar.nn.SAGEConv(width, o.hidden), sar.nn.SAGEConv(o.hidden, classes)

        def forward(self, graph, x):
            return self.second(graph, F.relu(self.first(graph, x)))

    class Theirs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = SAGEConv(width, o.hidden), SAGEConv(o.hidden, classes)

        def forward(self, edges, x):
            return self.second(self.first(x, edges).relu(), edges)

    ours, theirs = Ours(), Theirs()
    names = {"lin_l.weight": "fc_neigh.weight", "lin_l.bias": "fc_self.bias", "lin_r.weight": "fc_self.weight"}
    ours.load_state_dict({name.split(".", 1)[0] + "." + names[name.split(".", 1)[1]]: value for name, value in theirs.state_dict().items()})
    optimizers = sar.optim.Adam(ours, lr=0.01), torch.optim.Adam(theirs.parameters(), lr=0.01)
    edges, features, labels, mask = (torch.from_numpy(np.asarray(a)) for a in (src_dst, x, data.labels, data.train_mask))
    losses, seconds = ([], []), ([], [])
    for _ in range(o.epochs):
        begin = time.perf_counter()
        loss = F.cross_entropy(ours(data.graph, data.features), data.labels, data.train_mask)
        optimizers[0].zero_grad()
        loss.backward()
        optimizers[0].step()
        between = time.perf_counter()
        peer = torch.nn.functional.cross_entropy(theirs(edges, features)[mask], labels[mask])
        optimizers[1].zero_grad()
        peer.backward()
        optimizers[1].step()
        end = time.perf_counter()
        losses[0].append(loss.item()), losses[1].append(peer.item())
        seconds[0].append(between - begin), seconds[1].append(end - between)
    difference = max(abs(a - b) / abs(b) for a, b in zip(*losses))
    return difference, *(statistics.median(times[1:]) for times in seconds)


def main():
    o = parse()
    sar.set_num_threads(o.threads)
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    empty = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import sar"], check=True)
    print(f"import: {time.perf_counter() - empty - (empty - begin):.3f} s")
    with tempfile.TemporaryDirectory() as folder:
        for nodes, hidden, epochs in ((o.nodes, o.hidden, o.epochs), (1000, 16, 300)):
            graph = generated(o, nodes, os.path.join(folder, str(nodes)))
            times = [], []
            for _ in range(o.turns):
                times[0].append(statistics.median(of_program(o, graph, hidden, epochs)))
                times[1].append(statistics.median(of_package(o, graph, hidden, epochs)))
            one, two = (min(each) for each in times)
            print(f"{nodes} nodes, SAGE {o.layers} x {hidden}: train {one * 1e3:.3f} ms, package {two * 1e3:.3f} ms an epoch: {two / one:.3f} times, "
                  f"{(two - one) * 1e6:+.0f} microseconds", flush=True)
        try:
            difference, ours, theirs = beside_pyg(o, os.path.join(folder, str(o.nodes)))
        except ImportError:
            return
        print(f"{o.nodes} nodes, SAGE 2 x {o.hidden} beside PyG: losses differ by at most {difference:.1e} of their value in {o.epochs} epochs; an epoch takes "
              f"{ours:.3f} s and {theirs:.3f} s: {theirs / ours:.1f} times as fast")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT

"""other_weights_test.py MPIRUN_SH MPIEXEC RANKS TRAIN: weights of PyG and DGL in `train`, without NumPy.

A GCN of PyG on two nodes that edges of weight 4 join has the logits 0.2 and 0.8 (PyG's GCNConv on the same graph). A training has the same losses on
one rank, on all RANKS, in mini-batches, on message flow graphs and in a resumed run. With RANKS 1: names of GATConv's releases, and what the messages say."""
import array
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

mpirun, mpiexec, ranks, train = sys.argv[1:]
scratch = tempfile.TemporaryDirectory()
os.chdir(scratch.name)


def npy(path, kind, shape, values):
    header = repr({"descr": {"f": "<f4", "q": "<i8", "b": "|b1"}[kind], "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + array.array(kind, values).tobytes())


def logits(path):
    raw = open(path, "rb").read()
    return array.array("f", raw[10 + struct.unpack("<H", raw[8:10])[0]:]).tolist()


def weights(path, tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (shape, values) in tensors.items():
        part = array.array("d", values).tobytes()
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
    return path


def run(*options, on=ranks, code=0):
    done = subprocess.run([mpirun, mpiexec, str(on), train, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, (options, done.stdout)
    return done.stdout


def predicted(*options, on=ranks, close_to):
    said = run(*options, "--epochs", "0", "--predict", "out", on=on)
    found = logits("out/logits.npy")
    assert max(abs(a - b) for a, b in zip(found, close_to)) < 1e-5, (options, found)
    return said


def graph(edges, nodes, *, features, name="graph.csv"):
    open(name, "w").write("src,dst,weight\n" + "".join("%d,%d,%g\n" % edge for edge in edges))
    width = len(features) // nodes
    npy(name + ".x.npy", "f", (nodes, width), features)
    npy(name + ".y.npy", "q", (nodes,), [0] * nodes)
    npy(name + ".m.npy", "b", (nodes,), [1] * nodes)
    data = ["%s=%s.%s.npy" % (field, name, letter) for field, letter in (("features", "x"), ("labels", "y"), ("train_mask", "m"))]
    return ["--dataset", name, "--num-classes", "1", "--layers", "1", "--node-data", *data]


pair = graph([(0, 1, 4), (1, 0, 4)], 2, features=[1, 0])
gcn = [*pair, "--model", "gcn", "--dropout", "0"]
pyg = weights("pyg.safetensors", {"conv1.lin.weight": ([1, 1], [1]), "conv1.bias": ([1], [0])})
dgl = weights("dgl.safetensors", {"conv1.weight": ([1, 1], [1]), "conv1.bias": ([1], [0])})
two = min(int(ranks), 2)

# PyG's normalization is chosen by its names and said; --gcn-norm has the last word.
said = predicted(*gcn, "--add-self-loops", "--init-weights", pyg, on=two, close_to=[0.2, 0.8])
assert "pyg.safetensors: messages are normalized as in the network of these weights: --gcn-norm in_weights" in said, said
assert "gcn: 1 -> 1, normalized by the sums of in-edge weights" in said and "self loop" not in said, said
said = predicted(*gcn, "--add-self-loops", "--init-weights", dgl, on=two, close_to=[0.5, 2])
assert "dgl.safetensors: messages are normalized by numbers of edges, as in DGL; weights of PyG 1 have the same names" in said, said
predicted(*gcn, "--add-self-loops", "--init-weights", dgl, "--gcn-norm", "in_weights", on=two, close_to=[0.2, 0.8])
predicted(*gcn, "--add-self-loops", "--init-weights", dgl, "--gcn-norm", "weights", on=two, close_to=[0.2, 0.8])
said = predicted(*gcn, "--add-self-loops", "--init-weights", pyg, "--gcn-norm", "degrees", on=two, close_to=[0.5, 2])
assert "normalized" not in said, said
said = predicted(*gcn, "--init-weights", pyg, on=two, close_to=[0, 1])
assert "2 of 2 nodes have no self loop, and the layers of these weights add one: --add-self-loops remaining" in said, said
said = run(*pair, "--model", "sage", "--gcn-norm", "degrees", on=two, code=2)
assert "--gcn-norm" in said and "--model gcn" in said, said

# A self loop that is there keeps its weight: of 6 on node 1, d = 5, 10.
loop = [*graph([(0, 1, 4), (1, 0, 4), (1, 1, 6)], 2, features=[1, 0], name="loop.csv"), "--model", "gcn"]
predicted(*loop, "--add-self-loops", "remaining", "--init-weights", pyg, on=two, close_to=[0.2, 4 / 50 ** 0.5])
predicted(*loop, "--add-self-loops=remaining", "--partition", "random", "--init-weights", pyg, on=two, close_to=[0.2, 4 / 50 ** 0.5])
said = predicted(*loop, "--add-self-loops", "all", "--init-weights", pyg, on=two, close_to=[0.2, 4 / 55 ** 0.5])
assert "1 of 2 nodes have several self loops, and the layers of these weights keep one" in said, said


def check_trainings():
    """A directed ring with chords: the same losses and logits on 1 and on all ranks, in mini-batches, on message flow graphs, and in a resumed run."""
    ring = [(v, (v + step) % 12, 1 + (5 * v + step) % 7) for v in range(12) for step in (1, 4)]
    train_ring = [*graph(ring, 12, features=[(3 * i) % 5 - 2 for i in range(24)], name="ring.csv"), "--model", "gcn", "--hidden", "4", "--num-classes", "3",
                  "--dropout", "0", "--add-self-loops", "remaining", "--threads", "1"]
    train_ring[train_ring.index("--layers") + 1] = "2"
    del train_ring[2:4]
    start = weights("start.safetensors", {"conv1.lin.weight": ([4, 2], [0.3, -0.2, 0.5, 0.1, -0.4, 0.6, 0.2, 0.7]), "conv1.bias": ([4], [0.1, 0, -0.1, 0.2]),
                                          "conv2.lin.weight": ([3, 4], [0.1 * ((7 * i) % 11 - 5) for i in range(12)]), "conv2.bias": ([3], [0, 0.1, 0.2])})

    def losses(*options, on=ranks):
        if "--resume" not in options and os.path.exists("log"):
            os.remove("log")
        run(*train_ring, "--lr", "0.05", "--log", "log", *options, on=on)
        return [json.loads(line)["loss"] for line in open("log") if '"loss"' in line]

    def same(a, b, places=4):
        assert len(a) == len(b) > 0 and all(abs(x - y) < 10 ** -places for x, y in zip(a, b)), (a, b)

    alone = losses("--epochs", "4", "--init-weights", start, "--save-weights", "alone.safetensors", on=1)
    same(losses("--epochs", "4", "--init-weights", start, "--save-weights", "saved.safetensors"), alone)
    same(losses("--epochs", "4", "--init-weights", start, "--mfg"), alone)
    same(losses("--epochs", "4", "--init-weights", start, "--sample", "-1,-1", "--batch-size", "1000"), alone)
    assert abs(losses("--epochs", "1", "--init-weights", start, "--gcn-norm", "degrees")[0] - alone[0]) > 1e-4
    run(*train_ring, "--epochs", "2", "--init-weights", start, "--lr", "0.05", "--log", "log2", "--checkpoint", "runs")
    said = run(*train_ring, "--epochs", "4", "--lr", "0.05", "--checkpoint", "runs", "--resume", code=1)
    assert "made with --gcn-norm in_weights, expected degrees as in this run" in said, said
    run(*train_ring, "--epochs", "4", "--lr", "0.05", "--checkpoint", "runs", "--resume", "--gcn-norm", "in_weights", "--log", "log2")
    same([json.loads(line)["loss"] for line in open("log2") if '"loss"' in line], alone)
    run(*train_ring, "--epochs", "0", "--init-weights", "saved.safetensors", "--predict", "again")
    run(*train_ring, "--epochs", "0", "--init-weights", "alone.safetensors", "--predict", "once", on=1)
    same(logits("again/logits.npy"), logits("once/logits.npy"))


def check_names():
    """Names of GATConv: shared, or not; what is ignored and what stays."""
    attention = {"conv1.att_src": ([1, 1, 1], [0.5]), "conv1.att_dst": ([1, 1, 1], [-0.3]), "conv1.bias": ([1], [0.25])}
    gat = [*pair, "--model", "gat", "--heads", "1", "--hidden", "1", "--dropout", "0", "--add-self-loops"]
    shared = weights("shared.safetensors", {**attention, "conv1.lin_src.weight": ([1, 1], [2]), "conv1.lin_dst.weight": ([1, 1], [2])})
    one = weights("one.safetensors", {**attention, "conv1.lin_dst.weight": ([1, 1], [2])})
    apart = weights("apart.safetensors", {**attention, "conv1.lin_src.weight": ([1, 1], [2]), "conv1.lin_dst.weight": ([1, 1], [3])})
    said = run(*gat, "--epochs", "0", "--init-weights", shared, "--predict", "a", on=two)
    assert "conv1.lin_dst.weight is taken for layers.0.fc.weight" in said and "conv1.lin_src.weight is taken for layers.0.fc.weight" in said, said
    run(*gat, "--epochs", "0", "--init-weights", one, "--predict", "b", on=two)
    run(*gat, "--epochs", "0", "--init-weights", apart, "--drop-weights", "*.lin_dst.*", "--predict", "c", on=two)
    assert logits("a/logits.npy") == logits("b/logits.npy") == logits("c/logits.npy")
    said = run(*gat, "--epochs", "0", "--init-weights", apart, on=two, code=1)
    assert "'conv1.lin_dst.weight' and 'conv1.lin_src.weight' of the file differ" in said and "--rename" in said and "--drop-weights" in said, said
    bare = weights("bare.safetensors", {key: value for key, value in attention.items() if "bias" not in key} | {"conv1.lin.weight": ([1, 1], [2])})
    said = run(*gat, "--epochs", "0", "--init-weights", bare, on=two, code=1)
    assert "the file has nothing for 'layers.0.bias' [1] of the model" in said and "--missing-weights GLOB" in said, said
    said = run(*gat, "--epochs", "0", "--init-weights", bare, "--missing-weights", "*.bias", "--predict", "d", on=two)
    assert "layers.0.bias is not in the file and keeps its initial value" in said, said
    assert all(abs(a - b - 0.25) < 1e-6 for a, b in zip(logits("a/logits.npy"), logits("d/logits.npy")))


if ranks == "1":
    check_names()
else:
    check_trainings()

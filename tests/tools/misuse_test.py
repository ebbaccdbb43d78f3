#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""misuse_test.py MPIRUN_SH MPIEXEC TOOLS_DIR DATA_DIR [--all]

Runs train, partition, generate and plan with options and files that are wrong, as a user would by mistake. Each run ends within a minute
with exit code 1 or 2, and its message names the option or the file; nothing of what a library says to programmers is printed, and no
unfinished file is left. Without --all, a part of the cases."""
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

mpirun_sh, mpiexec = os.path.abspath(sys.argv[1]), sys.argv[2]
tools, data_dir = (os.path.abspath(path) for path in sys.argv[3:5])
everything = "--all" in sys.argv
quick_stride = 9
forbidden = ["exception", "map::at", "vector::", "basic_string", "std::", "bad_alloc", "terminate called", "Segmentation", "\x1b", "FAILED",
             "1797693"]
environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", ASAN_OPTIONS="detect_leaks=0")
failures = []
counts = {"runs": 0, "slowest": 0.0}


def run(program, arguments, ranks=1, limit=None, seconds=60, **variables):
    """Exit code (None: it did not end in time), stdout, stderr. `limit`: of the size of a file, as `ulimit -f`."""
    command = [os.path.join(tools, program), *arguments]
    if ranks > 1:
        command = [mpirun_sh, mpiexec, str(ranks), *command]
    restrict = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
    begin = time.time()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=dict(environment, **variables), start_new_session=True, preexec_fn=restrict)
    try:
        out, err = process.communicate(timeout=seconds)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        code = None
    counts["runs"] += 1
    counts["slowest"] = max(counts["slowest"], time.time() - begin)
    return code, out.decode(errors="surrogateescape"), err.decode(errors="surrogateescape")


def complain(what, code, err):
    failures.append(what)
    print(f"FAILED: {what}: exit code {code}\n{err[-1500:]}")


def refused(program, arguments, named, ranks=1, codes=(1, 2), **more):
    """The run fails with a message that has all the texts of `named`."""
    named = [named] if isinstance(named, str) else named
    code, out, err = run(program, arguments, ranks, **more)
    what = f"{program} {' '.join(arguments)[:300]} on {ranks}"
    if code not in codes:
        return complain(what + " is not refused", code, err)
    lines = [line for line in err.splitlines() if line.startswith(program + ": ") or line.startswith("--")]
    message = lines[0] if lines else err
    for text in named:
        if text not in message:
            return complain(f"{what} does not say {text}", code, err)
    for word in forbidden:
        if word in out + err:
            return complain(f"{what} says {word}", code, err)
    if len(message) > 700:
        return complain(what + " says too much", code, err)
    left = [name for folder in os.walk(".") for name in folder[1] + folder[2] if ".tmp" in name]
    if left:
        return complain(f"{what} leaves {left}", code, err)


# ---- good files

def npy(descr, shape, values, code):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, tuple(shape))
    header += " " * ((64 - (11 + len(header)) % 64) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%d%s" % (len(values), code), *values)


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


NODES = 12
edges = [(v, (v + step) % NODES) for v in range(NODES) for step in (1, 2, 3)]
masks = {"train_mask": [v % 3 == 0 for v in range(NODES)], "val_mask": [v % 3 == 1 for v in range(NODES)],
         "test_mask": [v % 3 == 2 for v in range(NODES)]}
features = npy("<f4", (NODES, 2), [float(v % 5) for v in range(2 * NODES)], "f")
labels = npy("<i8", (NODES,), [v % 2 for v in range(NODES)], "q")
edge_index = npy("<i8", (2, len(edges)), [e[0] for e in edges] + [e[1] for e in edges], "q")


def make_inputs():
    """name -> (the argument of --dataset, the files that it needs)"""
    write("data/edge_index.npy", edge_index)
    write("data/features.npy", features)
    write("data/labels.npy", labels)
    for name, mask in masks.items():
        write(f"data/{name}.npy", npy("|b1", (NODES,), mask, "?"))
    write("list/edges.txt", "".join(f"{a} {b}\n" for a, b in edges))
    write("matrix/graph.mtx", f"%%MatrixMarket matrix coordinate pattern general\n{NODES} {NODES} {len(edges)}\n" +
          "".join(f"{a + 1} {b + 1}\n" for a, b in edges))
    write("ogb/raw/num-node-list.csv", f"{NODES}\n")
    write("ogb/raw/num-edge-list.csv", f"{len(edges)}\n")
    write("ogb/raw/edge.csv", "".join(f"{a},{b}\n" for a, b in edges))
    write("ogb/raw/node-feat.csv", "".join(f"{v}.5,1\n" for v in range(NODES)))
    write("ogb/raw/node-label.csv", "".join(f"{v % 2}\n" for v in range(NODES)))
    write("binary/raw/.keep", "")
    for name, compression in (("data", zipfile.ZIP_STORED), ("node-label", zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(f"binary/raw/{name}.npz", "w", compression) as archive:
            if name == "data":
                archive.writestr("edge_index.npy", edge_index)
                archive.writestr("num_nodes_list.npy", npy("<i8", (1,), [NODES], "q").replace(b"(1,)", b"(1,)"))
                archive.writestr("num_edges_list.npy", npy("<i8", (1,), [len(edges)], "q"))
                archive.writestr("node_feat.npy", features)
            else:
                archive.writestr("node_label.npy", npy("<i8", (NODES, 1), [v % 2 for v in range(NODES)], "q"))
    for folder in ("ogb", "binary"):
        for split, mask in (("train", "train_mask"), ("valid", "val_mask"), ("test", "test_mask")):
            write(f"{folder}/split/time/{split}.csv", "".join(f"{v}\n" for v in range(NODES) if masks[mask][v]))
    shutil.copytree(os.path.join(data_dir, "dgl/homogeneous"), "dgl")
    code, _, err = run("partition", ["data", "--parts", "2", "--method", "random", "--out", "parts"])
    assert code == 0, err
    node_data = ["--node-data", "features=data/features.npy", "labels=data/labels.npy", "train_mask=data/train_mask.npy"]
    return {"data": ("data", []), "list": ("list/edges.txt", node_data), "matrix": ("matrix/graph.mtx", node_data), "ogb": ("ogb", []),
            "binary": ("binary", []), "dgl": ("dgl", []), "parts": ("parts", [])}


# ---- what is wrong with files

def number_too_large(data):
    return re.sub(rb"\d+", b"99999999999999999999999", data, count=1)


def wrong_key(data):
    for key in (b"descr", b"MatrixMarket", b"part_graph", b"node_types", b"PK\x01\x02"):
        data = data.replace(key, b"\x1b[2Jx" + key[4:], 1)
    return data


def be_socket(path):
    socket.socket(socket.AF_UNIX).bind(path)


damages = {
    "missing": lambda path, data: None,
    "directory": lambda path, data: os.mkdir(path),
    "FIFO": lambda path, data: os.mkfifo(path),
    "socket": lambda path, data: be_socket(path),
    "device": lambda path, data: os.symlink("/dev/null", path),
    "link to itself": lambda path, data: os.symlink(os.path.abspath(path), path),
    "empty": lambda path, data: write(path, b""),
    "truncated": lambda path, data: write(path, data[:len(data) // 2 - 1]),
    "garbage": lambda path, data: write(path, bytes((i * 2654435761 >> 13) & 255 for i in range(3000))),
    "wrong type": lambda path, data: write(path, b"\x89PNG\r\n\x1a\n" if data[:1] == b"{" else b'{"a": [1, 2]}'),
    "wrong key": lambda path, data: write(path, wrong_key(data)),
    "number too large": lambda path, data: write(path, number_too_large(data)),
}
harmless = ["missing", "truncated", "wrong key", "number too large"]  # for some files: optional ones, texts


def file_cases(inputs):
    for name, (argument, more) in inputs.items():
        folder = name
        for base, _, names in sorted(os.walk(folder)):
            for file in sorted(names):
                path = os.path.join(base, file)
                if file == ".keep" or file.startswith("original_") or file.endswith((".py", ".md")):
                    continue
                for kind, damage in damages.items():
                    yield kind, path, damage, argument, more


def spoil(kind, path, damage, argument, more, ranks):
    with open(path, "rb") as file:
        good = file.read()
    os.unlink(path)
    try:
        damage(path, good)
        code, out, err = run("train", ["--dataset", argument, "--epochs", "1", "--hidden", "4", "--layers", "1", *more], ranks)
        what = f"{kind}: {path} on {ranks}"
        if code == 0 and kind in harmless + ["empty", "directory", "FIFO", "socket", "device", "link to itself", "garbage", "wrong type"]:
            optional = any(word in path for word in ("_mask", "node-feat", "edge_", "orig_", "feat", "labels", "label", ".csv"))
            if kind in harmless or optional:
                return
        if code != 1:
            return complain(what, code, err)
        message = [line for line in err.splitlines() if line.startswith("train: ")]
        if not message or argument.split("/")[0] not in message[0]:
            return complain(what + " names no file", code, err)
        for word in forbidden:
            if word in out + err:
                return complain(f"{what} says {word}", code, err)
    finally:
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)
        write(path, good)


# ---- what is wrong with options

def option_cases():
    whole = ["-1", "none", "", "1.5", "99999999999999999999999", "0x10", "1e3"]
    small = ["--graph", "karate", "--epochs", "1"]
    checkpoint = ["--checkpoint", "never"]
    needs = {"--checkpoint-every": checkpoint, "--keep-checkpoints": checkpoint, "--predict-layer": ["--predict", "never"]}
    for option in ["--layers", "--hidden", "--heads", "--num-rels", "--num-bases", "--eval-every", "--max-halo-bytes",
                   "--threads", "--seed", "--num-classes", "--nodes", "--classes", "--features", "--checkpoint-every",
                   "--keep-checkpoints", "--predict-layer", "--out-heads", "--stop-after", "--runs"]:
        for value in whole:
            yield "train", [*small, *needs.get(option, []), option, value], [option, "'" + value + "'", "expected"]
    for value in [*set(whole) - {"none"}, "4", "both"]:
        yield "train", [*small, "--residual", value], ["--residual", "'" + value + "'", "expected"]
    for value in ["8,8", "8,0,1", "8;8;1", "8,8,", "1,1,1,1"]:
        yield "train", [*small, "--model", "gat", "--heads", value], ["--heads", "expected"]
    for option in ["--norm", "--jk", "--activation"]:
        yield "train", [*small, option, "some"], [option, "'some'", "expected"]
    for value in whole:
        yield "train", ["--graph", "karate", "--epochs", value], ["--epochs", "'" + value + "'", "expected"]
        yield "partition", ["data", "--method", "random", "--out", "new", "--parts", value], ["--parts", "'" + value + "'", "expected"]
        for option in ["--seed", "--layers", "--hidden", "--threads", "--classes"]:
            yield ("partition", ["data", "--method", "random", "--out", "new", "--parts", "2", option, value],
                   [option, "'" + value + "'", "expected"])
        for option in ["--nodes", "--classes", "--features", "--seed"]:
            yield "generate", ["--out", "new", option, value], [option, "'" + value + "'", "expected"]
    for option in ["--dropout", "--input-dropout", "--attn-dropout", "--label-smoothing", "--lr", "--momentum", "--weight-decay", "--degree", "--homophily", "--train-share"]:
        for value in ["-1", "nan", "inf", "x", ""]:
            yield "train", [*small, option, value], [option, "'" + value + "'", "expected"]
    for option in ["--degree", "--homophily", "--train-share"]:
        yield "generate", ["--out", "new", option, "nan"], [option, "'nan'", "expected"]
    planned = ["--graph", "karate", "--ranks", "4", "--link", "1gbit"]
    for option in ["--scale-to-nodes", "--scale-to-edges", "--edges", "--layers"]:
        for value in whole:
            yield "plan", [*planned, option, value], [option, "'" + value + "'", "expected"]
    for option in ["--latency", "--cores", "--efficiency", "--halo-fraction"]:
        for value in ["-1", "nan", "inf", "x", ""]:
            yield "plan", [*planned, option, value], [option, "'" + value + "'", "expected"]
    for value in ["fast", "-1gbit", "0gbit", "nangbit", "1", ""]:
        yield "plan", ["--graph", "karate", "--ranks", "4", "--link", value], ["--link", "'" + value + "'", "expected a rate with its unit"]
    for value in ["much", "-1GB", "0", "64", ""]:
        yield "plan", [*planned, "--memory", value], ["--memory", "'" + value + "'", "expected a size with its unit"]
    for value in [*whole, "0"]:
        yield "plan", ["--graph", "karate", "--link", "1gbit", "--ranks", value], ["--ranks", "'" + value + "'", "expected"]
    yield "plan", ["--graph", "karate", "--ranks", "4"], ["--link: is missing", "--ranks 4"]
    yield "plan", ["--graph", "karate"], ["--ranks is required"]
    for option in ["--rates", "--json"]:
        yield "plan", [*planned, option, ""], [option + ": the path is empty"]
    for value in ["", "1,", "-1,2", "nan", "balance", "1;2"]:
        yield "train", [*small, "--class-weights", value], ["--class-weights", "'" + value + "'", "expected balanced, or a number"]
    for value in ["", "1,", "-1", "1,1", "none", "0-3"]:
        yield "train", [*small, "--splits", value], ["--splits", "'" + value + "'", "expected all, or different numbers"]
    for option in ["--mode", "--optimizer", "--partition", "--model", "--matmul-precision", "--halo-format", "--loss", "--keep", "--metric"]:
        for value in ["fast", "", "Sage\x1b[2J"]:
            yield "train", [*small, option, value], [option, "expected one of"]
    yield "train", ["--matmul-precision", "low"], ["--matmul-precision", "'low'", "expected one of highest, high, medium"]
    yield "train", ["--graph", "petersen"], ["--graph", "'petersen'", "expected one of karate, sbm"]
    for option in ["--method", "--order", "--model", "--node-ids"]:
        yield "partition", ["data", "--method", "random", "--out", "new", "--parts", "2", option, "best"], [option]
    for option in ["--dataset", "--log", "--predict", "--checkpoint", "--save-weights", "--init-weights"]:
        yield "train", ["--epochs", "1", option, ""], [option + ": the path is empty"]
    for arguments in [["data", "--out", "new", "--report", ""], ["data", "--out", ""]]:
        yield "partition", [*arguments, "--method", "random", "--parts", "2"], ["the path is empty"]
    yield "partition", ["", "--out", "new", "--method", "random", "--parts", "2"], ["the path is empty"]
    yield "generate", ["--out", ""], ["--out: the path is empty"]
    yield "train", ["--dataset", "data", "--fields", "features"], ["--fields", "'features', expected NAME=FIELD"]
    yield "train", ["--graph", "karate", "--fields", "features=x"], ["--fields", "generated graph"]
    yield "train", ["--dataset", "data", "--task", "edge", "--fields", "labels=x"], ["--fields: labels needs --task node"]
    yield "train", ["--dataset", "data", "--task", "link", "--fields", "train_mask=x"], ["--fields: train_mask needs --task node"]
    yield "train", ["--dataset", "data", "--fields", "edge_labels=x"], ["--fields: edge_labels needs --task edge"]
    yield "train", ["--dataset", "data", "--fields", "edge_split=x"], ["--fields: edge_split needs --task link or edge"]
    for option in ["--nodes", "--classes", "--features"]:
        yield "train", ["--dataset", "data", option, "10"], [option + ": needs --graph sbm"]
        yield "train", ["--graph", "karate", option, "10"], [option + ": needs --graph sbm"]
    yield "train", ["--graph", "karate", "--rename", "a=b"], ["--rename", "--init-weights"]
    yield "train", [*small, "--rename", "=x"], ["--rename", "'=x', expected FROM=TO"]
    yield "train", ["--frobnicate"], ["unknown arguments: --frobnicate"]
    yield "train", ["positional"], ["unknown arguments: positional"]
    yield "train", ["--hiden", "5", "--epoch=3", "x"], ["unknown arguments: --hiden 5 --epoch=3 x; did you mean --hidden, --epochs?"]
    yield "plan", ["--rnaks", "4"], ["unknown arguments: --rnaks; did you mean --ranks?"]
    yield "partition", ["data", "--prats", "2", "--out", "new"], ["--prats", "did you mean --parts?"]
    yield "train", ["--lr"], ["--lr"]
    yield "train", ["--resume"], ["--checkpoint"]
    yield "train", ["--predict", "never", "--predict-layer", "4"], ["there is no layer 4"]


def special_cases():
    """Limits, and files that are written."""
    small = ["--graph", "karate", "--epochs", "1"]
    yield "train", ["--nodes", "1000000000000"], ["--nodes 1000000000000", "GB"]
    yield "train", [*small, "--hidden", "1000000000"], ["--hidden 1000000000", "GB"]
    yield "train", [*small, "--hidden", "9223372036854775807"], ["--hidden 9223372036854775807", "GB"]
    yield "train", [*small, "--layers", "10000", "--hidden", "100000"], ["--layers 10000", "GB"]
    yield "train", [*small, "--layers", "100000"], ["--layers", "'100000'", "1 to 10000"]
    yield "train", [*small, "--num-classes", "1000000000000"], ["1000000000000 classes", "GB"]
    yield "train", [*small, "--model", "rgcn", "--num-rels", "100000000"], ["--num-rels: '100000000'", "from 1 to 65536"]
    yield "train", [*small, "--model", "rgcn", "--num-rels", "65536", "--hidden", "100000"], ["--num-rels 65536", "GB"]
    yield ("train", [*small, "--task", "link", "--negatives", "1048576", "--hidden", "10000"], ["a step with --negatives 1048576", "GB"])
    yield "train", [*small, "--schedule", "cosine", "--min-lr", "1"], ["--min-lr: is 1, expected at most --lr 0.01"]
    yield "train", [*small, "--schedule", "plateau", "--min-lr", "1", "--lr", "0.5"], ["--min-lr: is 1, expected at most --lr 0.5"]
    yield "train", [*small, "--threads", "1000000000"], ["--threads", "0 to 1024"]
    yield "train", ["--nodes", "20"], ["20 nodes", "16 classes"]
    yield "train", ["--classes", "1000000000"], ["classes"]
    yield "train", [*small, "--model", "gat", "--hidden", "30"], ["--hidden: is 30", "--heads 4"]
    yield "train", ["--dataset", "labels9"], ["labels9", "label of node 3 is 1000000000", "12 nodes"]
    yield "train", ["--dataset", "nolabels"], ["no node has a label"]
    yield "generate", ["--out", "new", "--nodes", "1000000000000"], ["--nodes 1000000000000", "GB"]
    planned = ["--ranks", "4", "--link", "1gbit", "--epochs", "1"]
    yield "plan", ["--dataset", "nowhere", *planned], ["nowhere"]
    yield "plan", ["--dataset", "nolabels", *planned], ["nolabels: there are no labels", "--num-classes"]
    yield "plan", ["--graph", "karate", *planned, "--json", "nowhere/plan.json"], ["nowhere/plan.json: cannot"]
    yield "plan", ["--graph", "karate", *planned, "--rates", "damaged.json"], ["damaged.json: the file is no JSON, expected a file"]
    yield "train", ["--dataset", "twice", "--category", "a", "--model", "rgcn"], ["twice/hetero.json: the file has the name 'num_nodes' twice"]
    yield "plan", ["--graph", "karate", *planned, "--rates", "nowhere/rates.json"], ["nowhere/rates.json: cannot"]
    yield "partition", ["data", "--method", "random", "--out", "new", "--parts", "100000"], ["data", "--parts 100000", "12 nodes"]
    yield "partition", ["fifo", "--method", "random", "--out", "new", "--parts", "2"], ["fifo: is a FIFO"]
    yield "partition", ["damaged.json", "--method", "random", "--out", "new", "--parts", "2"], ["damaged.json: the file is no JSON at its byte"]
    yield "train", ["--dataset", "damaged.json"], ["damaged.json: the file is no JSON at its byte"]
    yield "train", ["--dataset", "other.json"], ["other.json: has no 'graph_name'"]
    yield "train", ["--dataset", "onlyjson"], ["onlyjson/x.json: the file is no JSON"]
    for option in ["--dataset", "--init-weights", "--log", "--save-weights", "--checkpoint", "--predict"]:
        graph = ["--epochs", "1"] if option == "--dataset" else small
        yield "train", [*graph, option, "fifo"], ["fifo"]
        yield "train", [*graph, option, "nowhere/deep/file" if option not in ("--checkpoint", "--predict") else "fifo/run"], [": "]
    for option in ["--init-weights", "--save-weights", "--log"]:
        yield "train", [*small, option, "data"], ["data: ", "directory"]
    for path in ["/dev/stdin", "/dev/null", "/dev/zero"]:
        yield "train", ["--dataset", path], [path + ": is "]
        yield "train", [*small, "--init-weights", path], [path + ": is "]
    yield "train", [*small, "--save-weights", "/dev/null"], ["/dev/null: is a device"]
    yield "train", [*small, "--init-weights", "data/labels.npy"], ["data/labels.npy: "]
    yield "train", [*small, "--log", "/dev/full"], ["/dev/full: cannot write (No space left on device)"]
    for key, value, named in (("extra.batch", '{"number": 1, "loss_sum": 2.5}', "extra.batch has no number 'seeds' of 0 to"),
                              ("extra.batch", '{"number": 1, "seeds": -1, "loss_sum": 2.5}', "extra.batch has no number 'seeds'"),
                              ("extra.batch", '{"number": 1.5, "seeds": 1, "loss_sum": 2.5}', "extra.batch has no number 'number' of 1 to"),
                              ("extra.batch", '{"number": 0, "seeds": 1, "loss_sum": 2.5}', "extra.batch has no number 'number'"),
                              ("extra.batch", '{"number": 1, "seeds": 1, "loss_sum": null}', "extra.batch has no number 'loss_sum'"),
                              ("extra.batch", "[]", "extra.batch has no number 'number'"),
                              ("extra.--lr", None, "the metadata have no 'extra.--lr'"),
                              ("lr", "inf", "lr is 'inf', expected a number"),
                              ("epoch", "-1", "epoch is '-1', expected a number")):
        name = f"spoilt{abs(hash((key, value))) % 10 ** 8}"
        spoil_metadata("resume", name, key, value)
        yield ("train", ["--graph", "karate", "--hidden", "4", "--epochs", "3", "--checkpoint", name, "--resume"],
               [f"{name}/checkpoint-00000002.safetensors: {named}"])
    for rows in ("../../elsewhere", "/tmp", "", "embedding-00000002-0/../../elsewhere", ".", None):
        name = f"rows{abs(hash(rows)) % 10 ** 8}"
        spoil_metadata("rows", name, "extra.embedding", rows)
        yield ("train", ["--graph", "karate", "--hidden", "4", "--embedding", "2", "--epochs", "3", "--checkpoint", name, "--resume"],
               [f"{name}/checkpoint-00000002.safetensors: ", "extra.embedding"])
    for text, other in (('"epoch":"2"', '"epoch":"0"'), ('"lr":"0.01"', '"lr":"0.09"'), ('"seed":"0"', '"seed":"4"')):
        name = f"flipped{abs(hash(text)) % 10 ** 8}"
        shutil.copytree("resume", name)
        with open(f"{name}/checkpoint-00000002.safetensors", "rb") as file:
            data = file.read()
        assert data.count(text.encode()) == 1
        write(f"{name}/checkpoint-00000002.safetensors", data.replace(text.encode(), other.encode()))
        yield ("train", ["--graph", "karate", "--hidden", "4", "--epochs", "3", "--checkpoint", name, "--resume"],
               [f"{name}/checkpoint-00000002.safetensors: the header has the checksum"])
    for best in ["", "{", "[]", '{"train_acc": "x"}', '{"train_acc": 0.5, "val_acc": null, "test_acc": 1, "epoch": 1e999}', None]:
        name = f"resume{abs(hash(best)) % 10 ** 8}"
        spoil_checkpoint(name, best)
        yield ("train", ["--graph", "karate", "--hidden", "4", "--epochs", "3", "--checkpoint", name, "--resume"],
               [name + "/checkpoint-00000002.safetensors: extra.best has no number 'train_acc'" if best is None or "1e999" not in best
                else name + "/checkpoint-00000002.safetensors: extra.best"])


def make_special_files():
    os.mkfifo("fifo")
    shutil.copytree("data", "labels9")
    write("labels9/labels.npy", npy("<i8", (NODES,), [10 ** 9 if v == 3 else 0 for v in range(NODES)], "q"))
    shutil.copytree("data", "nolabels")
    os.unlink("nolabels/labels.npy")
    write("damaged.json", '{"graph_name": ')
    write("other.json", '{"compilerOptions": {}}')
    write("onlyjson/x.json", "{ nothing")
    write("twice/hetero.json", '{"format": "sar-dataset", "version": 1, "node_types": [{"name": "a", "num_nodes": 2, "num_nodes": 3}], "edge_types": []}')
    for name, more in (("resume", []), ("rows", ["--embedding", "2"])):
        code, _, err = run("train", ["--graph", "karate", "--hidden", "4", "--epochs", "2", "--checkpoint", name, *more])
        assert code == 0, err


def spoil_checkpoint(name, best):
    spoil_metadata("resume", name, "extra.best", best)


def spoil_metadata(good, name, key, value):
    """A copy of the checkpoint whose metadata have another value, or none, and no checksum."""
    shutil.copytree(good, name)
    path = f"{name}/checkpoint-00000002.safetensors"
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    del header["__metadata__"]["header_crc32"]
    if value is None:
        del header["__metadata__"][key]
    else:
        header["__metadata__"][key] = value
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write(path, struct.pack("<Q", len(text)) + text + data[8 + size:])


# ---- files that cannot be written to the end, links, two runs at once

def check(condition, what, code=None, err=""):
    if not condition:
        complain(what, code, err)


def test_full_disk():
    """A limit of the size of files, which MPI's own keep; `tests/core/files/file_test.cpp` has a smaller one."""
    refused("train", ["--graph", "karate", "--hidden", "2000", "--epochs", "1", "--save-weights", "w"],
            "w: cannot write (File too large)", limit=20 << 20)
    check(not os.path.exists("w"), "half a file of weights is left")
    code, out, err = run("train", ["--graph", "karate", "--epochs", "3", "--log", "/dev/full"])
    check(code == 1 and err.count("train: /dev/full: cannot write (No space left on device); the training continues without the log") == 1 and
          "epoch    3/3" in out, "a full disk for the log", code, out + err)


def test_full_output():
    """What is printed is lost: exit code 1, after the work is done."""
    for program, arguments, made in (("train", ["--graph", "karate", "--epochs", "1", "--save-weights", "printed.w"], "printed.w"),
                                     ("generate", ["--nodes", "200", "--out", "printed.g"], "printed.g"),
                                     ("partition", ["data", "--parts", "2", "--method", "random", "--out", "printed.p"], "printed.p"),
                                     ("plan", ["--help"], ""), ("train", ["--version"], "")):
        with open("/dev/full", "wb") as full:
            process = subprocess.run([os.path.join(tools, program), *arguments], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                     env=environment, timeout=60)
        err = process.stderr.decode()
        check(process.returncode == 1 and err.startswith(f"{program}: standard output: cannot write") and (not made or os.path.exists(made)),
              f"{program} {arguments[0]} > /dev/full", process.returncode, err)


def test_long_values():
    """A value of any length leaves a message in which the place and what is expected can be read."""
    long = "x" * 60000
    for program, arguments, begin, end in (("train", ["--model", long], "--model: 'xxx", "hetero-gat"),
                                           ("train", ["--epochs", long], "--epochs: 'xxx", ""),
                                           ("train", ["--" + long], "unknown arguments: --xxx", ""),
                                           ("partition", ["data", "--method", "random", "--parts", "2", "--out", "no/" + long],
                                            "partition: no/xxx", ""),
                                           ("train", ["--graph", "karate", "--init-weights", long], "train: xxx", "expected a .safetensors file")):
        code, _, err = run(program, arguments)
        check(code in (1, 2) and len(err) < 1100 and err.startswith(begin) and end in err, f"{program} {arguments[0]} with a long value", code, err)


def test_permissions():
    write("weights.mode", "old")
    os.chmod("weights.mode", 0o640)
    code, _, err = run("train", ["--graph", "karate", "--epochs", "1", "--save-weights", "weights.mode"])
    check(code == 0 and os.stat("weights.mode").st_mode & 0o777 == 0o640, "permissions of a replaced file", code, err)


def test_lost_trace():
    os.mkdir("gone")
    process = subprocess.Popen([os.path.join(tools, "train"), "--graph", "karate", "--epochs", "2000"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(environment, SAR_TRACE="gone/trace.json"))
    process.stdout.readline()
    os.rmdir("gone")
    _, err = process.communicate(timeout=60)
    err = err.decode()
    check(process.returncode == 1 and err.startswith("SAR_TRACE: ") and "gone/trace.json: cannot write (No such file or directory)" in err,
          "a trace that is lost", process.returncode, err)


def test_links():
    write("target/weights", "old")
    os.symlink("target/weights", "weights")
    code, _, err = run("train", ["--graph", "karate", "--epochs", "1", "--save-weights", "weights"])
    check(code == 0 and os.path.islink("weights") and os.path.getsize("target/weights") > 100, "weights through a link", code, err)


def test_two_runs():
    arguments = ["--graph", "karate", "--hidden", "4", "--epochs", "1000000", "--checkpoint", "shared", "--checkpoint-every", "1000"]
    first = subprocess.Popen([os.path.join(tools, "train"), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, env=environment, start_new_session=True)
    for line in first.stdout:
        if line.startswith(b"epoch"):
            break
    with open(os.devnull, "wb") as nothing:
        rest = subprocess.Popen(["cat"], stdin=first.stdout, stdout=nothing)
    try:
        refused("train", [*arguments, "--resume"], ["shared: another run uses the directory (host ", f"process {first.pid}, since "])
        refused("train", [*arguments, "--resume"], ["shared: another run uses the directory"], ranks=2)
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        rest.wait()
    shutil.rmtree("shared")
    os.mkdir("shared")
    write("shared/lock", f"host here, process {first.pid}, since long ago\n")  # of a run that was killed
    code, _, err = run("train", ["--graph", "karate", "--epochs", "2", "--checkpoint", "shared"])
    check(code == 0 and not os.path.exists("shared/lock"), "the lock of a killed run", code, err)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        inputs = make_inputs()
        for argument, more in inputs.values():
            code, _, err = run("train", ["--dataset", argument, "--epochs", "1", "--hidden", "4", "--layers", "1", *more])
            check(code == 0, f"{argument} as it is", code, err)
        make_special_files()
        test_full_disk()
        test_full_output()
        test_long_values()
        test_permissions()
        test_lost_trace()
        test_links()
        test_two_runs()
        for i, (program, arguments, named) in enumerate(special_cases()):
            refused(program, arguments, named, ranks=1 + i % 3 if everything or i % 10 == 0 else 1)
        for i, case in enumerate(option_cases()):
            if everything or i % quick_stride == 0:
                refused(*case, codes=(2,), ranks=2 if i % 54 == 0 else 1)
        for i, case in enumerate(file_cases(inputs)):
            if everything or i % (3 * quick_stride) == 0:
                spoil(*case, ranks=1 + i % 3 if everything else 1)
        os.chdir("/")
    print(f"{counts['runs']} runs, the slowest {counts['slowest']:.1f} s, {len(failures)} failures")
    sys.exit(1 if failures else 0)


main()

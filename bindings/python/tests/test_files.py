# SPDX-License-Identifier: MIT
import os
import pathlib

import numpy as np
import pytest
from conftest import random_graph

import sar
from sar.nn import functional as F


@pytest.fixture
def folder(tmp_path_factory, comm):
    """The same folder on all ranks."""
    name = str(tmp_path_factory.mktemp("shared")) if comm.rank == 0 else ""
    numbers = np.zeros(400, np.float32)
    numbers[:len(name)] = [ord(c) for c in name]
    numbers = np.asarray(sar.all_reduce(sar.tensor(numbers)))
    return "".join(chr(int(c)) for c in numbers if c)


def test_weights(folder):
    net, other = sar.nn.SAGEConv(4, 3), sar.nn.SAGEConv(4, 3)
    path = os.path.join(folder, "weights.safetensors")
    sar.save_weights(net, path)
    sar.load_weights(other, path)
    for (name, one), (_, two) in zip(net.named_parameters(), other.named_parameters()):
        np.testing.assert_array_equal(one.numpy(), two.numpy(), err_msg=name)
    with pytest.raises(sar.InputError):
        sar.load_weights(sar.nn.SAGEConv(5, 3), path)
    with pytest.raises(sar.InputError, match="nothing.safetensors"):
        sar.load_weights(net, os.path.join(folder, "nothing.safetensors"))


@pytest.mark.parametrize("sparse, width, found", [("auto", 80, True), ("auto", 8, False), (True, 8, True), (False, 80, False)])
def test_features_are_sparse_where_few_are_not_0(folder, comm, sparse, width, found):
    rows = np.zeros((12, width), np.float32)
    rows[:, 3] = np.arange(12)
    if comm.rank == 0:
        np.save(os.path.join(folder, "edge_index.npy"), np.array([np.arange(12), (np.arange(12) + 1) % 12]))
        np.save(os.path.join(folder, "features.npy"), rows)
        np.save(os.path.join(folder, "labels.npy"), np.arange(12) % 2)
        for name in ("train_mask", "val_mask", "test_mask"):
            np.save(os.path.join(folder, f"{name}.npy"), np.arange(12) > 6)
    comm.barrier()
    data = sar.load_dataset(folder, sparse_features=sparse)
    assert data.features.is_sparse == found
    np.testing.assert_array_equal(data.features, rows[data.node_ids])
    with pytest.raises(sar.InputError, match="sparse_features is 'some', expected True, False or 'auto'"):
        sar.load_dataset(folder, sparse_features="some")


def test_models(folder):
    description = {"type": "sage", "in_feats": 4, "hidden": 6, "out_feats": 2, "layers": 2, "norm": "batch"}
    net = sar.GraphModel(description)
    assert net.description["layers"] == 2
    path = os.path.join(folder, "model.safetensors")
    sar.save_model(net, path)
    again = sar.load_model(path)
    assert not again.training and again.description == net.description
    _, _, graph = random_graph()
    x = sar.tensor(graph.local_rows(np.ones((60, 4))))
    net.eval()
    np.testing.assert_array_equal(np.asarray(net(graph, x)), np.asarray(again(graph, x)))
    with pytest.raises(sar.InputError, match="hiden"):
        sar.GraphModel({**description, "hiden": 3})


def test_a_cached_model_has_the_same_results():
    description = {"type": "sage", "in_feats": 4, "hidden": 6, "out_feats": 2, "layers": 2}
    _, _, graph = random_graph()
    x = sar.tensor(graph.local_rows(np.arange(240.0).reshape(60, 4)))
    results = []
    for cached in (False, True):
        sar.manual_seed(3)
        net = sar.GraphModel(description, cached=cached)
        results += [np.array(net(graph, x)) for _ in range(2)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    x.copy_(np.zeros(x.shape))
    with pytest.raises(sar.InputError, match="SAGEConv with cached"):
        net(graph, x)


def write_dataset(folder):
    draw = np.random.default_rng(7)
    labels = np.repeat([0, 1, 2], 30)
    src = draw.integers(0, 90, 600)
    dst = np.where(draw.uniform(size=600) < 0.8, (src // 30) * 30 + draw.integers(0, 30, 600), draw.integers(0, 90, 600))
    np.save(os.path.join(folder, "edge_index.npy"), np.stack([src, dst]))
    np.save(os.path.join(folder, "features.npy"), np.eye(3)[labels] + draw.normal(size=(90, 3)))
    np.save(os.path.join(folder, "labels.npy"), labels)
    kind = draw.integers(0, 3, 90)
    for i, mask in enumerate(("train_mask", "val_mask", "test_mask")):
        np.save(os.path.join(folder, mask + ".npy"), kind == i)


def test_a_dataset(folder, comm):
    if comm.rank == 0:
        write_dataset(folder)
    comm.barrier()
    data = sar.load_dataset(folder, add_self_loops=True)
    assert data.num_classes == 3 and data.num_nodes == 90 and data.graph.num_global_edges() == 690
    assert comm.all_reduce(len(data.labels)) == 90 and data.train_mask.dtype == bool
    sar.manual_seed(0)
    net = sar.nn.GraphConv(3, 3)
    optimizer = sar.optim.Adam(net, lr=0.1)
    for _ in range(40):
        loss = F.cross_entropy(net(data.graph, data.features), data.labels, data.train_mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert F.accuracy(net(data.graph, data.features), data.labels, data.test_mask) > 0.9
    with pytest.raises(sar.InputError, match="partition is 'best'"):
        sar.load_dataset(folder, partition="best")
    with pytest.raises(sar.InputError):
        sar.load_dataset(os.path.join(folder, "nothing"))


def test_the_program_train(folder, comm):
    if comm.size > 1:
        with pytest.raises(sar.InputError, match="without mpirun"):
            sar.train(dataset=folder)
        return
    write_dataset(folder)
    try:
        log = sar.train(dataset=folder, model="gcn", layers=2, hidden=8, epochs=5, progress=False)
    except sar.InputError as error:
        if "there is no program" not in str(error) or os.environ.get("SAR_TRAIN"):
            raise
        pytest.skip(str(error))
    losses = [line["loss"] for line in log if "loss" in line]
    assert len(losses) == 5 and losses[-1] < losses[0]
    with pytest.raises(sar.TrainError, match="nothing"):
        sar.train(dataset=os.path.join(folder, "nothing"), progress=False)


def test_the_program_partition_reads_other_formats(folder, comm):
    if comm.size > 1:
        with pytest.raises(sar.InputError, match="without mpirun"):
            sar.partition("edges.txt", "out")
        return
    edges = os.path.join(folder, "edges.txt")
    with open(edges, "w") as file:
        file.writelines(f"{i} {(i * 7 + 1) % 30}\n" for i in range(30))
    with pytest.raises(sar.InputError, match=r"edges.txt is a file, expected .* sar.partition\(\) makes one of it"):
        sar.load_dataset(edges)
    out = os.path.join(folder, "parts")
    try:
        np.save(os.path.join(folder, "x.npy"), np.arange(30, dtype=np.float32)[:, None])
        np.save(os.path.join(folder, "y.npy"), np.arange(30) % 3)
        np.save(os.path.join(folder, "m.npy"), np.arange(30) < 20)
        fields = {name: os.path.join(folder, f"{file}.npy") for name, file in (("features", "x"), ("labels", "y"), ("train_mask", "m"))}
        report = sar.partition(edges, out, parts=2, method="contiguous", progress=False, node_data=fields)
    except sar.InputError as error:
        if "there is no program" not in str(error) or os.environ.get("SAR_TRAIN"):
            raise
        pytest.skip(str(error))
    assert report
    data = sar.load_dataset(out)
    src, dst = data.graph.edges()
    assert sorted(zip(src, dst)) == sorted((i, (i * 7 + 1) % 30) for i in range(30))
    np.testing.assert_array_equal(data.features, data.node_ids[:, None])
    with pytest.raises(sar.TrainError, match="nothing.txt"):
        sar.partition(os.path.join(folder, "nothing.txt"), out + "2", progress=False)


def test_the_commands_run_the_programs_of_the_package(monkeypatch, capsys):
    from sar import running

    ran = []
    monkeypatch.setattr(running.os, "execv", lambda path, words: ran.append((os.path.basename(path), words)))
    monkeypatch.setattr(running.os.path, "exists", lambda path: "plan" not in path)
    monkeypatch.setattr(running.sys, "argv", ["/venv/bin/sar-partition", "web.mtx", "--parts", "2"])
    running._command()
    assert ran == [("sar-partition", ["sar-partition", "web.mtx", "--parts", "2"])]
    monkeypatch.setattr(running.sys, "argv", ["/venv/bin/sar-plan"])
    with pytest.raises(SystemExit, match="sar-plan: the package was built without this program"):
        running._command()


def test_a_list_of_files_is_several_words():
    from sar.running import _words

    assert _words({"dataset": ["a,b.xyz", pathlib.Path("c.db")], "split_graphs": [0.5, 0.5, 0]}) == \
        ["--dataset", "a,b.xyz", "c.db", "--split-graphs", "0.5,0.5,0"]
    assert _words({"drop_weights": ["lns.*", "lin_in.*"], "lr_factors": {"embedding": 0.1, "convs": 0.5}}) == \
        ["--drop-weights", "lns.*", "lin_in.*", "--lr-factors", "embedding=0.1,convs=0.5"]
    assert _words({"sample_relation": {"cites": [3, 2], "has": [1, 1]}, "node_columns": {"key": "id", "features": ["a", "b"]}}) == \
        ["--sample-relation", "cites=3,2", "has=1,1", "--node-columns", "key=id,features=a,b"]


def test_train_starts_ranks_with_the_mpirun_beside_the_interpreter(tmp_path, monkeypatch, comm):
    if comm.size > 1:
        return
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\nfor last; do :; done\necho \"{\\\"ranks\\\": $2}\" > \"$last\"\n")
    mpirun.chmod(0o755)
    monkeypatch.setenv("SAR_TRAIN", __file__)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    assert sar.train(ranks=2, progress=False) == [{"ranks": 2}]


def test_train_reads_a_long_stderr(tmp_path, monkeypatch, comm):
    if comm.size > 1:
        return
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' 'x' >&2\necho\nprintf '\\377 wrong' >&2\nexit $SAR_TEST_CODE\n")
    program.chmod(0o755)
    monkeypatch.setenv("SAR_TRAIN", str(program))
    monkeypatch.setenv("SAR_TEST_CODE", "0")
    assert sar.train(progress=False) == []
    monkeypatch.setenv("SAR_TEST_CODE", "3")
    with pytest.raises(sar.TrainError, match="wrong$") as caught:
        sar.train(progress=False)
    assert len(str(caught.value)) > 300000


def test_a_bar_shows_the_lines_of_the_program_train():
    from sar.running import _Bar, _shown

    written = []

    class Bar:
        def __init__(self, total, unit):
            self.total, self.n = total, 0

        def set_postfix_str(self, text, refresh):
            self.text = text

        def update(self, steps):
            self.n += steps

        def close(self):
            pass

        write = staticmethod(written.append)

    bar = _Bar(Bar)
    for line in ("sage: 64 -> 16\n", "epoch    1/4  loss 4.5  train 0.2  0.06 s  peak 3.5 MB  0 s left\n",
                 "epoch    3/4  loss 2.5  train 0.6  0.29 s  peak 4.0 MB  0 s left\n"):
        bar.show(line)
    assert written == ["sage: 64 -> 16"] and (bar._bar.n, bar._bar.total) == (3, 4)
    assert bar._bar.text == "loss 2.5  train 0.6  0.29 s  peak 4.0 MB"
    with pytest.raises(sar.InputError, match="progress is 'some'"):
        _shown("some")

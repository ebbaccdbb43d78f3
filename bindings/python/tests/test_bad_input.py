# SPDX-License-Identifier: MIT

"""What users give by mistake: one exception, and objects as before; never the end of the process."""

import array
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import random_graph
from test_process import MPIRUN, alone, environment, python

import sar
from sar.nn import functional as F


@pytest.mark.parametrize("shape, error", [([-1], sar.ShapeError), ([], sar.ShapeError), ([2**62, 8], sar.ShapeError),
                                          ([2**40], sar.OutOfMemoryError)])
def test_shapes_that_no_tensor_has(shape, error):
    with pytest.raises(error):
        sar.zeros(shape)


@pytest.mark.parametrize("values", [np.array([None]), np.ones(2, [("a", "f4")]), np.array(["2020-01-01"], "datetime64[D]"), {}, "text"])
def test_values_that_are_no_numbers(values):
    with pytest.raises(sar.InputError, match="expected real numbers"):
        sar.tensor(values)


@pytest.mark.parametrize("values", [np.ones(3, ">f4"), np.ones(3, np.longdouble), np.ones(3, np.float16), np.asfortranarray(np.ones((3, 3)))])
def test_other_numbers_are_converted(values):
    np.testing.assert_array_equal(sar.tensor(values).numpy(), 1)


def test_memory_of_a_tensor_cannot_be_moved():
    own = array.array("f", [1, 2, 3])
    x = sar.tensor(own)
    with pytest.raises(BufferError):
        own.extend([0] * 100000)
    view = memoryview(bytearray(np.full(4, 5, np.float32))).cast("f")
    y = sar.tensor(view)
    with pytest.raises(BufferError):
        view.release()
    ids = array.array("q", [1, 0])
    rows = x[ids]
    ids.extend([0] * 100000)  # the ids were copied
    np.testing.assert_array_equal(x.numpy(), [1, 2, 3])
    np.testing.assert_array_equal(y.numpy(), 5)
    np.testing.assert_array_equal(rows.numpy(), [2, 1])
    del x, rows
    own.append(4)


def test_wrong_gradients_leave_a_leaf_as_it_was():
    w = sar.tensor([1.0, 2], requires_grad=True)
    (w * w).sum().backward()
    with pytest.raises(sar.ShapeError, match="gradient of shape"):
        w.grad = sar.tensor(np.ones(3))
    with pytest.raises(TypeError):
        w.grad = 3
    np.testing.assert_array_equal(w.grad.numpy(), [2, 4])
    with pytest.raises(sar.InputError, match="requires none"):
        sar.tensor([1.0]).grad = w


def test_a_module_does_not_contain_itself():
    net = sar.nn.Module()
    net.part = sar.nn.Sequential(sar.nn.Linear(2, 2))
    with pytest.raises(sar.InputError, match="contains the module itself"):
        net.me = net
    with pytest.raises(sar.InputError, match="contains the module itself"):
        net.part.net = net
    assert [name for name, _ in net.named_parameters()] == ["part.0.weight", "part.0.bias"]


def test_objects_without_their_init():
    for call in (lambda: sar.Graph.__new__(sar.Graph).num_nodes(), lambda: sar.nn.Linear.__new__(sar.nn.Linear).parameters()):
        with pytest.warns(RuntimeWarning, match="uninitialized"), pytest.raises(TypeError):
            call()


def test_wrong_kinds_of_options():
    _, _, graph = random_graph()
    with pytest.raises(TypeError):
        graph.set_options(edge_chunk="many")
    with pytest.raises(sar.InputError, match="no option 'edge_chunks'"):
        graph.set_options(edge_chunks=3)
    x = sar.tensor(np.ones((graph.num_nodes(), 2)))
    with pytest.raises(TypeError):
        F.cross_entropy(x, np.zeros(graph.num_nodes(), int), weight=["a", "b"])
    with pytest.raises(sar.ShapeError):
        F.cross_entropy(x, np.zeros(graph.num_nodes() + 1, int))
    with pytest.raises(sar.InputError, match="label 7"):
        F.cross_entropy(x, np.full(graph.num_nodes(), 7))


def test_wrong_message_functions():
    _, _, graph = random_graph()
    x = sar.tensor(np.ones((graph.num_nodes(), 2)))
    kept = []

    def keep(edges):
        kept.append(edges.src)
        return edges.src(x)

    with pytest.raises(sar.Error, match="returned no sar.Tensor"):
        graph.update_all(lambda edges: 3, "sum")
    with pytest.raises(sar.Error, match="a function of edges"):
        graph.update_all(lambda edges: (edges.src(x).requires_grad_() * 1).sum().backward(), "sum")
    drop = sar.nn.Dropout(0.5)
    for message in (lambda edges: drop(edges.src(x)), lambda edges: F.relu_dropout(edges.src(x), drop)):
        with pytest.raises(sar.InputError, match="a dropout in a message function"):
            graph.update_all(message, "sum")
    drop.eval()
    assert np.array_equal(graph.update_all(lambda edges: drop(edges.src(x)), "sum"), graph.update_all(sar.fn.copy_u(x), "sum"))
    graph.update_all(keep, "sum")
    with pytest.raises(sar.Error, match="after it has returned"):
        kept[0](x)


@alone
def test_a_graph_after_its_communicator():
    pytest.importorskip("mpi4py")
    run = python("from mpi4py import MPI\nimport sar\nown = MPI.COMM_WORLD.Dup()\ng = sar.Graph(([0, 1], [1, 0]), 2, comm=own)\nown.Free()\n"
                 "x = sar.tensor(g.local_rows([[1.0], [2.0]]))\nassert g.update_all(sar.fn.copy_u(x), 'sum').item() == 2 - g.comm.rank\n"
                 "try:\n    sar.Communicator(own)\nexcept sar.CommunicationError as error:\n    print(error)\n"
                 "MPI.Finalize()\ntry:\n    g.update_all(sar.fn.copy_u(x), 'sum')\nexcept sar.CommunicationError as error:\n    print(error)\n", 2)
    assert run.returncode == 0 and run.stdout.count("MPI, which is finalized already") == 2, run.stdout + run.stderr
    assert run.stdout.count("MPI_COMM_NULL") == 2


ENDLESS = ("import os, signal, sys, threading, time, numpy as np, sar\ng = sar.Graph(([0, 1, 2], [1, 2, 0]), 3)\n"
           "x = sar.tensor(g.local_rows(np.ones((3, 1))))\n{}\nprint('begun', flush=True)\nwhile True:\n    g.update_all(sar.fn.copy_u(x), 'sum')\n")


@alone
def test_a_rank_that_raises_while_others_compute():
    run = python(ENDLESS.format("message = lambda e: 1 / 0 if g.comm.rank == 1 and e.num_edges else e.src(x)\n"
                                "try:\n    g.update_all(message, 'sum')\nexcept sar.Error as error:\n    print(error, flush=True)\n    sys.exit(3)"), 2)
    assert run.returncode == 3 and run.stdout.count("ZeroDivisionError") == 2, run.stdout + run.stderr


@alone
def test_an_interrupt_of_one_rank_ends_all():
    run = python(ENDLESS.format("if g.comm.rank == 1:\n    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()"), 2)
    assert run.returncode != 0 and "KeyboardInterrupt" in run.stderr, run.stderr


@alone
def test_an_interrupt_of_mpirun_ends_all():
    process = subprocess.Popen([*MPIRUN, "2", sys.executable, "-c", ENDLESS.format("")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment(), start_new_session=True)
    try:
        assert "begun" in process.stdout.readline()  # of both ranks, perhaps in one line
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode != 0

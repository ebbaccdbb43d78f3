# SPDX-License-Identifier: MIT

"""What ends a process, threads and pickles."""

import os
import pathlib
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import random_graph

import sar

ALONE = int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", "1"))) == 1
alone = pytest.mark.skipif(not ALONE, reason="starts processes of its own")
MPIRUN = os.environ.get("SAR_TEST_MPIRUN", "mpirun -n").split()


def environment():
    """Of programs that are no part of this one's MPI."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("OMPI_COMM", "PMIX_", "PMI_", "OMPI_MCA_ess", "OMPI_MCA_orte", "OMPI_UNIVERSE"))}
    own["PYTHONPATH"] = str(pathlib.Path(sar.__file__).resolve().parents[1]) if "build" not in sar.__path__[0] else os.path.dirname(sar.__path__[0])
    return own


def python(code, ranks=1, **options):
    words = [sys.executable, "-c", code]
    words = words if ranks == 1 else [*MPIRUN, str(ranks), *words]
    return subprocess.run(words, capture_output=True, text=True, timeout=100, env=environment(), **options)


@pytest.mark.parametrize("make", [lambda: random_graph()[2], sar.get_communicator, lambda: sar.optim.SGD(sar.nn.Linear(2, 2))])
def test_what_cannot_be_pickled(make):
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(make())


THREAD = """
import threading
import numpy as np
import sar
from sar.nn import functional as F

def losses():
    sar.manual_seed(0)
    graph = sar.Graph((np.arange(50) % 30, np.arange(50) * 7 % 30), 30)
    x = sar.tensor(graph.local_rows(np.random.default_rng(0).normal(size=(30, 4))))
    net = sar.nn.SAGEConv(4, 3)
    optimizer = sar.optim.Adam(net, lr=0.1)
    found = []
    for _ in range(4):
        loss = F.cross_entropy(net(graph, x), graph.local_rows(np.arange(30) % 3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found

of_thread = []
thread = threading.Thread(target=lambda: of_thread.extend(losses()))
if FIRST:
    sar.get_communicator()
thread.start()
thread.join()
assert of_thread == losses(), of_thread
print("same")
"""


@alone
@pytest.mark.parametrize("first", [True, False])
def test_a_helper_thread_trains(first):
    """Whichever thread has initialized MPI."""
    run = python(THREAD.replace("FIRST", str(first)))
    assert run.stdout.strip() == "same", run.stderr


def test_a_helper_thread_of_this_process_trains(comm):
    found = []
    x = sar.tensor([[1.0 + comm.rank]], requires_grad=True)

    def work():
        sar.sum(x * x).backward()
        found.append(float(sar.sum(x).item()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [sum(1.0 + rank for rank in range(comm.size))] and x.grad.item() == 2 * (1 + comm.rank)


def test_two_threads():
    started, errors = threading.Event(), []
    x = sar.tensor(np.ones((10, 2)))
    _, _, graph = random_graph()
    rows = sar.tensor(np.ones((graph.num_nodes(), 1)))

    def other():
        started.wait()
        try:
            x + x
        except sar.Error as error:
            errors.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()

    def message(edges):
        started.set()
        if not errors:
            time.sleep(0.2)
        return edges.src(rows)

    graph.update_all(message, "sum")
    thread.join()
    assert errors and "a call of another thread has not returned" in errors[0]
    x + x


@alone
def test_a_program_with_mpi4py():
    pytest.importorskip("mpi4py")
    run = python("from mpi4py import MPI\nimport sar\ncomm = sar.init(MPI.COMM_WORLD)\n"
                 "g = sar.Graph(([0, 1], [1, 0]), 2, comm=MPI.COMM_WORLD)\nprint(comm.size, g.num_global_edges())\n", 2)
    assert run.returncode == 0 and "".join(run.stdout.split()) == "2222", run.stderr


@alone
def test_a_rank_that_raises_ends_the_others():
    run = python("import sar\ncomm = sar.get_communicator()\nif comm.rank == 1:\n    raise KeyError('mine')\ncomm.barrier()\n", 2)
    assert run.returncode != 0 and "KeyError: 'mine'" in run.stderr


@alone
def test_the_same_exception_on_all_ranks():
    run = python("import sar\ncomm = sar.get_communicator()\n"
                 "def body():\n    if comm.rank == 1:\n        raise ValueError('only here')\n    comm.barrier()\n"
                 "try:\n    comm.agree(body)\nexcept sar.Error as error:\n    print(error)\n", 2)
    assert run.returncode == 0 and run.stdout.count("rank 1: ValueError: only here") == 2, run.stdout + run.stderr


@alone
def test_an_interrupt_is_raised_after_the_call():
    run = python("import os, signal, threading, sar\nx = sar.tensor([1.0])\n"
                 "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                 "try:\n    while True:\n        x + x\nexcept KeyboardInterrupt:\n    print('ended', (x + x).item())\n")
    assert run.stdout.strip() == "ended 2.0", run.stderr


@alone
def test_objects_outlive_the_end():
    run = python("import sar\nimport builtins\nbuiltins.kept = [sar.Graph(([0], [0]), 1), sar.nn.BatchNorm1d(2)]\n"
                 "w = sar.tensor([1.0], requires_grad=True)\nbuiltins.kept.append(w * w)\n")
    assert run.returncode == 0 and not run.stderr, run.stderr


@alone
def test_selftest():
    run = python("import runpy\nrunpy.run_module('sar.selftest', run_name='__main__')\n", 2)
    assert run.returncode == 0 and "passed" in run.stdout, run.stdout + run.stderr


@alone
def test_import_does_not_start_mpi():
    run = python("import sar\nimport ctypes, sys\nflag = ctypes.c_int(7)\nctypes.CDLL(sar._sar.__file__).MPI_Initialized(ctypes.byref(flag))\n"
                 "print('mpi4py' in sys.modules, flag.value)\n")
    assert run.stdout.split() == ["False", "0"], run.stdout + run.stderr


FORK = ("import os, sys, numpy as np, sar\ng = sar.Graph(([0, 1, 2], [1, 2, 0]), 3)\nnet = sar.nn.SAGEConv(1, 1)\n"
        "x = sar.tensor(g.local_rows(np.ones((3, 1))))\nnet(g, x)\nsys.stdout.flush()\nchild = os.fork()\n"
        "if child == 0:\n    for call in (lambda: net(g, x), g.comm.barrier, sar.Communicator.self):\n        try:\n            call()\n"
        "        except sar.CommunicationError as error:\n            assert 'a fork of the process' in str(error)\n            print('refused', flush=True)\n"
        "    sys.exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\ng.comm.barrier()\nnet(g, x)\nprint('whole')\n")


@alone
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_fork_cannot_use_the_communicators_of_its_parent(ranks):
    run = python(FORK, ranks)
    assert run.returncode == 0 and run.stdout.count("refused") == 3 * ranks and run.stdout.count("whole") == ranks, run.stdout + run.stderr

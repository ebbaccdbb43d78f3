# SPDX-License-Identifier: MIT

"""python -m sar.selftest, also under mpirun: checks that this copy of sar computes what it should here."""

import os
import subprocess
from collections.abc import Iterator

import numpy as np

import sar
from sar.nn import functional as F
from sar.running import _environment, _of_package


def checks() -> Iterator[tuple[str, bool]]:
    """Names of checks, and whether they hold on this rank."""
    draw = np.random.default_rng(0)
    src, dst = draw.integers(0, 40, 200), draw.integers(0, 40, 200)
    x = draw.normal(size=(40, 4)).astype(np.float32)
    graph = sar.Graph((src, dst), 40)
    rows = sar.tensor(graph.local_rows(x), requires_grad=True)
    y = graph.update_all(sar.fn.copy_u(rows), sar.fn.sum)
    expected = np.zeros((40, 4))
    np.add.at(expected, dst, x[src])
    yield "sums over edges", np.allclose(y.numpy(), graph.local_rows(expected), atol=1e-4)
    sar.sum(y * y).backward()
    gradient = np.zeros((40, 4))
    np.add.at(gradient, src, 2 * expected[dst])
    yield "their gradient", np.allclose(np.asarray(rows.grad), graph.local_rows(gradient), atol=1e-3)
    labels = (x[:, 0] > 0).astype(int)
    sar.manual_seed(0)
    net = sar.nn.SAGEConv(4, 2)
    optimizer = sar.optim.Adam(net, lr=0.1)
    losses = []
    for _ in range(30):
        loss = F.cross_entropy(net(graph, rows.detach()), graph.local_rows(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    yield "a training", losses[-1] < 0.5 * losses[0]
    sar.compare_params(net)
    yield "equal parameters on all ranks", True
    if sar.get_communicator().rank == 0:
        programs = [path for path in map(_of_package, ("train", "partition", "plan")) if os.path.exists(path)]
        starts = [subprocess.run([path, "--help"], env=_environment(), stdout=subprocess.DEVNULL).returncode == 0 for path in programs]
        yield "programs that start", all(starts)
    else:
        yield "programs that start", True


def main() -> None:
    """Runs the checks; raises SystemExit(1) on all ranks if one fails on any."""
    comm = sar.get_communicator()
    count = failed = 0
    for name, holds in checks():
        count += 1
        if comm.all_reduce(0 if holds else 1) > 0:
            failed += 1
            if comm.rank == 0:
                print(f"sar.selftest: failed: {name}")
    if failed:
        raise SystemExit(1)
    if comm.rank == 0:
        print(f"sar.selftest: {count} checks passed on {comm.size} ranks with {sar.mpi_library}")


if __name__ == "__main__":
    main()

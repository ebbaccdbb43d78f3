# SPDX-License-Identifier: MIT

"""Pictures of trainings and graphs, with matplotlib, which is imported at the first use.

Each function draws into `ax`, or into a new figure, and returns the axes. Of the collective ones, only rank 0 draws; the
other ranks return None. In a program without a display, save the picture: ax.figure.savefig("loss.png").
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from . import _sar
from ._sar import InputError

Log: TypeAlias = "str | os.PathLike[str] | Iterable[Mapping[str, Any]]"
_COLORS = {"compute": "#7da7d9", "communication": "#f2b84b", "wait": "#d9534f", "host": "#b9a5d6"}


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError("sar.plot needs the package matplotlib: pip install matplotlib") from None
    return pyplot.subplots()[1]


def _lines(log: Log) -> list[Mapping[str, Any]]:
    if isinstance(log, (str, os.PathLike)):
        with open(log) as file:
            log = [json.loads(line) for line in file]
    epochs = [line for line in log if "epoch" in line]
    if not epochs:
        raise InputError("the log has no lines of epochs")
    return epochs


def learning_curves(log: Log, keys: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Local. The loss over the epochs, and each metric on an axis of its own at the right.

    log: what sar.train() returns, the file of train --log, or a list of dicts with "epoch" of a loop of yours. keys: names
    of its values; by default "loss" and all metrics, as "val_acc".
    """
    epochs = _lines(log)
    if keys is None:
        keys = ["loss", *sorted({key for line in epochs for key in line if key.startswith(("train_", "val_", "test_"))})]
    ax = _axes(ax)
    ax.set_xlabel("epoch")
    right = None
    for i, key in enumerate(keys):
        points = [(line["epoch"], line[key]) for line in epochs if line.get(key) is not None]
        if not points:
            raise InputError(f"the log has no '{key}': it has {sorted(epochs[0])}")
        place = ax
        if key != "loss" and "loss" in keys:
            right = ax.twinx() if right is None else right
            place = right
        place.plot(*zip(*points), label=key, color=f"C{i}")
    if "loss" in keys:
        ax.set_ylabel("loss")
    drawn = [line for each in (ax, right) if each is not None for line in each.get_lines()]
    ax.legend(drawn, [line.get_label() for line in drawn])
    return ax


def degree_histogram(graph: _sar.GraphBase, ax: Any = None) -> Any:
    """Collective. How many nodes of the whole graph have in-degree 0, 1, 2 to 3, 4 to 7, and so on."""
    degrees = np.asarray(graph.in_degrees())
    comm = graph.comm
    largest = int(comm.all_reduce(float(degrees.max()) if len(degrees) else 0.0, "max"))
    begins = [0, *(1 << k for k in range(largest.bit_length()))]
    own = np.histogram(degrees, [*begins, 1 << largest.bit_length()])[0]
    counts = [int(comm.all_reduce(float(count))) for count in own]
    if comm.rank != 0:
        return None
    ax = _axes(ax)
    names = [str(begin) if begin < 2 else f"{begin}-{2 * begin - 1}" for begin in begins]
    ax.bar(range(len(counts)), counts)
    ax.set_xticks(range(len(counts)), names, rotation=45)
    ax.set_xlabel("in-degree")
    ax.set_ylabel("nodes")
    return ax


def memory(comm: _sar.Communicator | None = None, ax: Any = None) -> Any:
    """Collective. The largest memory of tensors and graphs so far of each rank, sar.peak_bytes(), in megabytes."""
    comm = _sar.get_communicator() if comm is None else comm
    megabytes = np.zeros(comm.size)
    megabytes[comm.rank] = _sar.peak_bytes() / 1e6
    megabytes = np.asarray(_sar.all_reduce(_sar.tensor(megabytes), comm=comm))
    if comm.rank != 0:
        return None
    ax = _axes(ax)
    ax.bar(range(comm.size), megabytes)
    ax.set_xticks(range(comm.size))
    ax.set_xlabel("rank")
    ax.set_ylabel("peak memory in MB")
    return ax


def timeline(path: str | os.PathLike[str], begin: float | None = None, end: float | None = None, ax: Any = None) -> Any:
    """Local. What each rank computes, communicates and waits for, of the file of a sar.Trace or of SAR_TRACE.

    begin, end: seconds since the start of the trace. Scopes within others are drawn over them.
    """
    with open(path) as file:
        try:
            events = json.load(file)["traceEvents"]
            threads = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["args"].get("name", "").startswith("thread")}
            scopes = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) in threads]
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: expected the file of a trace") from None
    scopes = [e for e in scopes if (begin is None or (e["ts"] + e["dur"]) * 1e-6 >= begin) and (end is None or e["ts"] * 1e-6 <= end)]
    if not scopes:
        raise InputError(f"{path}: the trace has no scopes between begin and end")
    ax = _axes(ax)
    lanes = {lane: i for i, lane in enumerate(sorted({(e["pid"], e["tid"]) for e in scopes}))}
    for kind, color in _COLORS.items():
        label: str | None = kind
        for lane, i in lanes.items():
            bars = [(e["ts"] * 1e-6, e["dur"] * 1e-6) for e in scopes if (e["pid"], e["tid"]) == lane and e["cat"] == kind]
            if bars:
                ax.broken_barh(bars, (i - 0.4, 0.8), color=color, label=label)
                label = None
    ax.set_yticks(range(len(lanes)), [f"rank {rank}" + (f", thread {thread}" if thread else "") for rank, thread in lanes])
    ax.invert_yaxis()
    ax.set_xlim(begin, end)
    ax.set_xlabel("seconds")
    ax.legend()
    return ax

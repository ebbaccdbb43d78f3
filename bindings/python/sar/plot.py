# SPDX-License-Identifier: MIT

"""Pictures of trainings and graphs, with matplotlib, which is imported at the first use.

Each function draws into `ax`, or into a new figure, and returns the axes. Of the collective ones, only rank 0 draws; the
other ranks return None. In a program without a display, save the picture: ax.figure.savefig("loss.png").
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

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

        >>> ax = sar.plot.learning_curves([{"epoch": 1, "loss": 1.9}, {"epoch": 2, "loss": 1.2}])
        >>> ax.get_xlabel()
        'epoch'
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
    """Collective. How many nodes of the whole graph have in-degree 0, 1, 2 to 3, 4 to 7, and so on.

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3)
        >>> ax = sar.plot.degree_histogram(graph)
        >>> ax.get_ylabel()
        'nodes'
    """
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


_TYPES = ["#7da7d9", "#f2b84b", "#8fbf7f", "#d98880", "#b9a5d6", "#a5a5a5"]  # colors of node types


def _whole(graph: _sar.GraphBase, everywhere: bool) -> tuple[list[tuple[str, int]], NDArray[np.int64]]:
    """The types and ids of nodes, and the places of the ends of edges among them: of this rank, or, collectively, of all ranks."""
    def of_ranks(rows: Any) -> NDArray[np.int64]:
        return np.asarray(graph.comm.all_gather(rows) if everywhere else rows).astype(np.int64)

    nodes: list[tuple[str, int]] = []
    place: dict[tuple[str, int], int] = {}
    ends = [np.zeros((2, 0), np.int64)]
    for ntype in graph.ntypes:
        for node in np.sort(of_ranks(graph.node_ids(ntype))).tolist():
            place[ntype, node] = len(nodes)
            nodes.append((ntype, node))
    for etype in graph.canonical_etypes:
        src, dst = (of_ranks(ids).tolist() for ids in graph.edges(None if len(graph.canonical_etypes) == 1 else etype))
        ends.append(np.array([[place[etype[0], u] for u in src], [place[etype[2], v] for v in dst]], np.int64).reshape(2, -1))
    return nodes, np.concatenate(ends, 1)


def _layout(count: int, ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Positions of nodes in the unit square: neighbors attract each other, and all nodes repel each other (Fruchterman and Reingold)."""
    src, dst = ends
    turn = 2 * np.pi * np.arange(count) / max(count, 1)
    at, near = np.stack([np.cos(turn), np.sin(turn)], 1), 2 / np.sqrt(max(count, 1))
    for step in range(150):
        between = at[:, None] - at
        force = (between * (near**2 / ((between**2).sum(-1) + 1e-6))[..., None]).sum(1)
        pull = (at[src] - at[dst]) * (np.linalg.norm(at[src] - at[dst], axis=1) / near)[:, None]
        np.add.at(force, src, -pull)
        np.add.at(force, dst, pull)
        length = np.linalg.norm(force, axis=1, keepdims=True) + 1e-9
        at = at + force / length * np.minimum(length, 0.1 * (1 - step / 150))
    at = at - at.min(0) if count else at
    return at / max(float(at.max()) if count else 0.0, 1e-9)


def _svg(graph: _sar.GraphBase, most: int = 60) -> str:
    """Local. A picture of a graph that is whole on this rank and has at most so many nodes and four times as many edges; "" for others."""
    if graph.comm.size > 1 or isinstance(graph, _sar.Block) or graph.num_global_nodes() > most or graph.num_global_edges() > 4 * most:
        return ""
    nodes, ends = _whole(graph, everywhere=False)
    at = 20 + 360 * _layout(len(nodes), ends)
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400" font-size="9" text-anchor="middle"><defs><marker id="sar-tip" '
             'viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" fill="#888"/></marker></defs>']
    for u, v in ends.T:
        (x, y), (to_x, to_y) = at[u], at[v]
        length = max(float(np.hypot(to_x - x, to_y - y)), 1e-9)
        if u == v:
            lines.append(f'<circle cx="{x:.0f}" cy="{y - 13:.0f}" r="6" fill="none" stroke="#888"/>')
            continue
        to_x, to_y = to_x - 10 * (to_x - x) / length, to_y - 10 * (to_y - y) / length
        lines.append(f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{to_x:.0f}" y2="{to_y:.0f}" stroke="#888" marker-end="url(#sar-tip)"/>')
    for (ntype, node), (x, y) in zip(nodes, at):
        color = _TYPES[graph.ntypes.index(ntype) % len(_TYPES)]
        lines.append(f'<g><title>{html.escape(ntype)} {node}</title><circle cx="{x:.0f}" cy="{y:.0f}" r="9" fill="{color}"/>'
                     f'<text x="{x:.0f}" y="{y + 3:.0f}">{node}</text></g>')
    return "".join(lines) + "</svg>"


def graph(graph: _sar.GraphBase, ax: Any = None) -> Any:
    """Collective. The nodes, with their ids and a color for each type, and the edges of a graph of at most 500 nodes.

    A notebook shows such a picture of a graph of at most 60 nodes that one process has: `graph` as the last line of a cell.

        >>> graph = sar.Graph(([0, 1, 2], [1, 2, 0]), num_nodes=3)
        >>> ax = sar.plot.graph(graph)
        >>> ax.figure.savefig("graph.png")
    """
    if graph.num_global_nodes() > 500:
        raise InputError(f"a picture of a graph of {graph.num_global_nodes()} nodes, expected at most 500: sar.subgraph() takes some")
    nodes, ends = _whole(graph, everywhere=True)
    if graph.comm.rank != 0:
        return None
    ax, at = _axes(ax), _layout(len(nodes), ends)
    for u, v in ends.T:
        ax.annotate("", at[v], at[u], arrowprops={"arrowstyle": "->", "color": "#888888", "shrinkA": 6, "shrinkB": 6})
    for i, ntype in enumerate(graph.ntypes):
        mine = [place for place, (of, _) in enumerate(nodes) if of == ntype]
        ax.scatter(*at[mine].T, s=120, color=_TYPES[i % len(_TYPES)], label=ntype, zorder=2)
    for (_, node), (x, y) in zip(nodes, at):
        ax.text(x, y, str(node), ha="center", va="center", fontsize=7, zorder=3)
    if len(graph.ntypes) > 1:
        ax.legend()
    ax.set_axis_off()
    return ax


def memory(comm: _sar.Communicator | None = None, ax: Any = None) -> Any:
    """Collective. The largest memory of tensors and graphs so far of each rank, sar.peak_bytes(), in megabytes.

        >>> ax = sar.plot.memory()
        >>> ax.get_ylabel()
        'peak memory in MB'
    """
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

        >>> with sar.Trace("step.json"):
        ...     y = sar.nn.Linear(2, 3)(sar.ones((4, 2)))
        ...
        >>> ax = sar.plot.timeline("step.json")
        >>> ax.get_xlabel()
        'seconds'
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

# SPDX-License-Identifier: MIT

"""The programs train, partition and plan, called from Python, and as commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from . import _sar
from ._sar import Error, InputError


class TrainError(Error):
    """The program train, or partition, has failed; its text is the program's."""


def _of_package(name: str) -> str:
    """Where the package has a program: beside its extension, which in an editable installation is not beside this file."""
    return os.path.join(os.path.dirname(_sar.__file__), "bin", f"sar-{name}")


def _program(name: str = "train") -> str:
    variable = f"SAR_{name.upper()}"
    for candidate in (os.environ.get(variable), _of_package(name), shutil.which(f"sar-{name}")):
        if candidate and os.path.exists(candidate):
            return candidate
    raise InputError(f"there is no program sar-{name}: the package was built without it; set {variable} to its path")


def _command() -> None:
    """The commands sar-train, sar-partition and sar-plan: the program of the package in place of the interpreter."""
    name = os.path.basename(sys.argv[0]).partition(".")[0].removeprefix("sar-")
    program = _of_package(name)
    if not os.path.exists(program):
        sys.exit(f"sar-{name}: the package was built without this program")
    os.execv(program, [f"sar-{name}", *sys.argv[1:]])


def _mpirun() -> str:
    """That of the MPICH which pip installed beside this interpreter, or else the system's."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpirun")
    return beside if os.path.exists(beside) else "mpirun"


# Options whose list, or whose pairs, are several words; of the others they are one word with commas.
_SEVERAL = ("dataset", "valid_file", "test_file", "watch_file", "drop_weights", "missing_weights", "reverse_relation",
            "fields", "rename", "node_data", "sample_relation", "edges")


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _words(options: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for key, value in options.items():
        if value is None or value is False or (isinstance(value, (list, tuple, dict)) and not value):
            continue
        words.append("--" + key.replace("_", "-"))
        if isinstance(value, dict):
            value = [f"{name}={_text(each)}" for name, each in value.items()]
        if key in _SEVERAL and isinstance(value, (list, tuple)):
            words += map(_text, value)
        elif value is not True:
            words.append(_text(value))
    return words


def _environment() -> dict[str, str]:
    """Without what MPI has told this process, which would make the program a part of it."""
    own = ("OMPI_COMM_WORLD", "OMPI_UNIVERSE", "OMPI_MCA_ess", "OMPI_MCA_orte", "OMPI_MCA_pmix", "OMPI_FILE", "OMPI_APP",
           "OMPI_FIRST", "OMPI_NUM", "OMPI_ARGV", "OMPI_COMMAND", "PMIX_", "PMI_", "HYDI_")
    return {key: value for key, value in os.environ.items() if not key.startswith(own)}


class _Lines:
    """Shows the program's lines as they come."""

    def show(self, line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    def close(self) -> None:
        pass


class _Bar:
    """Shows the epochs as a bar of tqdm, with the program's numbers beside it, and the other lines above it."""

    def __init__(self, bar: Any) -> None:
        self._make: Any = bar
        self._bar: Any = None

    def show(self, line: str) -> None:
        epoch = re.match(r"epoch +(\d+)/(\d+) +(.*?)(?:  (?:\S+ )+left)?$", line.rstrip())
        if epoch is None:
            self._make.write(line.rstrip())
            return
        if self._bar is None:
            self._bar = self._make(total=int(epoch[2]), unit="epoch")
        self._bar.set_postfix_str(epoch[3], refresh=False)
        self._bar.update(int(epoch[1]) - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _shown(progress: bool | str) -> _Lines | _Bar | None:
    if progress is True:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped]

            return _Bar(tqdm)
        except ImportError:
            pass
    elif progress not in (False, "lines"):
        raise InputError(f"progress is {progress!r}, expected True, False or 'lines'")
    return _Lines() if progress else None


def train(*, ranks: int = 1, mpirun: Sequence[str] | None = None, progress: bool | str = True, **options: Any) -> list[dict[str, Any]]:
    """Runs the program train (train --help) on `ranks` ranks of its own and returns its log: a dict for each line.

        log = sar.train(dataset="cora", model="gcn", layers=2, epochs=200, ranks=2)
        losses = [line["loss"] for line in log if "loss" in line]

    Options have the program's names with underscores; True gives one without a value, a list several values, a dict pairs
    NAME=VALUE, such as node_data={"features": "x.npy"}. progress shows a bar of tqdm, where
    that is installed, or else prints the program's lines as they come, as progress="lines" does. The log is a table for
    pandas: pandas.DataFrame([line for line in log if "epoch" in line]). Raises sar.TrainError with the program's message
    if it fails. mpirun: the words that start ranks; by default the mpirun beside the interpreter, or that of the system.
    Not under mpirun: there the program itself is started.

        >>> np.save("edge_index.npy", [[0, 1, 2], [1, 2, 0]])
        >>> np.save("features.npy", np.ones((3, 4), np.float32))
        >>> np.save("labels.npy", [0, 1, 0])
        >>> for name in ("train_mask", "val_mask", "test_mask"):
        ...     np.save(name, [True, True, True])
        ...
        >>> log = sar.train(dataset=".", model="gcn", layers=1, epochs=3, progress=False)
        >>> len([line for line in log if "epoch" in line])
        3
    """
    _require_alone("train")
    with tempfile.TemporaryDirectory() as folder:
        log = options.pop("log", None) or os.path.join(folder, "log.jsonl")
        _run([_program(), *_words({**options, "log": log})], ranks, mpirun, progress, folder)
        if not os.path.exists(log):
            return []
        with open(log) as lines:
            return [json.loads(line) for line in lines]


def partition(input: str | os.PathLike[str], out: str | os.PathLike[str], *, parts: int = 1, ranks: int = 1, mpirun: Sequence[str] | None = None,
              progress: bool | str = True, **options: Any) -> Any:
    """Runs the program partition (partition --help) on `ranks` ranks of its own: reads a graph of any format that train reads (an edge
    list, Matrix Market, a CSV, OGB's folders, archives of NumPy), and writes the partition directory `out`, which load_dataset()
    reads on any number of ranks up to `parts`. Returns the program's report, a dict.

        sar.partition("web.mtx.gz", "web", parts=2)
        data = sar.load_dataset("web")

    Options are given as to train(), such as node_data={"features": "x.npy"}. Raises sar.TrainError with the program's message if it fails. Not under
    mpirun.

        >>> np.savetxt("ring.csv", [[0, 1], [1, 2], [2, 0]], "%d", ",", header="src,dst", comments="")
        >>> report = sar.partition("ring.csv", "ring", progress=False)
        >>> report["num_nodes"], report["num_edges"]
        (3, 3)
    """
    _require_alone("partition")
    with tempfile.TemporaryDirectory() as folder:
        report = options.pop("report", None) or os.path.join(folder, "report.json")
        words = _words({**options, "parts": parts, "out": out, "report": report})
        _run([_program("partition"), os.fspath(input), *words], ranks, mpirun, progress, folder)
        with open(report) as text:
            return json.load(text)


def _require_alone(name: str) -> None:
    if int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", "1"))) > 1:
        raise InputError(f"sar.{name}() starts ranks of its own: call it from a program that was started without mpirun")


def _run(words: list[str], ranks: int, mpirun: Sequence[str] | None, progress: bool | str, folder: str) -> None:
    """Runs a program and shows its lines."""
    shown = _shown(progress)
    if ranks > 1:
        words = [*(mpirun or [_mpirun()]), "-n", str(ranks), *words]
    errors = os.path.join(folder, "stderr")  # a file, because a pipe that nobody reads holds 64 KB
    with open(errors, "wb") as stderr:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace", env=_environment())
    try:
        for line in process.stdout or ():
            if shown:
                shown.show(line)
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        if shown:
            shown.close()
    if code != 0:
        with open(errors, errors="replace") as text:
            raise TrainError(text.read().strip() or f"the program {os.path.basename(words[0])} ended with code {code}")

# SPDX-License-Identifier: MIT

"""The program train, called from Python."""

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

from ._sar import Error, InputError


class TrainError(Error):
    """The program train has failed; its text is the program's."""


def _program() -> str:
    here = os.path.join(os.path.dirname(__file__), "bin", "sar-train")
    for candidate in (os.environ.get("SAR_TRAIN"), here, shutil.which("sar-train")):
        if candidate and os.path.exists(candidate):
            return candidate
    raise InputError("there is no program sar-train: the package was built without it; set SAR_TRAIN to its path")


def _mpirun() -> str:
    """That of the MPICH which pip installed beside this interpreter, or else the system's."""
    beside = os.path.join(os.path.dirname(sys.executable), "mpirun")
    return beside if os.path.exists(beside) else "mpirun"


def _words(options: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for key, value in options.items():
        option = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        words.append(option)
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else os.fspath(value)
                         if isinstance(value, os.PathLike) else str(value))
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

    Options have the program's names with underscores; True gives one without a value. progress shows a bar of tqdm, where
    that is installed, or else prints the program's lines as they come, as progress="lines" does. The log is a table for
    pandas: pandas.DataFrame([line for line in log if "epoch" in line]). Raises sar.TrainError with the program's message
    if it fails. mpirun: the words that start ranks; by default the mpirun beside the interpreter, or that of the system.
    Not under mpirun: there the program itself is started.
    """
    if int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", "1"))) > 1:
        raise InputError("sar.train() starts ranks of its own: call it from a program that was started without mpirun")
    shown = _shown(progress)
    with tempfile.TemporaryDirectory() as folder:
        log = options.pop("log", None) or os.path.join(folder, "log.jsonl")
        words = [_program(), *_words({**options, "log": log})]
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
                raise TrainError(text.read().strip() or f"the program train ended with code {code}")
        if not os.path.exists(log):
            return []
        with open(log) as lines:
            return [json.loads(line) for line in lines]

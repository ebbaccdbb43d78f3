"""The program train, called from Python."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

from ._sar import Error, InputError


class TrainError(Error):
    """The program train has failed; its text is the program's."""


def _program():
    here = os.path.join(os.path.dirname(__file__), "bin", "sar-train")
    for candidate in (os.environ.get("SAR_TRAIN"), here, shutil.which("sar-train")):
        if candidate and os.path.exists(candidate):
            return candidate
    raise InputError("there is no program sar-train: the package was built without it; set SAR_TRAIN to its path")


def _words(options):
    words = []
    for key, value in options.items():
        option = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        words.append(option)
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, (list, tuple)) else os.fspath(value)
                         if isinstance(value, os.PathLike) else str(value))
    return words


def _environment():
    """Without what MPI has told this process, which would make the program a part of it."""
    own = ("OMPI_COMM_WORLD", "OMPI_UNIVERSE", "OMPI_MCA_ess", "OMPI_MCA_orte", "OMPI_MCA_pmix", "OMPI_FILE", "OMPI_APP",
           "OMPI_FIRST", "OMPI_NUM", "OMPI_ARGV", "OMPI_COMMAND", "PMIX_", "PMI_", "HYDI_")
    return {key: value for key, value in os.environ.items() if not key.startswith(own)}


def train(*, ranks=1, mpirun=("mpirun",), progress=True, **options):
    """Runs the program train (train --help) on `ranks` ranks of its own and returns its log: a dict for each line.

        log = sar.train(dataset="cora", model="gcn", layers=2, epochs=200, ranks=2)
        losses = [line["loss"] for line in log if "loss" in line]

    Options have the program's names with underscores; True gives one without a value. progress prints the program's
    lines as they come. Raises sar.TrainError with the program's message if it fails. Not under mpirun: there the
    program itself is started.
    """
    if int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", "1"))) > 1:
        raise InputError("sar.train() starts ranks of its own: call it from a program that was started without mpirun")
    with tempfile.TemporaryDirectory() as folder:
        log = options.pop("log", None) or os.path.join(folder, "log.jsonl")
        words = [_program(), *_words({**options, "log": log})]
        if ranks > 1:
            words = [*mpirun, "-n", str(ranks), *words]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment())
        try:
            for line in process.stdout:
                if progress:
                    sys.stdout.write(line)
                    sys.stdout.flush()
            message = process.stderr.read()
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if code != 0:
            raise TrainError(message.strip() or f"the program train ended with code {code}")
        if not os.path.exists(log):
            return []
        with open(log) as lines:
            return [json.loads(line) for line in lines]

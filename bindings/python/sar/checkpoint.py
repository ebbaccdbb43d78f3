# SPDX-License-Identifier: MIT

"""Checkpoints, from which a training goes on exactly."""

import json
from collections import namedtuple

from . import _sar
from ._arguments import given
from ._sar import InputError, LRScheduler

Checkpoint = namedtuple("Checkpoint", ["epoch", "extra"])
Checkpoint.__doc__ = "What resume() found: the number of the last epoch that was saved, 0 if none was, and what `extra` had."


def _plain(value):
    """A number or array of NumPy as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"extra has {given(value)}, expected what JSON has")


class Checkpointer:
    """Collective. Checkpoints of a training in a directory: weights, the calls of dropouts, the state of the optimizer and the schedule,
    and the epoch. A training that resumes has the bits of one that was not stopped; on another number of ranks it has the same
    curve to rounding.

        checkpoints = sar.Checkpointer("run1")
        last = checkpoints.resume(net, optimizer, schedule)
        for epoch in range(last.epoch + 1, 101):
            ...
            checkpoints.save(epoch, net, optimizer, schedule)

    The program makes the same layers in the same order after the same sar.manual_seed() each time. keep_last: how many checkpoints
    are kept; older ones are deleted. A file is written under another name first, so that a run which is killed leaves whole
    checkpoints. One run at a time saves in a directory. Raises sar.InputError if the directory cannot be written.

        >>> net = sar.nn.Linear(2, 1)
        >>> optimizer = sar.optim.Adam(net)
        >>> checkpoints = sar.Checkpointer("run1")
        >>> checkpoints.save(3, net, optimizer)
        >>> checkpoints.resume(net, optimizer).epoch
        3
    """

    def __init__(self, directory, keep_last=3, comm=None):
        self._files = _sar._Checkpointer(directory, keep_last, comm)

    def save(self, epoch, module, optimizer, schedule=None, loader=None, extra=None):
        """Collective. Saves the state after an epoch. loader: a sar.DataLoader or another loader with the attribute `epoch`. extra:
        values of your own that JSON has, of rank 0, such as the best metric or rng.bit_generator.state of a generator of NumPy."""
        texts = {"python": json.dumps(extra, default=_plain)}
        if loader is not None:
            texts["loader"] = str(loader.epoch)
        if schedule is not None and not isinstance(schedule, LRScheduler):
            texts["schedule"] = json.dumps([type(schedule).__name__, schedule.state_dict()])
            schedule = None
        self._files.save(epoch, module, optimizer, schedule, texts)

    def latest(self):
        """Collective. The path of the checkpoint of the largest epoch; "" if there is none."""
        return self._files.latest()

    def resume(self, module, optimizer, schedule=None, loader=None, path=None):
        """Collective. Restores the state of the latest checkpoint, or of that at `path`. Returns its `epoch` and `extra`; without
        a checkpoint, epoch 0 and None. The learning rate, and the rate to which a schedule applies its factors, are those of the
        checkpoint: set optimizer.lr, or schedule.set_base_lr(), afterwards. Other options are those of the objects that are given,
        such as a longer schedule. Without `schedule`, that of the checkpoint is not read. Raises sar.InputError, and changes
        nothing, for a checkpoint of another module, kind of optimizer, kind of schedule or seed."""
        path = self.latest() if path is None else str(path)
        if not path:
            return Checkpoint(0, None)
        own, state = schedule, {}
        if schedule is not None and not isinstance(schedule, LRScheduler):
            schedule = None
            kind, state = json.loads(self._files.info(path, optimizer).get("schedule", '["none", {}]'))
            if kind != type(own).__name__:
                raise InputError(f"{path}: the schedule is {kind}, expected {type(own).__name__}")
        of_python = own if schedule is None else None
        before, rates = {} if of_python is None else of_python.state_dict(), [group["lr"] for group in optimizer.param_groups]
        try:
            if of_python is not None:
                of_python.load_state_dict(state)
            epoch, texts = self._files.load(path, module, optimizer, schedule)
        except Exception:
            if of_python is not None:
                of_python.load_state_dict(before)
                for group, rate in zip(optimizer.param_groups, rates):
                    group["lr"] = rate
            raise
        if of_python is not None:
            of_python.load_state_dict(state)  # its rates in place of the optimizer's
        if loader is not None:
            loader.epoch = int(texts.get("loader", epoch))
        return Checkpoint(epoch, json.loads(texts.get("python", "null")))

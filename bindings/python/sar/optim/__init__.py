# SPDX-License-Identifier: MIT

"""Optimizers and schedules under torch's names. step() adds the gradients of all ranks first."""

from collections.abc import Mapping as _Mapping

from .._sar import InputError as _InputError
from .._sar import SGD, Adam, AdamW, Optimizer
from . import lr_scheduler
from .lr_scheduler import CosineAnnealingLR, ExponentialLR, LambdaLR, LinearLR, LRScheduler, MultiStepLR, ReduceLROnPlateau, StepLR


class ParamGroup(_Mapping):
    """The options of some parameters of an optimizer, as a dict: "params", "lr", "weight_decay" and what else the optimizer has. "lr"
    may be set, the others are those of the construction.

        >>> optimizer = sar.optim.SGD(sar.nn.Linear(2, 1), lr=0.1)
        >>> optimizer.param_groups[0]["lr"] = 0.05
        >>> optimizer.lr
        0.05
    """

    def __init__(self, optimizer, number):
        self._optimizer, self._number = optimizer, number

    def _options(self):
        return {name: value for name, value in self._optimizer._group_options(self._number).items() if name != "decay_only"}

    def __getitem__(self, name):
        if name == "params":
            return self._optimizer._group_params(self._number)
        return self._optimizer._group_lr(self._number) if name == "lr" else self._options()[name]

    def __setitem__(self, name, value):
        if name != "lr":
            raise _InputError(f"the option '{name}' of a group of parameters was set, expected 'lr': make another optimizer for others")
        self._optimizer._set_group_lr(self._number, value)

    def __iter__(self):
        return iter(["params", *self._options()])

    def __len__(self):
        return 1 + len(self._options())

    def __repr__(self):
        return repr({name: len(value) if name == "params" else value for name, value in self.items()})


def _optimizer_repr(optimizer):
    groups = [", ".join(f"{name}={len(value) if name == 'params' else value}" for name, value in group.items())
              for group in optimizer.param_groups]
    return f"{type(optimizer).__name__}({'; '.join(groups)})"


setattr(Optimizer, "param_groups", property(lambda optimizer: [ParamGroup(optimizer, i) for i in range(optimizer._num_groups)],
                                            doc="The groups of parameters: optimizer.param_groups[0]['lr'] = 0.001."))
setattr(Optimizer, "__repr__", _optimizer_repr)


__all__ = [
    "Adam", "AdamW", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "Optimizer", "ParamGroup", "ReduceLROnPlateau", "SGD", "StepLR", "lr_scheduler",
]

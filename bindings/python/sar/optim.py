# SPDX-License-Identifier: MIT

"""Optimizers and schedules under torch's names. step() adds the gradients of all ranks first."""

import bisect as _bisect
import json as _json
from collections.abc import Mapping as _Mapping
from types import SimpleNamespace as _Namespace

from ._sar import InputError as _InputError
from ._sar import SGD, Adam, AdamW, CosineAnnealingLR, LinearLR, LRScheduler, Optimizer, ReduceLROnPlateau, StepLR


class ParamGroup(_Mapping):
    """The options of some parameters of an optimizer, as a dict: "params", "lr", "weight_decay" and what else the optimizer has. "lr"
    may be set, the others are those of the construction."""

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


Optimizer.param_groups = property(lambda optimizer: [ParamGroup(optimizer, i) for i in range(optimizer._num_groups)],
                                  doc="The groups of parameters: optimizer.param_groups[0]['lr'] = 0.001.")
Optimizer.__repr__ = _optimizer_repr


class _FactorLR:
    """A schedule whose rate is the one at its construction times a factor of the number of completed epochs."""

    def __init__(self, optimizer):
        self.optimizer, self.last_epoch = optimizer, 0
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self._set()

    def _factors(self):
        raise NotImplementedError

    def _set(self):
        for group, base, factor in zip(self.optimizer.param_groups, self.base_lrs, self._factors()):
            group["lr"] = base * factor

    def step(self, metric=None):
        """Local. Ends an epoch."""
        self.last_epoch += 1
        self._set()

    def get_last_lr(self):
        """Local. The rate of each group of parameters."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        """Local. The epoch and the base rates."""
        return {"last_epoch": str(self.last_epoch), "base_lrs": _json.dumps(self.base_lrs)}

    def load_state_dict(self, state):
        """Local; the same on all ranks."""
        try:
            last_epoch, base_lrs = int(state["last_epoch"]), [float(rate) for rate in _json.loads(state["base_lrs"])]
        except (KeyError, TypeError, ValueError):
            raise _InputError(f"the state of a schedule has {sorted(state)}, expected last_epoch and base_lrs") from None
        self.last_epoch, self.base_lrs = last_epoch, base_lrs


class LambdaLR(_FactorLR):
    """torch.optim.lr_scheduler.LambdaLR: lr_t = base lr_lambda(t) after t epochs; lr_lambda: a function, or one for each group."""

    def __init__(self, optimizer, lr_lambda):
        groups = len(optimizer.param_groups)
        self._functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self._functions) != groups:
            raise _InputError(f"there are {len(self._functions)} functions for {groups} groups of parameters, expected one for each")
        super().__init__(optimizer)

    def _factors(self):
        return [function(self.last_epoch) for function in self._functions]


class ExponentialLR(_FactorLR):
    """torch.optim.lr_scheduler.ExponentialLR: lr_t = base gamma^t after t epochs."""

    def __init__(self, optimizer, gamma):
        self.gamma = gamma
        super().__init__(optimizer)

    def _factors(self):
        return [self.gamma**self.last_epoch] * len(self.base_lrs)


class MultiStepLR(_FactorLR):
    """torch.optim.lr_scheduler.MultiStepLR: lr_t = base gamma^n, where n of the milestones are t or less after t epochs."""

    def __init__(self, optimizer, milestones, gamma=0.1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def _factors(self):
        return [self.gamma**_bisect.bisect_right(self.milestones, self.last_epoch)] * len(self.base_lrs)


lr_scheduler = _Namespace(CosineAnnealingLR=CosineAnnealingLR, ExponentialLR=ExponentialLR, LambdaLR=LambdaLR, LinearLR=LinearLR,
                          MultiStepLR=MultiStepLR, ReduceLROnPlateau=ReduceLROnPlateau, StepLR=StepLR)

__all__ = [
    "Adam", "AdamW", "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "Optimizer", "ParamGroup", "ReduceLROnPlateau", "SGD", "StepLR", "lr_scheduler",
]

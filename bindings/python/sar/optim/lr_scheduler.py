# SPDX-License-Identifier: MIT

"""Schedules of the learning rate under torch's names."""

import bisect
import json

from .._sar import CosineAnnealingLR, InputError, LinearLR, LRScheduler, ReduceLROnPlateau, StepLR


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

    def set_base_lr(self, lr):
        """Local; the same on all ranks. lr: the rate of all groups to which the schedule applies its factors. The rate of this epoch is set."""
        self.base_lrs = [float(lr)] * len(self.base_lrs)
        self._set()

    def state_dict(self):
        """Local. The epoch and the base rates."""
        return {"last_epoch": str(self.last_epoch), "base_lrs": json.dumps(self.base_lrs)}

    def load_state_dict(self, state):
        """Local; the same on all ranks."""
        try:
            last_epoch, base_lrs = int(state["last_epoch"]), [float(rate) for rate in json.loads(state["base_lrs"])]
        except (KeyError, TypeError, ValueError):
            raise InputError(f"the state of a schedule has {sorted(state)}, expected last_epoch and base_lrs") from None
        self.last_epoch, self.base_lrs = last_epoch, base_lrs
        self._set()


class LambdaLR(_FactorLR):
    """torch.optim.lr_scheduler.LambdaLR: lr_t = base lr_lambda(t) after t epochs; lr_lambda: a function, or one for each group.

        >>> optimizer = sar.optim.SGD(sar.nn.Linear(2, 1), lr=0.1)
        >>> schedule = sar.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> schedule.step()
        >>> round(optimizer.lr, 4)
        0.05
    """

    def __init__(self, optimizer, lr_lambda):
        groups = len(optimizer.param_groups)
        self._functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self._functions) != groups:
            raise InputError(f"there are {len(self._functions)} functions for {groups} groups of parameters, expected one for each")
        super().__init__(optimizer)

    def _factors(self):
        return [function(self.last_epoch) for function in self._functions]


class ExponentialLR(_FactorLR):
    """torch.optim.lr_scheduler.ExponentialLR: lr_t = base gamma^t after t epochs.

        >>> optimizer = sar.optim.SGD(sar.nn.Linear(2, 1), lr=0.1)
        >>> schedule = sar.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
        >>> schedule.step()
        >>> round(optimizer.lr, 4)
        0.09
    """

    def __init__(self, optimizer, gamma):
        self.gamma = gamma
        super().__init__(optimizer)

    def _factors(self):
        return [self.gamma**self.last_epoch] * len(self.base_lrs)


class MultiStepLR(_FactorLR):
    """torch.optim.lr_scheduler.MultiStepLR: lr_t = base gamma^n, where n of the milestones are t or less after t epochs.

        >>> optimizer = sar.optim.SGD(sar.nn.Linear(2, 1), lr=0.1)
        >>> schedule = sar.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3])
        >>> schedule.step()
        >>> round(optimizer.lr, 4)
        0.01
    """

    def __init__(self, optimizer, milestones, gamma=0.1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def _factors(self):
        return [self.gamma**bisect.bisect_right(self.milestones, self.last_epoch)] * len(self.base_lrs)


__all__ = [
    "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "ReduceLROnPlateau", "StepLR",
]

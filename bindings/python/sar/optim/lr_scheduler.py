# SPDX-License-Identifier: MIT

"""Schedules of the learning rate under torch's names."""

import bisect
import json
import math

from .._sar import CosineAnnealingLR, InputError, LinearLR, LRScheduler, ReduceLROnPlateau, StepLR


class _FactorLR:
    """A schedule whose rate is the one at its construction times a factor of the number of completed epochs."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self._set(0, [group["lr"] for group in optimizer.param_groups])

    def _factors(self, epoch):
        raise NotImplementedError

    def _set(self, epoch, base_lrs):
        rates = [float(base * factor) for base, factor in zip(base_lrs, self._factors(epoch))]
        for rate in rates:
            if not 0 <= rate < math.inf:
                raise InputError(f"the learning rate after {epoch} epochs is {rate}, expected a finite number of 0 or more")
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self.last_epoch, self.base_lrs = epoch, base_lrs

    def step(self, metric=None):
        """Local. Ends an epoch."""
        self._set(self.last_epoch + 1, self.base_lrs)

    def get_last_lr(self):
        """Local. The rate of each group of parameters."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def set_base_lr(self, lr):
        """Local; the same on all ranks. lr: the rate of all groups to which the schedule applies its factors. The rate of this epoch is set."""
        self._set(self.last_epoch, [float(lr)] * len(self.base_lrs))

    def state_dict(self):
        """Local. The epoch and the base rates."""
        return {"last_epoch": str(self.last_epoch), "base_lrs": json.dumps(self.base_lrs)}

    def load_state_dict(self, state):
        """Local; the same on all ranks."""
        try:
            last_epoch, base_lrs = int(state["last_epoch"]), [float(rate) for rate in json.loads(state["base_lrs"])]
        except (KeyError, TypeError, ValueError):
            raise InputError(f"the state of a schedule has {sorted(state)}, expected last_epoch and base_lrs") from None
        if len(base_lrs) != len(self.base_lrs):
            raise InputError(f"the state of a schedule has {len(base_lrs)} base rates, expected {len(self.base_lrs)}, one for each group")
        self._set(last_epoch, base_lrs)


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

    def _factors(self, epoch):
        return [function(epoch) for function in self._functions]


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

    def _factors(self, epoch):
        return [self.gamma**epoch] * len(self.optimizer.param_groups)


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

    def _factors(self, epoch):
        return [self.gamma**bisect.bisect_right(self.milestones, epoch)] * len(self.optimizer.param_groups)


__all__ = [
    "CosineAnnealingLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "ReduceLROnPlateau", "StepLR",
]

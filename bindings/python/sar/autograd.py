# SPDX-License-Identifier: MIT

"""How operations are recorded."""

import contextlib as _contextlib

from . import _sar


class _GradMode(_contextlib.ContextDecorator):
    _enabled = False

    def __enter__(self):
        self._before = _sar._set_grad_enabled(self._enabled)
        return self

    def __exit__(self, *error):
        _sar._set_grad_enabled(self._before)
        return False

    def _recreate_cm(self):
        return type(self)()


class no_grad(_GradMode):
    """Local. While it lasts, this thread records nothing: results are constants. A context or a decorator."""


class enable_grad(_GradMode):
    """Local. The opposite of no_grad, inside of one."""

    _enabled = True


class reproducible(_contextlib.ContextDecorator):
    """Local. What is recorded while it lasts sums over the nodes of all ranks of `comm` (None: that of sar.init) with bits that do
    not depend on the number of ranks: gradients of weights, statistics of batch norm. Sums over edges need
    graph.set_options(reproducible=True) beside it. All ranks record the same operations. A context or a decorator."""

    def __init__(self, comm=None):
        self._comm = comm

    def __enter__(self):
        _sar._enter_reproducible(self._comm)
        return self

    def __exit__(self, *error):
        _sar._leave_reproducible()
        return False


class mixed_precision(_contextlib.ContextDecorator):
    """Local. While it lasts, layers on this thread store their results in bfloat16, and products round their factors to it; sums,
    parameters and losses stay in float32, as under torch.autocast. It must last over the forward pass and backward(), on every
    rank. enabled=False is full precision inside of another. numpy() gives float32. A context or a decorator."""

    def __init__(self, enabled=True):
        self._enabled = enabled

    def __enter__(self):
        _sar._enter_mixed_precision(self._enabled)
        return self

    def __exit__(self, *error):
        _sar._leave_mixed_precision()
        return False


def unpickled(values, requires_grad):
    """A tensor of its pickled state."""
    return _sar.tensor(values, requires_grad)

# SPDX-License-Identifier: MIT

"""Built-in messages and reductions under DGL's names, of fields or of tensors:

    graph.update_all(fn.u_mul_e("h", "w", "m"), fn.mean("m", "y"))    # fields of ndata and edata
    y = graph.update_all(fn.u_mul_e(h, w), fn.mean)                   # tensors
"""

from ._arguments import given
from ._sar import InputError, Tensor, message_ops, reductions


class Message:
    """A message of an edge, which graph.update_all and graph.apply_edges compute."""

    def __init__(self, op, lhs, rhs, left, right=None, out=None):
        self.op, self.lhs, self.rhs, self.left, self.right, self.out = op, lhs, rhs, left, right, out

    def operands(self, frames):
        """The tensors of u, v and e; `frames` has the fields of each."""
        found = {"u": None, "v": None, "e": None}
        for target, operand in ((self.lhs, self.left), (self.rhs, self.right)):
            if operand is None:
                continue
            if isinstance(operand, str):
                if operand not in frames[target]:
                    raise InputError(f"a message reads the field '{operand}' of {target}, which the graph has not: "
                                     f"it has {sorted(frames[target])}")
                operand = frames[target][operand]
            if not isinstance(operand, Tensor):
                raise TypeError(f"a message reads {given(operand)}, expected a sar.Tensor or the name of a field")
            found[target] = operand
        return found["u"], found["v"], found["e"]


class Reduction:
    """A reduction: fn.mean, or fn.mean("m", "y"), which writes the field y of the destinations."""

    def __init__(self, name, message=None, out=None):
        self.name, self.message, self.out = name, message, out

    def __call__(self, message, out):
        return Reduction(self.name, message, out)


def _copy(target):
    def message(x, out=None):
        return Message("copy", target, target, x, None, out)

    message.__doc__ = f"The message is {target}."
    return message


def _binary(op, lhs, rhs):
    def message(left, right, out=None):
        return Message(op, lhs, rhs, left, right, out)

    message.__doc__ = f"The message is {lhs} {op} {rhs}."
    return message


copy_u, copy_e = _copy("u"), _copy("e")
for _op in message_ops[1:]:
    for _lhs in "uve":
        for _rhs in "uve".replace(_lhs, ""):
            globals()[f"{_lhs}_{_op}_{_rhs}"] = _binary(_op, _lhs, _rhs)
for _name in reductions:
    globals()[_name] = Reduction(_name)

/// Keeping the copies of a module on all ranks equal.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/module.hpp>

namespace sar::inline SAR_PRECISION {

/// Replaces the gradient of each parameter by its sum over the ranks; with `average`, divided by their
/// number. A rank where a parameter got no gradient contributes zeros; a parameter that has none anywhere
/// stays without. The losses of nn/loss.hpp are means over all ranks and need the sum. Every rank gets the
/// same bits. Collective: one all_reduce of all gradients. Throws ShapeError, the same on every rank, when the shapes
/// of the parameters differ. Where SAR_DEBUG is set, it begins with compare_params.
void gather_grads(const Communicator& comm, Module& module, bool average = false);

/// Copies parameters, buffers and counters of rank 0 to every rank. Only needed when the ranks did not make
/// them from the same seed or checkpoint. Collective. Throws InputError, the same on every rank, when the
/// modules differ in their names or shapes.
void sync_params(const Communicator& comm, Module& module);

/// Throws InputError, the same on every rank, when a parameter does not have the same bits on all ranks, as
/// after different seeds or steps; it names the parameter, the first element that differs and both values.
/// gather_grads calls it before each step where SAR_DEBUG is set in the environment of a rank. Collective; it
/// sends all parameters.
void compare_params(const Communicator& comm, const Module& module);

}  // namespace sar

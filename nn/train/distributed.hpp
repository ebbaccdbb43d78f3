// SPDX-License-Identifier: MIT

/// Keeps the replicas of a module on all ranks equal.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Adds up what backward passes added to the gradient of each parameter since the last call: its sum over the
/// ranks, divided by the number of ranks with `average`, takes its place. Gradients that were not cleared
/// since then are kept as they are, so that gradients of several passes accumulate as on one rank. The losses
/// of nn/train/loss.hpp are means over all ranks and need the sum. A rank on which a parameter has no
/// gradient contributes zeros; a parameter without a gradient on any rank stays without one. Every rank gets
/// the same bits. Throws ShapeError on every rank if the shapes of the parameters differ. If the environment
/// variable SAR_DEBUG is set, calls compare_params first. Collective: one all_reduce of all gradients.
void gather_grads(const Communicator& comm, Module& module, bool average = false);

/// Collective. Copies parameters, buffers and counters of rank 0 to every rank. Only needed if the ranks
/// did not initialize them from the same seed or checkpoint. Throws InputError on every rank if names or
/// shapes of the modules differ.
void sync_params(const Communicator& comm, Module& module);

/// Throws InputError on every rank if a parameter does not have the same bits on all ranks, for example after
/// different seeds or steps. The message names the parameter, the first element that differs and both values.
/// gather_grads calls it before each step if SAR_DEBUG is set in the environment of a rank. Collective: sends
/// all parameters.
void compare_params(const Communicator& comm, const Module& module);

}}  // namespace sar

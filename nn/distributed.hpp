/// Keeping the copies of a module on all ranks equal.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/nn/module.hpp>

namespace sar {

/// Replaces the gradient of each parameter by its sum over the ranks; with `average`, divided by their
/// number. A rank where a parameter got no gradient contributes zeros; a parameter that has none anywhere
/// stays without. The losses of nn/loss.hpp are means over all ranks already and want the sum. Every rank
/// gets the same bits. Collective: one packed all_reduce.
void gather_grads(const Communicator& comm, Module& module, bool average = false);

/// Parameters, buffers and counters of rank 0 on every rank. Only needed when they were not made from the
/// same seed or checkpoint everywhere. Collective. Throws InputError, the same on every rank, when the
/// modules differ in their names or shapes.
void sync_params(const Communicator& comm, Module& module);

}  // namespace sar

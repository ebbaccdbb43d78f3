/// Synchronization of replicated tensors: parameters and their gradients. Undefined tensors are skipped; the
/// others must have the same shapes in the same order on every rank.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <span>

namespace sar { inline namespace SAR_PRECISION {

/// Copies the parameters of rank 0 to all ranks. Throws ShapeError, the same on every rank, if the shapes
/// differ. Collective.
void sync_params(const Communicator& comm, std::span<Tensor> params);

/// Replaces the gradients of every rank by their sum over all ranks, or by their mean if `average`. All
/// gradients are reduced in one buffer by one all_reduce; every rank gets the same bits. Throws ShapeError,
/// the same on every rank, if the shapes differ. Collective.
void gather_grads(const Communicator& comm, std::span<Tensor> grads, bool average = false);

}}  // namespace sar

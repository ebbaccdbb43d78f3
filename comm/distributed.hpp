/// Tensors that every rank holds alike: parameters and their gradients. Undefined tensors are left out; the
/// others have the same shapes in the same order on every rank.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/tensor.hpp>

#include <span>

namespace sar::inline SAR_PRECISION {

/// Every rank's parameters become those of rank 0. Throws ShapeError, the same on every rank, when their shapes
/// differ. Collective.
void sync_params(const Communicator& comm, std::span<Tensor> params);

/// Every rank's gradients become their sum over all ranks; their mean when `average`. All travel in one
/// buffer, by one reduction; every rank gets the same bits. Throws ShapeError, the same on every rank, when
/// their shapes differ. Collective.
void gather_grads(const Communicator& comm, std::span<Tensor> grads, bool average = false);

}  // namespace sar

// SPDX-License-Identifier: MIT

/// What a training step of sar.h does between the backward pass and the optimizer: checks and clips
/// gradients.
#pragma once

#include <sar/bindings/c/handle_table.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <span>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {

/// Rows of a step, which may be undefined, with their name in sar.h. Rows whose mask is 0 do not count; an
/// empty mask: all rows count.
struct StepRows {
  const char* name;
  Tensor rows;
  std::span<const std::uint8_t> mask = {};
};

/// Collective. Throws InputError on every rank unless the loss, which is the same on all ranks, is finite.
/// The message names a value of `given` that is not finite, if a rank has one.
void require_finite_loss(const Communicator& comm, double loss, std::span<const StepRows> given);

/// Local. Throws InputError if a gradient has a value that is not finite and `options` require finite ones.
/// Then clips the gradients. After gather_grads() all ranks do the same.
void prepare_gradients(Module& model, const GradientOptions& options);
}}}  // namespace sar

// SPDX-License-Identifier: MIT

/// The losses and training steps of sar.h: checks, clipped gradients, losses.
#pragma once

#include <sar/bindings/c/handle_table.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <sar.h>
#include <span>
#include <vector>

// What a training step of sar.h does between the backward pass and the optimizer: checks and clips
// gradients.

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

// The losses of sar.h, and what its training steps do with them.

/// The rows of a prediction: those of this rank, and their width.
struct ResultRows {
  Index rows, fields;
};

/// A loss as a function of the prediction, with the arrays of the caller that it reads.
struct StepLoss {
  std::function<Variable(const Variable& y, const Communicator& comm)> of;
  Tensor target;  ///< undefined for labels
  std::span<const std::uint8_t> mask;
};

/// Local. Return the loss of sar_train_step() and that of sar_train_step_labels(). Throw InputError for an
/// unknown kind of loss, and InputError and ShapeError for arrays that do not fit `rows`.
StepLoss field_loss(const ResultRows& rows, std::int32_t kind, const sar_array* target,
                    std::int64_t mask_length, const std::uint8_t* mask);
StepLoss label_loss(const ResultRows& rows, std::int64_t num_labels, const std::int64_t* labels,
                    std::int64_t mask_length, const std::uint8_t* mask);

/// Collective. Performs a training step of the optimizer's model, whose prediction is `predict`, and returns
/// the loss before it. `inputs`: the arrays of the caller that the prediction reads, for messages. Throws
/// InputError on every rank for a loss or a gradient that is not finite, unless the optimizer takes them.
double take_step(const Communicator& comm, OptimizerObject& optimizer, std::vector<StepRows> inputs,
                 const StepLoss& loss, const std::function<Variable()>& predict, bool reproducible);

/// Collective. Returns the loss in evaluation mode, without gradients.
double loss_without_step(const Communicator& comm, Module& network, const StepLoss& loss,
                         const std::function<Variable()>& predict);
}}}  // namespace sar

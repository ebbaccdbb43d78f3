// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/step_loss.hpp>
#include <sar/comm/reproducible_scope.hpp>
#include <sar/core/threads/mixed_precision.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace c_interface {
namespace {

/// Returns the mask of the caller, or an empty span without one.
std::span<const std::uint8_t> mask_of(std::int64_t length, const std::uint8_t* mask, Index num_nodes) {
  const std::span<const std::uint8_t> given = list_of(mask, length, "mask");
  require<ShapeError>(mask == nullptr || length == num_nodes, "'mask' has ", length, " numbers, expected ",
                      num_nodes, ", the nodes of the rank");
  return given;
}

Variable loss_of(std::int32_t kind, const Variable& y, const Tensor& target, const Communicator& comm) {
  switch (kind) {
    case SAR_LOSS_MSE:
      return mse(y, target, comm);
    case SAR_LOSS_L1:
      return l1(y, target, comm);
    case SAR_LOSS_HUBER:
      return huber(y, target, comm);
    default:  // SAR_LOSS_BCE: field_loss() has checked it
      return bce_with_logits(y, target, comm);
  }
}

}  // namespace

StepLoss field_loss(const ResultRows& rows, std::int32_t kind, const sar_array* target,
                    std::int64_t mask_length, const std::uint8_t* mask) {
  require<InputError>(SAR_LOSS_MSE <= kind && kind <= SAR_LOSS_BCE, "the kind of the loss is ", kind,
                      ", expected ", SAR_LOSS_MSE, " to ", SAR_LOSS_BCE, " (SAR_LOSS_MSE and others)");
  const Tensor wanted = read_array(target, {"target", rows.rows, rows.fields});
  const std::span<const std::uint8_t> given = mask_of(mask_length, mask, rows.rows);
  std::vector<Index> counted;
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] != 0) counted.push_back(static_cast<Index>(i));
  const auto loss = [kind, wanted, has_mask = mask != nullptr, counted = std::move(counted)](
                        const Variable& y, const Communicator& comm) {
    if (!has_mask) return loss_of(kind, y, wanted, comm);
    const RowIds ids(std::span<const Index>{counted});
    return loss_of(kind, gather_rows(y, ids), gather_rows(Variable(wanted), ids).value(), comm);
  };
  return {loss, wanted, given};
}

StepLoss label_loss(const ResultRows& rows, std::int64_t num_labels, const std::int64_t* labels,
                    std::int64_t mask_length, const std::uint8_t* mask) {
  const std::span<const std::int64_t> classes = list_of(labels, num_labels, "labels");
  const std::span<const std::uint8_t> given = mask_of(mask_length, mask, rows.rows);
  require<ShapeError>(num_labels == rows.rows, "'labels' has ", num_labels, " numbers, expected ", rows.rows,
                      ", the nodes of the rank");
  const std::vector<std::uint8_t> all(mask == nullptr ? classes.size() : 0, 1);
  const auto loss = [classes, given, all, has_mask = mask != nullptr](const Variable& y,
                                                                      const Communicator& comm) {
    return cross_entropy(y, classes, has_mask ? given : all, comm);
  };
  return {loss, {}, {}};
}

double take_step(const Communicator& comm, OptimizerObject& optimizer, std::vector<StepRows> inputs,
                 const StepLoss& loss, const std::function<Variable()>& predict, bool reproducible) {
  Module& network = optimizer.model->network;
  network.train();
  const ReproducibleScope sums(comm, reproducible);
  const MixedPrecisionScope mixed(optimizer.gradients.mixed_precision);
  Tape tape;
  const Variable value = loss.of(predict(), comm);
  const double result = value.value().item();
  if (optimizer.gradients.require_finite) {
    inputs.push_back({"target", loss.target, loss.mask});
    require_finite_loss(comm, result, inputs);
  }
  tape.backward(value);
  gather_grads(comm, network);
  prepare_gradients(network, optimizer.gradients);
  optimizer.optimizer->step();
  network.zero_grad();
  return result;
}

double loss_without_step(const Communicator& comm, Module& network, const StepLoss& loss,
                         const std::function<Variable()>& predict) {
  const NoTape no_tape;
  network.eval();
  return loss.of(predict(), comm).value().item();
}

}  // namespace c_interface
}}  // namespace sar

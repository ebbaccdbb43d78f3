// SPDX-License-Identifier: MIT

// The labelled elements are gathered to vectors of predictions and targets, on which the kernels of the
// losses without a mask work; gradients are scattered back. O(n T) time, 8 bytes and three numbers for each
// labelled element.
#include <sar/autograd/tape.hpp>
#include <sar/nn/train/masked_loss.hpp>
#include <sar/nn/train/mean_loss.hpp>
#include <sar/nn/train/row_labels.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// The elements that count: their positions, predictions [M] and targets [M].
struct LabelledElements {
  Array<Index> positions;
  Tensor predictions, targets;
  Array<real> weights;  // of their rows; empty: all 1

  void add_weights(const RowWeights& of_rows, Index width) {
    if (!of_rows) return;
    for (const Index at : positions) weights.push_back((*of_rows)[static_cast<std::size_t>(at / width)]);
  }
};

LabelledElements labelled_elements(const char* name, const Tensor& predictions, const Tensor& targets,
                                   std::span<const std::uint8_t> mask) {
  require_target_rows(name, predictions, targets, mask);
  LabelledElements chosen;
  const Index width = targets.row_size();
  for (Index i = 0; i < targets.num_rows(); ++i)
    for (Index c = 0; c < width; ++c)
      if (is_labelled(mask, targets, i, c)) chosen.positions.push_back(i * width + c);
  const Shape shape{std::ssize(chosen.positions)};
  chosen.predictions = Tensor(shape);
  chosen.targets = Tensor(shape);
  for (Index e = 0; e < shape[0]; ++e) {
    chosen.predictions.data()[e] = predictions.data()[chosen.positions[e]];
    chosen.targets.data()[e] = targets.data()[chosen.positions[e]];
  }
  return chosen;
}

/// sum(p, t, weights) returns the local sum of the loss, and backward(p, t, scale, out) computes out = scale
/// times its derivative.
template <class Sum, class Backward>
Variable mean_of_labelled(const char* name, const Variable& prediction, const Tensor& target,
                          std::span<const std::uint8_t> mask, const Communicator& comm,
                          const RowWeights& row_weights, const Sum& sum, const Backward& backward) {
  return comm.agree([&]() -> Variable {
    const Tensor& x = prediction.value();
    LabelledElements chosen;
    MeanLoss loss = mean_over_ranks(
        comm, CollectiveCall(name).equal("shape", x.shape()).equal("row weights", row_weights.has_value()),
        [&] {
          chosen = labelled_elements(name, x, target, mask);
          if (row_weights) require_row_weights(name, *row_weights, x.num_rows());
          chosen.add_weights(row_weights, x.row_size());
          return sum(chosen.predictions, chosen.targets, std::span<const real>(chosen.weights));
        },
        " over an empty mask: no element of any rank has a target", row_weights.has_value());
    if (!recording({&prediction})) return loss.value;
    return record(std::move(loss.value), [chosen = std::move(chosen), dx = prediction.gradient(),
                                          count = loss.count, backward](const Tensor& grad) {
      Tensor gradients(chosen.targets.shape());
      backward(chosen.predictions, chosen.targets, static_cast<real>(grad.item() / count), gradients);
      for (Index e = 0; e < std::ssize(chosen.weights); ++e) gradients.data()[e] *= chosen.weights[e];
      dx->add([&](Tensor& out, bool accumulate) {
        if (!accumulate) std::fill_n(out.data(), out.size(), real{0});
        for (Index e = 0; e < gradients.size(); ++e) out.data()[chosen.positions[e]] += gradients.data()[e];
      });
    });
  });
}

}  // namespace

Variable bce_with_logits(const Variable& logits, const Tensor& target, std::span<const std::uint8_t> mask,
                         const Communicator& comm, const RowWeights& row_weights) {
  return mean_of_labelled("bce_with_logits", logits, target, mask, comm, row_weights, bce_sum,
                          [](const Tensor& x, const Tensor& t, real scale, Tensor& out) {
                            bce_backward(x, t, scale, out, /*accumulate=*/false);
                          });
}

Variable mse(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
             const Communicator& comm, const RowWeights& row_weights) {
  return mean_of_labelled("mse", prediction, target, mask, comm, row_weights, squared_error_sum,
                          [](const Tensor& p, const Tensor& t, real scale, Tensor& out) {
                            squared_error_backward(p, t, 2 * scale, out, /*accumulate=*/false);
                          });
}

Variable l1(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
            const Communicator& comm, const RowWeights& row_weights) {
  return mean_of_labelled("l1", prediction, target, mask, comm, row_weights, absolute_error_sum,
                          [](const Tensor& p, const Tensor& t, real scale, Tensor& out) {
                            absolute_error_backward(p, t, scale, out, /*accumulate=*/false);
                          });
}
}}  // namespace sar

// SPDX-License-Identifier: MIT

// A rank computes the sum and the number of its terms in double precision; one all_reduce of these 16
// bytes gives the mean. The backward pass is local: the kernels of core/rows/loss.hpp compute the
// derivatives of the rank's rows, scaled by the gradient of the loss divided by the number of terms. It
// keeps the operands; cross entropy also keeps 4 bytes per row.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/train/loss.hpp>
#include <sar/nn/train/row_labels.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

constexpr const char* num_classes = "number of classes";

/// The weights of the classes in the types of the kernel.
struct ClassWeights {
  Array<real> of_class, spread, of_row;
  double kept = 1;
  [[nodiscard]] TargetWeights view() const { return {of_class, spread, kept, of_row}; }
};

/// Returns nothing for the plain cross entropy. Throws InputError for options out of range.
std::optional<ClassWeights> class_weights(const CrossEntropyOptions& options, Index classes) {
  const auto& [given, smoothing, of_row] = options;
  require<InputError>(smoothing >= 0 && smoothing <= 1, "cross_entropy: label_smoothing is ", smoothing,
                      ", expected a number from 0 to 1");
  require<InputError>(given.empty() || std::ssize(given) == classes, "cross_entropy: there are ",
                      given.size(), " class weights, expected ", classes, ", one for each class");
  for (std::size_t c = 0; c < given.size(); ++c)
    require<InputError>(given[c] >= 0 && std::isfinite(given[c]), "cross_entropy: the weight of class ", c,
                        " is ", given[c], ", expected a finite number of 0 or more");
  if (given.empty() && smoothing == 0 && !of_row) return std::nullopt;
  ClassWeights weights;
  if (of_row) weights.of_row.assign(of_row->begin(), of_row->end());
  weights.kept = 1 - smoothing;
  for (Index c = 0; c < classes; ++c) {
    const double weight = given.empty() ? 1 : given[c];
    weights.of_class.push_back(static_cast<real>(weight));
    weights.spread.push_back(static_cast<real>(weight * smoothing / static_cast<double>(classes)));
  }
  return weights;
}

void require_delta(const ElementLoss& loss) {
  require<InputError>(loss.delta > 0, "huber: delta is ", loss.delta, ", expected a positive number");
}

/// Returns the mean of a loss over all elements of all ranks. Targets get gradients of the losses that are
/// even functions of prediction - target.
Variable mean_of_elements(const char* name, const ElementLoss& loss, const Variable& prediction,
                          const Variable& target, const Communicator& comm) {
  return comm.agree([&]() -> Variable {
    const Tensor& p = prediction.value();
    const Tensor& t = target.value();
    const CollectiveCall call = CollectiveCall(name).equal("delta", loss.delta).equal("shape", p.shape());
    MeanLoss mean = mean_over_ranks(comm, call, [&] {
      require<ShapeError>(p.shape() == t.shape(), name, ": ",
                          loss.kind == ElementLoss::bce ? "logits have" : "the prediction has", " shape ",
                          p.shape(), ", expected ", t.shape(), " as the target");
      require_delta(loss);
      return element_loss_sum(loss, p, t);
    });
    if (!recording({&prediction, &target})) return mean.value;
    return record(std::move(mean.value), [loss, p, t, dp = prediction.gradient(), dt = target.gradient(),
                                          count = mean.count](const Tensor& grad) {
      const auto send = [&](const GradientPtr& to, double scale) {
        if (to == nullptr) return;
        to->add([&](Tensor& out, bool accumulate) {
          element_loss_backward(loss, p, t, static_cast<real>(scale), out, accumulate);
        });
      };
      send(dp, grad.item() / count);
      send(dt, -grad.item() / count);
    });
  });
}

/// The cross entropy of the rows of this rank. Rows in bfloat16 are widened block by block, so that neither
/// they nor their gradient are ever in memory as reals.
class RankCrossEntropy {
 public:
  RankCrossEntropy(TypedRows x, Array<std::int32_t> targets, std::optional<ClassWeights> weights)
      : x_(std::move(x)), targets_(std::move(targets)), weights_(std::move(weights)) {}

  [[nodiscard]] SumAndCount sum() const {
    SumAndCount total;
    for_each_block(
        [&](const Tensor& x, std::span<const std::int32_t> targets, const TargetWeights* weights, Index) {
          const SumAndCount block = cross_entropy_sum(x, targets, weights);
          total.sum.add(block.sum);
          total.count.add(block.count);
        });
    return total;
  }
  /// out (+)= scale times the gradient
  void backward(real scale, TypedRows& out, bool accumulate) const {
    for_each_block([&](const Tensor& x, std::span<const std::int32_t> targets, const TargetWeights* weights,
                       Index begin) {
      const bool is_real = out.is_real();
      TypedRows part = out.slice_rows(begin, begin + x.num_rows());
      Tensor gradient = is_real ? part.reals() : Tensor(x.shape());
      cross_entropy_backward(x, targets, scale, gradient, is_real && accumulate, weights);
      if (!is_real) add_rows(gradient, part, accumulate);
    });
  }

 private:
  template <class Function>
  void for_each_block(const Function& function) const {
    const Index rows = x_.is_real() ? x_.num_rows() : block_rows;
    for (Index begin = 0; begin < x_.num_rows(); begin += rows) {
      const Index end = std::min(begin + rows, x_.num_rows());
      const auto at = static_cast<std::size_t>(begin), count = static_cast<std::size_t>(end - begin);
      std::optional<TargetWeights> weights;
      if (weights_) weights = weights_->view();
      if (weights && !weights->of_row.empty()) weights->of_row = weights->of_row.subspan(at, count);
      function(x_.slice_rows(begin, end).to_tensor(), std::span(targets_).subspan(at, count),
               weights ? &*weights : nullptr, begin);
    }
  }

  static constexpr Index block_rows = 1 << 13;
  TypedRows x_;
  Array<std::int32_t> targets_;  // negative: the row does not count
  std::optional<ClassWeights> weights_;
};

Variable mean_cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                            std::span<const std::uint8_t> mask, const Communicator& comm,
                            const CollectiveCall& call, const CrossEntropyOptions& options) {
  std::optional<RankCrossEntropy> terms;
  MeanLoss loss = mean_over_ranks(
      comm, call,
      [&] {
        const Shape& shape = logits.shape();
        require_rows(shape, labels, mask);
        if (options.row_weights) require_row_weights("cross_entropy", *options.row_weights, shape[0]);
        terms.emplace(logits.rows(), targets_of(labels, mask, shape.row_size()),
                      class_weights(options, shape.row_size()));
        return terms->sum();
      },
      options.class_weights.empty() ? " over an empty mask: no row of any rank is labelled"
                                    : ": no row in the mask has a label of a class whose weight is above 0",
      options.row_weights.has_value());
  if (!recording({&logits})) return loss.value;
  return record(std::move(loss.value),
                [terms = *std::move(terms), dx = logits.gradient(), count = loss.count](const Tensor& grad) {
                  dx->add_rows([&](TypedRows& out, bool accumulate) {
                    terms.backward(static_cast<real>(grad.item() / count), out, accumulate);
                  });
                });
}

}  // namespace

Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm,
                       const CrossEntropyOptions& options) {
  return comm.agree([&] {
    CollectiveCall call("cross_entropy");
    call.equal(num_classes, logits.shape()).equal("label_smoothing", options.label_smoothing);
    call.equal("number of class weights", options.class_weights.size());
    call.equal("row weights", options.row_weights.has_value());
    for (const double weight : options.class_weights) call.equal("class weight", weight);
    return mean_cross_entropy(logits, labels, mask, comm, call, options);
  });
}

Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm,
                       const CollectiveCall& call) {
  return comm.agree([&] { return mean_cross_entropy(logits, labels, mask, comm, call, {}); });
}

std::vector<double> balanced_class_weights(std::span<const std::int64_t> labels,
                                           std::span<const std::uint8_t> mask, Index classes,
                                           const Communicator& comm) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("balanced_class_weights").equal(num_classes, classes));
    require<ShapeError>(mask.size() == labels.size(), "balanced_class_weights: there are ", labels.size(),
                        " labels, but a mask of ", mask.size());
    std::vector<double> counts(static_cast<std::size_t>(classes), 0);
    for (const std::int32_t target : targets_of(labels, mask, classes))
      if (target >= 0) ++counts[static_cast<std::size_t>(target)];
    comm.all_reduce(std::span<double>(counts));
    double rows = 0, present = 0;
    for (const double count : counts) {
      rows += count;
      if (count > 0) ++present;
    }
    for (double& count : counts) count = count > 0 ? rows / (present * count) : 0;
    return counts;
  });
}

Variable bce_with_logits(const Variable& logits, const Tensor& target, const Communicator& comm) {
  return mean_of_elements("bce_with_logits", {ElementLoss::bce}, logits, target, comm);
}

Variable mse(const Variable& prediction, const Variable& target, const Communicator& comm) {
  return mean_of_elements("mse", {ElementLoss::squared}, prediction, target, comm);
}

Variable l1(const Variable& prediction, const Variable& target, const Communicator& comm) {
  return mean_of_elements("l1", {ElementLoss::absolute}, prediction, target, comm);
}

Variable huber(const Variable& prediction, const Variable& target, const Communicator& comm, double delta) {
  return mean_of_elements("huber", {ElementLoss::huber, delta}, prediction, target, comm);
}

double accuracy(const Tensor& logits, std::span<const std::int64_t> labels,
                std::span<const std::uint8_t> mask, const Communicator& comm) {
  return comm.agree([&] {
    const CollectiveCall call = CollectiveCall("accuracy").equal(num_classes, logits.shape());
    const SumAndCount total = sum_over_ranks(comm, call, [&] {
      require_rows(logits.shape(), labels, mask);
      return count_correct(logits, targets_of(labels, mask, logits.row_size()));
    });
    const double count = total.count.value();
    return count > 0 ? total.sum.value() / count : std::numeric_limits<double>::quiet_NaN();
  });
}

// The labelled elements of a block of rows are gathered to vectors of predictions and targets, on which the
// kernels of the losses without a mask work; gradients are scattered back. O(n T) time, one byte a row, 4
// more with row weights.

namespace {

/// The elements of this rank that count.
class LabelledElements {
 public:
  LabelledElements(Tensor predictions, Tensor targets, std::span<const std::uint8_t> mask,
                   const RowWeights& row_weights)
      : predictions_(std::move(predictions)),
        targets_(std::move(targets)),
        width_(targets_.row_size()),
        mask_(mask.begin(), mask.end()) {
    if (row_weights) weights_.assign(row_weights->begin(), row_weights->end());
  }

  [[nodiscard]] SumAndCount sum(const ElementLoss& loss) const {
    return parallel_reduce(
        targets_.num_rows(), block_rows(), SumAndCount{},
        [&](Index begin, Index end) {
          const auto [predictions, targets, weights] = gathered(begin, end);
          return element_loss_sum(loss, predictions, targets, weights);
        },
        [](SumAndCount all, const SumAndCount& block) {
          all.sum.add(block.sum);
          all.count.add(block.count);
          return all;
        });
  }
  /// out (+)= scale times the gradient
  void backward(const ElementLoss& loss, real scale, Tensor& out, bool accumulate) const {
    parallel_for(targets_.num_rows(), block_rows(), [&](Index begin, Index end) {
      const auto [predictions, targets, weights] = gathered(begin, end);
      Tensor gradients(targets.shape());
      element_loss_backward(loss, predictions, targets, scale, gradients, /*accumulate=*/false);
      for (Index e = 0; e < std::ssize(weights); ++e) gradients.data()[e] *= weights[e];
      if (!accumulate) std::fill_n(out.row(begin), (end - begin) * width_, real{0});
      const real* gradient = gradients.data();
      for_each(begin, end, [&, to = out.data()](Index i, Index c, bool counts) {
        if (counts) to[i * width_ + c] += *gradient++;
      });
    });
  }

 private:
  struct Block {
    Tensor predictions, targets;  // [M]
    Array<real> weights;          // of their rows; empty: all 1
  };

  /// Calls use(row, column, whether it counts) for the elements of those rows of [begin, end) in the mask.
  template <class Use>
  void for_each(Index begin, Index end, const Use& use) const {
    for (Index i = begin; i < end; ++i)
      if (mask_[i] != 0)
        for (Index c = 0; c < width_; ++c) use(i, c, !std::isnan(targets_.data()[i * width_ + c]));
  }
  [[nodiscard]] Block gathered(Index begin, Index end) const {
    const Index most = (end - begin) * width_;
    Tensor predictions({most}), targets({most});
    Array<real> weights(weights_.empty() ? 0 : most);
    Index count = 0;
    for_each(begin, end, [&](Index i, Index c, bool counts) {
      predictions.data()[count] = predictions_.data()[i * width_ + c];
      targets.data()[count] = targets_.data()[i * width_ + c];
      if (!weights_.empty()) weights[count] = weights_[i];
      count += counts ? 1 : 0;
    });
    if (!weights.empty()) weights.resize(count);
    return {predictions.slice_rows(0, count), targets.slice_rows(0, count), std::move(weights)};
  }
  [[nodiscard]] Index block_rows() const {
    return std::max<Index>((1 << 13) / std::max<Index>(width_, 1), 1);
  }

  Tensor predictions_, targets_;
  Index width_;
  Array<std::uint8_t> mask_;
  Array<real> weights_;  // of rows; empty: all 1
};

Variable mean_of_labelled(const char* name, const ElementLoss& loss, const Variable& prediction,
                          const Tensor& target, std::span<const std::uint8_t> mask, const Communicator& comm,
                          const RowWeights& row_weights) {
  return comm.agree([&]() -> Variable {
    const Tensor& x = prediction.value();
    std::optional<LabelledElements> elements;
    const CollectiveCall call = CollectiveCall(name)
                                    .equal("delta", loss.delta)
                                    .equal("shape", x.shape())
                                    .equal("row weights", row_weights.has_value());
    MeanLoss mean = mean_over_ranks(
        comm, call,
        [&] {
          require_target_rows(name, x, target, mask);
          if (row_weights) require_row_weights(name, *row_weights, x.num_rows());
          require_delta(loss);
          return elements.emplace(x, target, mask, row_weights).sum(loss);
        },
        " over an empty mask: no element of any rank has a target", row_weights.has_value());
    if (!recording({&prediction})) return mean.value;
    return record(std::move(mean.value), [elements = *std::move(elements), dx = prediction.gradient(),
                                          count = mean.count, loss](const Tensor& grad) {
      dx->add([&](Tensor& out, bool accumulate) {
        elements.backward(loss, static_cast<real>(grad.item() / count), out, accumulate);
      });
    });
  });
}

}  // namespace

Variable bce_with_logits(const Variable& logits, const Tensor& target, std::span<const std::uint8_t> mask,
                         const Communicator& comm, const RowWeights& row_weights) {
  return mean_of_labelled("bce_with_logits", {ElementLoss::bce}, logits, target, mask, comm, row_weights);
}

Variable mse(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
             const Communicator& comm, const RowWeights& row_weights) {
  return mean_of_labelled("mse", {ElementLoss::squared}, prediction, target, mask, comm, row_weights);
}

Variable l1(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
            const Communicator& comm, const RowWeights& row_weights) {
  return mean_of_labelled("l1", {ElementLoss::absolute}, prediction, target, mask, comm, row_weights);
}

Variable huber(const Variable& prediction, const Tensor& target, std::span<const std::uint8_t> mask,
               const Communicator& comm, const RowWeights& row_weights, double delta) {
  return mean_of_labelled("huber", {ElementLoss::huber, delta}, prediction, target, mask, comm, row_weights);
}

namespace {

Tensor gradient_or_zeros(const Variable& x) {
  const Tensor gradient = x.grad();
  return gradient.defined() ? gradient : Tensor::zeros(x.shape());
}

}  // namespace

ValueAndSlopes value_and_slopes(const SlopeFunction& f, const std::vector<Tensor>& inputs) {
  OuterGradients dropped(/*wanted=*/false);  // those of parameters
  const OuterGradients::Scope scope(dropped);
  std::vector<Variable> x;
  for (const Tensor& input : inputs) x.emplace_back(input, true);
  Tape tape;
  const Variable y = f(x);
  ValueAndSlopes result{.value = y.value(), .slopes = {}};
  if (!x.empty() && y.requires_grad()) tape.backward(y, Tensor::full(y.shape(), 1));
  for (const Variable& input : x) result.slopes.push_back(gradient_or_zeros(input));
  return result;
}

double backward_slope_loss(const SlopeFunction& f, const std::vector<Tensor>& inputs, const SlopeLoss& loss) {
  const Transaction transaction;
  ValueAndSlopes found = value_and_slopes(f, inputs);
  const Variable value(std::move(found.value), true);
  std::vector<Variable> slopes;
  for (Tensor& slope : found.slopes) slopes.emplace_back(std::move(slope), true);
  double result = 0;
  {
    Tape tape;
    const Variable total = loss(value, slopes);
    result = static_cast<double>(total.value().item());
    tape.backward(total);
  }
  std::vector<Variable> x;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    x.push_back(make_dual(Variable(inputs[k]), Variable(gradient_or_zeros(slopes[k]))));
  Tape tape;
  const Variable y = f(x);
  Variable total = sum(y.primal() * Variable(gradient_or_zeros(value)));
  if (y.is_dual()) total = std::exchange(total, {}) + sum(y.tangent());
  tape.backward(total);
  return result;
}
}}  // namespace sar

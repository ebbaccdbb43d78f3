// A rank computes the sum and the number of its terms in double precision; one all_reduce of these 16
// bytes gives the mean. The backward pass is local: the kernels of core/rows/loss.hpp compute the
// derivatives of the rank's rows, scaled by the gradient of the loss divided by the number of terms. It
// keeps the operands; cross entropy also keeps 4 bytes per row.
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/train/loss.hpp>

#include <array>
#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Returns the sums over all ranks of what `local` returns. `call` must be the same on all ranks.
SumAndCount sum_over_ranks(const Communicator& comm, const CollectiveCall& call,
                           FunctionRef<SumAndCount()> local) {
  const SumAndCount mine = local();
  std::array<double, 2> totals{mine.sum, mine.count};
  const CallScope compared(comm, call);
  comm.all_reduce(std::span<double>(totals));
  return {totals[0], totals[1]};
}

constexpr const char* num_classes = "number of classes";

struct MeanLoss {
  Tensor value;  // [1]
  double count = 0;
};

/// Returns the mean over all ranks of the terms that `local` sums. If there are no terms, the error message
/// is the loss's name followed by `nothing`.
MeanLoss mean_over_ranks(const Communicator& comm, const CollectiveCall& call,
                         FunctionRef<SumAndCount()> local, const char* nothing = " of no elements") {
  const SumAndCount total = sum_over_ranks(comm, call, local);
  require<InputError>(total.count > 0, call.operation(), nothing);
  return {Tensor::full({1}, static_cast<real>(total.sum / total.count)), total.count};
}

void require_rows(const Tensor& logits, std::span<const std::int64_t> labels,
                  std::span<const std::uint8_t> mask) {
  require<ShapeError>(logits.shape().dims() == 2, "logits have shape ", logits.shape(),
                      ", expected [rows, classes]");
  require<ShapeError>(std::ssize(labels) == logits.num_rows() && mask.size() == labels.size(), "logits have ",
                      logits.num_rows(), " rows, but there are ", labels.size(), " labels and a mask of ",
                      mask.size());
}

/// Returns the label of each row, or -1 outside the mask and for an unlabelled row.
Array<std::int32_t> targets_of(std::span<const std::int64_t> labels, std::span<const std::uint8_t> mask,
                               Index classes) {
  Array<std::int32_t> targets(labels.size());
  for (Index i = 0; i < std::ssize(labels); ++i) {
    require<InputError>(mask[i] == 0 || (labels[i] >= -1 && labels[i] < classes), "label ", labels[i],
                        " of row ", i, ", which is in the mask, is not one of the ", classes,
                        " classes, and not -1 (unlabelled)");
    targets[i] = mask[i] != 0 ? static_cast<std::int32_t>(labels[i]) : -1;
  }
  return targets;
}

/// Returns the mean over all elements of all ranks of an even function of prediction - target. sum(a, b)
/// returns the local sum of the function. backward(a, b, scale, out, accumulate) computes out (+)= scale
/// times the derivative at a - b; the derivative is odd, so it serves both operands.
/// `delta` is compared between the ranks.
template <class Sum, class Backward>
Variable mean_of_differences(const char* name, const Variable& prediction, const Variable& target,
                             const Communicator& comm, const Sum& sum, const Backward& backward,
                             double delta = 0) {
  return comm.agree([&]() -> Variable {
    const Tensor& p = prediction.value();
    const Tensor& t = target.value();
    const CollectiveCall call = CollectiveCall(name).equal("delta", delta).equal("shape", p.shape());
    MeanLoss loss = mean_over_ranks(comm, call, [&] {
      require<ShapeError>(p.shape() == t.shape(), name, ": the prediction has shape ", p.shape(),
                          ", expected ", t.shape(), " as the target");
      return sum(p, t);
    });
    if (!recording({&prediction, &target})) return loss.value;
    return record(std::move(loss.value), [p, t, dp = prediction.gradient(), dt = target.gradient(),
                                          count = loss.count, backward](const Tensor& grad) {
      const auto send = [&](const GradientPtr& to, double scale) {
        if (to == nullptr) return;
        to->add([&](Tensor& out, bool accumulate) { backward(p, t, scale, out, accumulate); });
      };
      send(dp, grad.item() / count);
      send(dt, -grad.item() / count);
    });
  });
}

}  // namespace

Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm) {
  return comm.agree([&] {
    return cross_entropy(logits, labels, mask, comm,
                         CollectiveCall("cross_entropy").equal(num_classes, logits.shape()));
  });
}

Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm,
                       const CollectiveCall& call) {
  return comm.agree([&]() -> Variable {
    const Tensor& x = logits.value();
    Array<std::int32_t> targets;
    MeanLoss loss = mean_over_ranks(
        comm, call,
        [&] {
          require_rows(x, labels, mask);
          targets = targets_of(labels, mask, x.row_size());
          return cross_entropy_sum(x, targets);
        },
        " over an empty mask: no row of any rank is labelled");
    if (!recording({&logits})) return loss.value;
    return record(std::move(loss.value), [x, targets = std::move(targets), dx = logits.gradient(),
                                          count = loss.count](const Tensor& grad) {
      dx->add([&](Tensor& out, bool accumulate) {
        cross_entropy_backward(x, targets, static_cast<real>(grad.item() / count), out, accumulate);
      });
    });
  });
}

Variable bce_with_logits(const Variable& logits, const Tensor& target, const Communicator& comm) {
  return comm.agree([&]() -> Variable {
    const Tensor& x = logits.value();
    const CollectiveCall call = CollectiveCall("bce_with_logits").equal("shape", x.shape());
    MeanLoss loss = mean_over_ranks(comm, call, [&] {
      require<ShapeError>(x.shape() == target.shape(), "bce_with_logits: logits have shape ", x.shape(),
                          ", expected ", target.shape(), " as the target");
      return bce_sum(x, target);
    });
    if (!recording({&logits})) return loss.value;
    return record(std::move(loss.value),
                  [x, target, dx = logits.gradient(), count = loss.count](const Tensor& grad) {
                    dx->add([&](Tensor& out, bool accumulate) {
                      bce_backward(x, target, static_cast<real>(grad.item() / count), out, accumulate);
                    });
                  });
  });
}

Variable mse(const Variable& prediction, const Variable& target, const Communicator& comm) {
  return mean_of_differences(
      "mse", prediction, target, comm, squared_error_sum,
      [](const Tensor& a, const Tensor& b, double scale, Tensor& out, bool accumulate) {
        squared_error_backward(a, b, static_cast<real>(2 * scale), out, accumulate);
      });
}

Variable l1(const Variable& prediction, const Variable& target, const Communicator& comm) {
  return mean_of_differences(
      "l1", prediction, target, comm, absolute_error_sum,
      [](const Tensor& a, const Tensor& b, double scale, Tensor& out, bool accumulate) {
        absolute_error_backward(a, b, static_cast<real>(scale), out, accumulate);
      });
}

Variable huber(const Variable& prediction, const Variable& target, const Communicator& comm, double delta) {
  const auto limit = static_cast<real>(delta);
  return mean_of_differences(
      "huber", prediction, target, comm,
      [=](const Tensor& a, const Tensor& b) {
        require<InputError>(delta > 0, "huber: delta is ", delta, ", expected a positive number");
        return huber_sum(a, b, limit);
      },
      [=](const Tensor& a, const Tensor& b, double scale, Tensor& out, bool accumulate) {
        huber_backward(a, b, limit, static_cast<real>(scale), out, accumulate);
      },
      delta);
}

double accuracy(const Tensor& logits, std::span<const std::int64_t> labels,
                std::span<const std::uint8_t> mask, const Communicator& comm) {
  return comm.agree([&] {
    const CollectiveCall call = CollectiveCall("accuracy").equal(num_classes, logits.shape());
    const SumAndCount total = sum_over_ranks(comm, call, [&] {
      require_rows(logits, labels, mask);
      return count_correct(logits, targets_of(labels, mask, logits.row_size()));
    });
    return total.count > 0 ? total.sum / total.count : std::numeric_limits<double>::quiet_NaN();
  });
}

}}  // namespace sar

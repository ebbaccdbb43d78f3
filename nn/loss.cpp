#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory.hpp>
#include <sar/core/parallel.hpp>
#include <sar/nn/loss.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <utility>

namespace sar {
namespace {

constexpr Index row_grain = 1024;
constexpr Index element_grain = 1 << 14;

struct SumAndCount {
  double sum = 0;
  double count = 0;
};

SumAndCount add(SumAndCount a, SumAndCount b) {
  return {a.sum + b.sum, a.count + b.count};
}

/// The sums over all ranks of what `local` returns.
SumAndCount sum_over_ranks(const Communicator& comm, FunctionRef<SumAndCount()> local) {
  const SumAndCount mine = local();
  std::array<double, 2> totals{mine.sum, mine.count};
  comm.all_reduce(std::span<double>(totals));
  return {totals[0], totals[1]};
}

Tensor scalar(double value) {
  return Tensor::full({1}, static_cast<real>(value));
}

void require_rows(const Tensor& logits, std::span<const std::int64_t> labels,
                  std::span<const std::uint8_t> mask) {
  require<ShapeError>(logits.shape().dims() == 2, "logits have shape ", logits.shape(),
                      ", expected [rows, classes]");
  require<ShapeError>(static_cast<Index>(labels.size()) == logits.num_rows() && mask.size() == labels.size(),
                      "logits have ", logits.num_rows(), " rows, but there are ", labels.size(),
                      " labels and a mask of ", mask.size());
}

/// log of the sum of exp over a row, relative to its largest element, which is returned too.
std::pair<real, real> log_sum_exp(const real* row, Index columns) {
  const real largest = *std::max_element(row, row + columns);
  real sum = 0;
  for (Index j = 0; j < columns; ++j) sum += std::exp(row[j] - largest);
  return {largest, std::log(sum)};
}

}  // namespace

Variable cross_entropy(const Variable& logits, std::span<const std::int64_t> labels,
                       std::span<const std::uint8_t> mask, const Communicator& comm) {
  return comm.agree([&]() -> Variable {
    const Tensor& x = logits.value();
    const Index classes = x.row_size();
    Array<std::int32_t> target(x.num_rows());  // the label, or -1 outside the mask
    const SumAndCount total = sum_over_ranks(comm, [&] {
      require_rows(x, labels, mask);
      for (std::size_t i = 0; i < labels.size(); ++i) {
        require<InputError>(mask[i] == 0 || (labels[i] >= 0 && labels[i] < classes), "label ", labels[i],
                            " of row ", i, ", which is in the mask, is not one of the ", classes, " classes");
        target[i] = mask[i] != 0 ? static_cast<std::int32_t>(labels[i]) : -1;
      }
      const auto loss_of_rows = [&](Index begin, Index end) {
        SumAndCount part;
        for (Index i = begin; i < end; ++i) {
          const std::int32_t label = target[i];
          if (label < 0) continue;
          const auto [largest, log_sum] = log_sum_exp(x.row(i), classes);
          part = add(part, {static_cast<double>(largest) - x.row(i)[label] + log_sum, 1});
        }
        return part;
      };
      return parallel_reduce(x.num_rows(), row_grain, SumAndCount{}, loss_of_rows, add);
    });
    require<InputError>(total.count > 0, "cross_entropy over an empty mask: no row of any rank is labelled");

    Tensor loss = scalar(total.sum / total.count);
    if (!recording({&logits})) return loss;
    return record(std::move(loss), [x, target = std::move(target), gradient = logits.gradient(),
                                    count = total.count](const Tensor& grad) {
      const real scale = static_cast<real>(grad.item() / count);
      gradient->add([&](Tensor& out, bool accumulate) {
        parallel_for(x.num_rows(), row_grain, [&](Index begin, Index end) {
          const Index columns = x.row_size();
          for (Index i = begin; i < end; ++i) {
            real* to = out.row(i);
            if (!accumulate) std::fill(to, to + columns, real{0});
            const std::int32_t label = target[i];
            if (label < 0) continue;
            const auto [largest, log_sum] = log_sum_exp(x.row(i), columns);
            for (Index j = 0; j < columns; ++j) to[j] += scale * std::exp(x.row(i)[j] - largest - log_sum);
            to[label] -= scale;
          }
        });
      });
    });
  });
}

Variable bce_with_logits(const Variable& logits, const Tensor& target, const Communicator& comm) {
  return comm.agree([&]() -> Variable {
    const Tensor& x = logits.value();
    const SumAndCount total = sum_over_ranks(comm, [&] {
      require<ShapeError>(x.shape() == target.shape(), "bce_with_logits: logits have shape ", x.shape(),
                          ", expected ", target.shape(), " as the target");
      const auto loss_of_elements = [&](Index begin, Index end) {
        SumAndCount part{0, static_cast<double>(end - begin)};
        for (Index i = begin; i < end; ++i) {
          const real z = x.data()[i];
          part.sum += static_cast<double>(std::max(z, real{0})) - static_cast<double>(z) * target.data()[i] +
                      std::log1p(std::exp(-std::abs(z)));
        }
        return part;
      };
      return parallel_reduce(x.size(), element_grain, SumAndCount{}, loss_of_elements, add);
    });
    require<InputError>(total.count > 0, "bce_with_logits of no elements");

    Tensor loss = scalar(total.sum / total.count);
    if (!recording({&logits})) return loss;
    return record(std::move(loss),
                  [x, target, gradient = logits.gradient(), count = total.count](const Tensor& grad) {
                    const real scale = static_cast<real>(grad.item() / count);
                    gradient->add([&](Tensor& out, bool accumulate) {
                      parallel_for(x.size(), element_grain, [&](Index begin, Index end) {
                        for (Index i = begin; i < end; ++i) {
                          const real z = x.data()[i];
                          const real e = std::exp(-std::abs(z));
                          const real sigmoid = z >= 0 ? 1 / (1 + e) : e / (1 + e);
                          const real g = scale * (sigmoid - target.data()[i]);
                          out.data()[i] = accumulate ? out.data()[i] + g : g;
                        }
                      });
                    });
                  });
  });
}

Variable mse(const Variable& prediction, const Variable& target, const Communicator& comm) {
  return comm.agree([&]() -> Variable {
    const Tensor& p = prediction.value();
    const Tensor& t = target.value();
    const SumAndCount total = sum_over_ranks(comm, [&] {
      require<ShapeError>(p.shape() == t.shape(), "mse: the prediction has shape ", p.shape(), ", expected ",
                          t.shape(), " as the target");
      const auto loss_of_elements = [&](Index begin, Index end) {
        SumAndCount part{0, static_cast<double>(end - begin)};
        for (Index i = begin; i < end; ++i) {
          const double difference = static_cast<double>(p.data()[i]) - t.data()[i];
          part.sum += difference * difference;
        }
        return part;
      };
      return parallel_reduce(p.size(), element_grain, SumAndCount{}, loss_of_elements, add);
    });
    require<InputError>(total.count > 0, "mse of no elements");

    Tensor loss = scalar(total.sum / total.count);
    if (!recording({&prediction, &target})) return loss;
    return record(std::move(loss), [p, t, to_prediction = prediction.gradient(),
                                    to_target = target.gradient(), count = total.count](const Tensor& grad) {
      const auto send = [&](const GradientPtr& gradient, double factor) {
        if (gradient == nullptr) return;
        gradient->add([&](Tensor& out, bool accumulate) {
          parallel_for(p.size(), element_grain, [&](Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
              const real g = static_cast<real>(factor) * (p.data()[i] - t.data()[i]);
              out.data()[i] = accumulate ? out.data()[i] + g : g;
            }
          });
        });
      };
      send(to_prediction, 2 * grad.item() / count);
      send(to_target, -2 * grad.item() / count);
    });
  });
}

double accuracy(const Tensor& logits, std::span<const std::int64_t> labels,
                std::span<const std::uint8_t> mask, const Communicator& comm) {
  return comm.agree([&] {
    const SumAndCount total = sum_over_ranks(comm, [&] {
      require_rows(logits, labels, mask);
      const auto correct_rows = [&](Index begin, Index end) {
        SumAndCount part;
        for (Index i = begin; i < end; ++i) {
          const auto k = static_cast<std::size_t>(i);
          if (mask[k] == 0) continue;
          const real* row = logits.row(i);
          const real* last = row + logits.row_size();
          const bool defined = std::none_of(row, last, [](real z) { return std::isnan(z); });
          const bool correct = defined && std::max_element(row, last) - row == labels[k];
          part = add(part, {correct ? 1.0 : 0.0, 1});
        }
        return part;
      };
      return parallel_reduce(logits.num_rows(), row_grain, SumAndCount{}, correct_rows, add);
    });
    return total.count > 0 ? total.sum / total.count : std::numeric_limits<double>::quiet_NaN();
  });
}

}  // namespace sar

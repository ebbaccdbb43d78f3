#include <sar/core/loss.hpp>
#include <sar/core/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index row_grain = 1024;
constexpr Index element_grain = 1 << 14;

SumAndCount add(SumAndCount a, SumAndCount b) {
  return {a.sum + b.sum, a.count + b.count};
}

/// The largest element of a row, and log sum exp of the row relative to it.
std::pair<real, real> log_sum_exp(const real* row, Index columns) {
  const real largest = *std::max_element(row, row + columns);
  real sum = 0;
  for (Index j = 0; j < columns; ++j) sum += std::exp(row[j] - largest);
  return {largest, std::log(sum)};
}

/// The sum of term(i) over all elements.
template <class Term>
SumAndCount sum_of_terms(Index size, const Term& term) {
  const auto sum_of_block = [&](Index begin, Index end) {
    SumAndCount part{0, static_cast<double>(end - begin)};
    for (Index i = begin; i < end; ++i) part.sum += term(i);
    return part;
  };
  return parallel_reduce(size, element_grain, SumAndCount{}, sum_of_block, add);
}

/// out[i] (+)= gradient(i)
template <class GradientOf>
void write_gradients(Tensor& out, bool accumulate, const GradientOf& gradient) {
  parallel_for(out.size(), element_grain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const real g = gradient(i);
      out.data()[i] = accumulate ? out.data()[i] + g : g;
    }
  });
}

}  // namespace

SumAndCount cross_entropy_sum(const Tensor& x, std::span<const std::int32_t> targets) {
  const auto loss_of_rows = [&](Index begin, Index end) {
    SumAndCount part;
    for (Index i = begin; i < end; ++i) {
      const std::int32_t target = targets[i];
      if (target < 0) continue;
      const auto [largest, log_sum] = log_sum_exp(x.row(i), x.row_size());
      part = add(part, {static_cast<double>(largest) - x.row(i)[target] + log_sum, 1});
    }
    return part;
  };
  return parallel_reduce(x.num_rows(), row_grain, SumAndCount{}, loss_of_rows, add);
}

void cross_entropy_backward(const Tensor& x, std::span<const std::int32_t> targets, real scale, Tensor& out,
                            bool accumulate) {
  parallel_for(x.num_rows(), row_grain, [&](Index begin, Index end) {
    const Index columns = x.row_size();
    for (Index i = begin; i < end; ++i) {
      real* to = out.row(i);
      if (!accumulate) std::fill(to, to + columns, real{0});
      const std::int32_t target = targets[i];
      if (target < 0) continue;
      const auto [largest, log_sum] = log_sum_exp(x.row(i), columns);
      for (Index j = 0; j < columns; ++j) to[j] += scale * std::exp(x.row(i)[j] - largest - log_sum);
      to[target] -= scale;
    }
  });
}

SumAndCount bce_sum(const Tensor& x, const Tensor& target) {
  return sum_of_terms(x.size(), [&](Index i) {
    const real z = x.data()[i];
    return static_cast<double>(std::max(z, real{0})) - static_cast<double>(z) * target.data()[i] +
           std::log1p(std::exp(-std::abs(z)));
  });
}

void bce_backward(const Tensor& x, const Tensor& target, real scale, Tensor& out, bool accumulate) {
  write_gradients(out, accumulate, [&](Index i) {
    const real z = x.data()[i];
    const real e = std::exp(-std::abs(z));
    const real sigmoid = z >= 0 ? 1 / (1 + e) : e / (1 + e);
    return scale * (sigmoid - target.data()[i]);
  });
}

SumAndCount squared_error_sum(const Tensor& a, const Tensor& b) {
  return sum_of_terms(a.size(), [&](Index i) {
    const double difference = static_cast<double>(a.data()[i]) - b.data()[i];
    return difference * difference;
  });
}

void squared_error_backward(const Tensor& a, const Tensor& b, real scale, Tensor& out, bool accumulate) {
  write_gradients(out, accumulate, [&](Index i) { return scale * (a.data()[i] - b.data()[i]); });
}

SumAndCount count_correct(const Tensor& x, std::span<const std::int64_t> labels,
                          std::span<const std::uint8_t> mask) {
  const auto correct_rows = [&](Index begin, Index end) {
    SumAndCount part;
    for (Index i = begin; i < end; ++i) {
      if (mask[i] == 0) continue;
      const real* row = x.row(i);
      const real* last = row + x.row_size();
      const bool defined = std::none_of(row, last, [](real z) { return std::isnan(z); });
      const bool correct = defined && std::max_element(row, last) - row == labels[i];
      part = add(part, {correct ? 1.0 : 0.0, 1});
    }
    return part;
  };
  return parallel_reduce(x.num_rows(), row_grain, SumAndCount{}, correct_rows, add);
}

}  // namespace sar

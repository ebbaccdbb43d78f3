// Cross entropy works on groups of lanes::group rows with a target: one pass for the maxima, one for the
// sums of exponentials (from cache), then the logarithms of all sums of the group as one vector. The backward
// pass keeps the group's exponentials in a buffer and writes out_ij = scale e_ij / sum_i, minus scale at the
// target. The next rows are prefetched during the exponentials. With weights of the classes, the loops over
// the columns add their terms.
//
// The elementwise losses are one loop over blocks of 2^14 elements with partial sums in double precision.
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/simd/prefetch.hpp>
#include <sar/core/simd/row_exponentials.hpp>
#include <sar/core/simd/row_sums.hpp>
#include <sar/core/simd/sum_of.hpp>
#include <sar/core/simd/vector_math.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cmath>

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index row_grain = 1024;
constexpr Index element_grain = 1 << 14;
constexpr Index buffer_size = 512;
using lanes::group;

SumAndCount add(SumAndCount a, SumAndCount b) {
  return {a.sum + b.sum, a.count + b.count};
}

/// Calls body(count, row numbers) for groups of rows of [begin, end) that have a target.
template <class Body>
void for_groups_with_target(std::span<const std::int32_t> targets, Index begin, Index end, const Body& body) {
  Index chosen[group];
  Index count = 0;
  const auto finish = [&] {
    if (count > 0) body(count, chosen);
    count = 0;
  };
  for (Index i = begin; i < end; ++i) {
    if (targets[i] < 0) continue;
    chosen[count++] = i;
    if (count == group) finish();
  }
  finish();
}

/// Returns the sum of terms(begin, end) over blocks of all elements.
template <class Terms>
SumAndCount sum_of_blocks(Index size, const Terms& terms) {
  return parallel_reduce(
      size, element_grain, SumAndCount{},
      [&](Index begin, Index end) {
        return SumAndCount{terms(begin, end), static_cast<double>(end - begin)};
      },
      add);
}

/// to[i] (+)= gradient(i) for i < n
template <class GradientOf>
void write_gradients(real* to, Index n, bool accumulate, const GradientOf& gradient) {
  if (accumulate) {
    for (Index i = 0; i < n; ++i) to[i] += gradient(i);
  } else {
    for (Index i = 0; i < n; ++i) to[i] = gradient(i);
  }
}

/// Returns the sum of term(a - b) over all elements.
template <class Term>
SumAndCount sum_of_differences(const Tensor& a, const Tensor& b, const Term& term) {
  return sum_of_blocks(a.size(), [&, x = a.data(), y = b.data()](Index begin, Index end) {
    return sum_of<double>(end - begin, [&, from = x + begin, to = y + begin](Index i) {
      return term(static_cast<double>(from[i]) - static_cast<double>(to[i]));
    });
  });
}

/// out (+)= gradient(a - b)
template <class GradientOf>
void gradients_of_differences(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate,
                              const GradientOf& gradient) {
  parallel_for(out.size(), element_grain, [&](Index begin, Index end) {
    write_gradients(
        out.data() + begin, end - begin, accumulate,
        [&, x = a.data() + begin, y = b.data() + begin](Index i) { return gradient(x[i] - y[i]); });
  });
}

}  // namespace

SumAndCount cross_entropy_sum(const Tensor& x, std::span<const std::int32_t> targets) {
  const Index columns = x.row_size();
  const auto loss_of_rows = [&](Index begin, Index end) {
    SumAndCount part;
    for_groups_with_target(targets, begin, end, [&](Index count, const Index* rows) {
      double sums[group];
      real largest[group];
      sum_exponentials([&](Index r) { return x.row(rows[r]); }, count, columns,
                       [&](Index r) { prefetch_row_near(x.row(rows[r]) + group * columns, columns); }, sums,
                       largest);
      vector_math::log_of_sums(sums, sums, count);
      for (Index r = 0; r < count; ++r)
        part.sum += static_cast<double>(largest[r]) - x.row(rows[r])[targets[rows[r]]] + sums[r];
      part.count += static_cast<double>(count);
    });
    return part;
  };
  return parallel_reduce(x.num_rows(), row_grain, SumAndCount{}, loss_of_rows, add);
}

void cross_entropy_backward(const Tensor& x, std::span<const std::int32_t> targets, real scale, Tensor& out,
                            bool accumulate) {
  const Index columns = x.row_size();
  parallel_for(x.num_rows(), row_grain, [&](Index begin, Index end) {
    if (!accumulate)
      for (Index i = begin; i < end; ++i)
        if (targets[i] < 0) std::fill_n(out.data() + i * columns, columns, real{0});
    Array<real> exponentials(group * columns);
    for_groups_with_target(targets, begin, end, [&](Index count, const Index* rows) {
      double sums[group];
      real largest[group];
      const auto prefetch = [&](Index r) {
        prefetch_row_near(x.row(rows[r]) + group * columns, columns);
        prefetch_row_to_write(out.row(rows[r]), columns);
      };
      exponentials_of_rows<Keep::exponentials>([&](Index r) { return x.row(rows[r]); }, count, columns,
                                               prefetch, exponentials.data(), sums, largest);
      for (Index r = 0; r < count; ++r) {
        real* to = out.row(rows[r]);
        const auto gradient = [e = exponentials.data() + r * columns,
                               factor = static_cast<real>(scale / sums[r])](auto at) {
          return at(e) * factor;
        };
        if (accumulate) {
          lanes::write_columns(to, columns, [=](auto at) { return at(to) + gradient(at); });
        } else {
          lanes::write_columns(to, columns, gradient);
        }
        to[targets[rows[r]]] -= scale;
      }
    });
  });
}

SumAndCount weighted_cross_entropy_sum(const Tensor& x, std::span<const std::int32_t> targets,
                                       const TargetWeights& weights) {
  const Index columns = x.row_size();
  const auto loss_of_rows = [&](Index begin, Index end) {
    SumAndCount part;
    for_groups_with_target(targets, begin, end, [&](Index count, const Index* rows) {
      double sums[group];
      real largest[group];
      sum_exponentials([&](Index r) { return x.row(rows[r]); }, count, columns,
                       [&](Index r) { prefetch_row_near(x.row(rows[r]) + group * columns, columns); }, sums,
                       largest);
      vector_math::log_of_sums(sums, sums, count);
      for (Index r = 0; r < count; ++r) {
        const real* z = x.row(rows[r]);
        const std::int32_t target = targets[rows[r]];
        const double log_sum = static_cast<double>(largest[r]) + sums[r];
        const auto weight = static_cast<double>(weights.of_class[target]);
        part.sum += weights.kept * weight * (log_sum - static_cast<double>(z[target]));
        part.sum += sum_of<double>(columns, [&](Index c) {
          return static_cast<double>(weights.spread[c]) * (log_sum - static_cast<double>(z[c]));
        });
        part.count += weight;
      }
    });
    return part;
  };
  return parallel_reduce(x.num_rows(), row_grain, SumAndCount{}, loss_of_rows, add);
}

void weighted_cross_entropy_backward(const Tensor& x, std::span<const std::int32_t> targets,
                                     const TargetWeights& weights, real scale, Tensor& out, bool accumulate) {
  const Index columns = x.row_size();
  double spread = 0;
  for (const real part : weights.spread) spread += static_cast<double>(part);
  parallel_for(x.num_rows(), row_grain, [&](Index begin, Index end) {
    if (!accumulate)
      for (Index i = begin; i < end; ++i)
        if (targets[i] < 0) std::fill_n(out.data() + i * columns, columns, real{0});
    Array<real> exponentials(group * columns);
    for_groups_with_target(targets, begin, end, [&](Index count, const Index* rows) {
      double sums[group];
      real largest[group];
      exponentials_of_rows<Keep::exponentials>([&](Index r) { return x.row(rows[r]); }, count, columns,
                                               [](Index) {}, exponentials.data(), sums, largest);
      for (Index r = 0; r < count; ++r) {
        real* to = out.row(rows[r]);
        const std::int32_t target = targets[rows[r]];
        const double kept = weights.kept * static_cast<double>(weights.of_class[target]);
        write_gradients(to, columns, accumulate,
                        [e = exponentials.data() + r * columns, s = weights.spread.data(), scale,
                         factor = static_cast<real>(scale * (kept + spread) / sums[r])](Index c) {
                          return e[c] * factor - s[c] * scale;
                        });
        to[target] -= static_cast<real>(scale * kept);
      }
    });
  });
}

SumAndCount bce_sum(const Tensor& x, const Tensor& target) {
  return sum_of_blocks(x.size(), [&](Index begin, Index end) {
    const auto term = [z = x.data() + begin, t = target.data() + begin](auto at) {
      const auto value = at(z);
      const decltype(at(z)) zero{};
      const auto size = value < zero ? -value : value;
      return (value < zero ? zero : value) - value * at(t) + lanes::log1p_exp_minus(size);
    };
    return lanes::sum(end - begin, term);
  });
}

void bce_backward(const Tensor& x, const Tensor& target, real scale, Tensor& out, bool accumulate) {
  parallel_for(out.size(), element_grain, [&](Index begin, Index end) {
    real sigmoids[buffer_size];
    for (Index first = begin; first < end; first += buffer_size) {
      const Index count = std::min(buffer_size, end - first);
      vector_math::sigmoid(x.data() + first, sigmoids, count);
      write_gradients(out.data() + first, count, accumulate,
                      [&, t = target.data() + first](Index i) { return scale * (sigmoids[i] - t[i]); });
    }
  });
}

SumAndCount squared_error_sum(const Tensor& a, const Tensor& b) {
  return sum_of_differences(a, b, [](double d) { return d * d; });
}

void squared_error_backward(const Tensor& a, const Tensor& b, real scale, Tensor& out, bool accumulate) {
  gradients_of_differences(a, b, out, accumulate, [=](real d) { return scale * d; });
}

SumAndCount absolute_error_sum(const Tensor& a, const Tensor& b) {
  return sum_of_differences(a, b, [](double d) { return std::abs(d); });
}

void absolute_error_backward(const Tensor& a, const Tensor& b, real scale, Tensor& out, bool accumulate) {
  gradients_of_differences(a, b, out, accumulate,  // d gives 0 at 0 and NaN at NaN
                           [=](real d) { return d > 0   ? scale
                                                : d < 0 ? -scale
                                                        : d; });
}

SumAndCount huber_sum(const Tensor& a, const Tensor& b, real delta) {
  return sum_of_differences(a, b, [limit = static_cast<double>(delta)](double d) {
    const double size = std::abs(d);
    return size <= limit ? d * d / 2 : limit * (size - limit / 2);
  });
}

void huber_backward(const Tensor& a, const Tensor& b, real delta, real scale, Tensor& out, bool accumulate) {
  gradients_of_differences(a, b, out, accumulate, [=](real d) {
    const real raised = d < -delta ? -delta : d;
    return scale * (raised > delta ? delta : raised);
  });
}

SumAndCount count_correct(const Tensor& x, std::span<const std::int32_t> targets) {
  const auto correct_rows = [&](Index begin, Index end) {
    SumAndCount part;
    for (Index i = begin; i < end; ++i) {
      if (targets[i] < 0) continue;
      const real* row = x.row(i);
      const real* last = row + x.row_size();
      const bool defined = std::none_of(row, last, [](real z) { return std::isnan(z); });
      const bool correct = defined && std::max_element(row, last) - row == targets[i];
      part = add(part, {correct ? 1.0 : 0.0, 1});
    }
    return part;
  };
  return parallel_reduce(x.num_rows(), row_grain, SumAndCount{}, correct_rows, add);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(SumAndCount, cross_entropy_sum, (const Tensor& x, std::span<const std::int32_t> targets),
             (x, targets));
SAR_DISPATCH(void, cross_entropy_backward,
             (const Tensor& x, std::span<const std::int32_t> targets, real scale, Tensor& out,
              bool accumulate),
             (x, targets, scale, out, accumulate));
SAR_DISPATCH(SumAndCount, weighted_cross_entropy_sum,
             (const Tensor& x, std::span<const std::int32_t> targets, const TargetWeights& weights),
             (x, targets, weights));
SAR_DISPATCH(void, weighted_cross_entropy_backward,
             (const Tensor& x, std::span<const std::int32_t> targets, const TargetWeights& weights,
              real scale, Tensor& out, bool accumulate),
             (x, targets, weights, scale, out, accumulate));
SAR_DISPATCH(SumAndCount, bce_sum, (const Tensor& x, const Tensor& target), (x, target));
SAR_DISPATCH(void, bce_backward,
             (const Tensor& x, const Tensor& target, real scale, Tensor& out, bool accumulate),
             (x, target, scale, out, accumulate));
SAR_DISPATCH(SumAndCount, squared_error_sum, (const Tensor& a, const Tensor& b), (a, b));
SAR_DISPATCH(void, squared_error_backward,
             (const Tensor& a, const Tensor& b, real scale, Tensor& out, bool accumulate),
             (a, b, scale, out, accumulate));
SAR_DISPATCH(SumAndCount, absolute_error_sum, (const Tensor& a, const Tensor& b), (a, b));
SAR_DISPATCH(void, absolute_error_backward,
             (const Tensor& a, const Tensor& b, real scale, Tensor& out, bool accumulate),
             (a, b, scale, out, accumulate));
SAR_DISPATCH(SumAndCount, huber_sum, (const Tensor& a, const Tensor& b, real delta), (a, b, delta));
SAR_DISPATCH(void, huber_backward,
             (const Tensor& a, const Tensor& b, real delta, real scale, Tensor& out, bool accumulate),
             (a, b, delta, scale, out, accumulate));
SAR_DISPATCH(SumAndCount, count_correct, (const Tensor& x, std::span<const std::int32_t> targets),
             (x, targets));

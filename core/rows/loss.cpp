// SPDX-License-Identifier: MIT

// Cross entropy works on groups of lanes::group rows with a target: one pass for the maxima, one for the
// sums of exponentials (from cache), then the logarithms of all sums of the group as one vector. The backward
// pass keeps the group's exponentials in a buffer and writes out_ij = scale e_ij / sum_i, minus scale at the
// target. The next rows are prefetched during the exponentials. With weights of the classes, the loops over
// the columns add their terms.
//
// The elementwise losses are one loop over blocks of 2^14 elements with partial sums in double precision.
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/rows/loss.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/simd/row_exponentials.hpp>
#include <sar/core/simd/row_sums.hpp>
#include <sar/core/simd/vector_math.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cmath>

// Softmax in groups of lanes::group rows, which stay in the cache. Passes over a group: maxima;
// exponentials, written to out and summed (the next group is prefetched here, where arithmetic dominates);
// scaling of out by 1 / sum, or subtraction of log(sum). Lanes run over columns, partial sums stay in
// registers, and the sums of all rows of a group are reduced across lanes together.
//
// Bytes moved per element (float): forward reads 4 and writes 4, backward reads 8 and writes 4.

#include <sar/core/isa/isa_begin.hpp>

namespace {

using lanes::group;

// Elements per parallel block: input, output and exponentials fit into the L2 cache.
constexpr Index grain = 1 << 13;

struct Rows {
  Index count;
  Index width;
  [[nodiscard]] Index block() const {
    return group * std::max<Index>(1, grain / group / std::max<Index>(width, 1));
  }
};

Rows rows_of_last_dimension(const Tensor& x, const Tensor& out) {
  require<ShapeError>(x.defined() && x.shape() == out.shape(), "softmax of a tensor of shape ", x.shape(),
                      " into one of shape ", out.shape());
  const Index width = x.shape()[x.shape().dims() - 1];
  return {width == 0 ? 0 : x.size() / width, width};
}

/// Calls body(offset of the first row, number of rows) for each group of rows.
template <class Body>
void for_groups(const Rows& rows, const Body& body) {
  parallel_for(rows.count, rows.block(), [&](Index begin, Index end) {
    for (Index first = begin; first < end; first += group)
      body(first * rows.width, std::min(group, end - first));
  });
}

/// Returns a function that prefetches the row of the next group that corresponds to row r of this group.
auto next_group(const Rows& rows, const real* from, const real* to) {
  return [=, width = rows.width](Index r) {
    prefetch_row_near(from + (r + group) * width, width);
    prefetch_row_to_write(to + (r + group) * width, width);
  };
}

/// out (+)= value over the columns of a row.
template <class Value>
void add_or_write(real* out, Index width, bool accumulate, const Value& value) {
  if (accumulate) {
    lanes::write_columns(out, width, [=](auto at) { return at(out) + value(at); });
  } else {
    lanes::write_columns(out, width, value);
  }
}

/// sums[r] = sum of row r of `rows`.
void sums_of(const real* rows, Index count, Index width, double (&sums)[group]) {
  lanes::sum_rows(
      count, width, [&](Index r) { return [row = rows + r * width](auto at) { return at(row); }; }, sums);
}

/// Writes to out what `keep` says of the rows of x, then calls finish(row of out, width, sum of its
/// exponentials; with Keep::differences the logarithm of the sum).
template <Keep keep, class Finish>
void transform_rows(const Tensor& x, Tensor& out, const Finish& finish) {
  const Rows rows = rows_of_last_dimension(x, out);
  for_groups(rows, [&](Index offset, Index count) {
    real* to = out.data() + offset;
    double sums[group];
    real largest[group];
    const auto row_of = [&, from = x.data() + offset](Index r) { return from + r * rows.width; };
    exponentials_of_rows<keep>(row_of, count, rows.width, next_group(rows, x.data() + offset, to), to, sums,
                               largest);
    if constexpr (keep == Keep::differences) vector_math::log_of_sums(sums, sums, count);
    for (Index r = 0; r < count; ++r) finish(to + r * rows.width, rows.width, sums[r]);
  });
}

}  // namespace

void softmax_rows(const Tensor& x, Tensor& out) {
  transform_rows<Keep::exponentials>(x, out, [](real* row, Index width, double sum) {
    lanes::write_columns(row, width,
                         [=, scale = static_cast<real>(1 / sum)](auto at) { return at(row) * scale; });
  });
}

void softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate) {
  const Rows rows = rows_of_last_dimension(y, out);
  require<ShapeError>(grad.shape() == y.shape(), "gradient of shape ", grad.shape(), " for softmax of shape ",
                      y.shape());
  for_groups(rows, [&](Index offset, Index count) {
    const real* values = y.data() + offset;
    const real* gradients = grad.data() + offset;
    double sums[group];
    lanes::sum_rows(
        count, rows.width,
        [&](Index r) {
          return [value = values + r * rows.width, g = gradients + r * rows.width](auto at) {
            return at(value) * at(g);
          };
        },
        sums);
    for (Index r = 0; r < count; ++r) {
      const Index row = r * rows.width;
      add_or_write(out.data() + offset + row, rows.width, accumulate,
                   [value = values + row, g = gradients + row, mean = static_cast<real>(sums[r])](auto at) {
                     return at(value) * (at(g) - mean);
                   });
    }
  });
}

void log_softmax_rows(const Tensor& x, Tensor& out) {
  transform_rows<Keep::differences>(x, out, [](real* row, Index width, double log_of_sum) {
    lanes::write_columns(row, width,
                         [=, log_sum = static_cast<real>(log_of_sum)](auto at) { return at(row) - log_sum; });
  });
}

void log_softmax_rows_backward(const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate) {
  const Rows rows = rows_of_last_dimension(y, out);
  require<ShapeError>(grad.shape() == y.shape(), "gradient of shape ", grad.shape(),
                      " for log_softmax of shape ", y.shape());
  for_groups(rows, [&](Index offset, Index count) {
    double sums[group];
    sums_of(grad.data() + offset, count, rows.width, sums);
    for (Index r = 0; r < count; ++r)
      add_or_write(
          out.data() + offset + r * rows.width, rows.width, accumulate,
          [from = y.data() + offset + r * rows.width, g = grad.data() + offset + r * rows.width,
           total = static_cast<real>(sums[r])](auto at) { return at(g) - lanes::exp(at(from)) * total; });
  });
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, softmax_rows, (const Tensor& x, Tensor& out), (x, out));
SAR_DISPATCH(void, softmax_rows_backward, (const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate),
             (y, grad, out, accumulate));
SAR_DISPATCH(void, log_softmax_rows, (const Tensor& x, Tensor& out), (x, out));
SAR_DISPATCH(void, log_softmax_rows_backward,
             (const Tensor& y, const Tensor& grad, Tensor& out, bool accumulate), (y, grad, out, accumulate));

#include <sar/core/isa/isa_begin.hpp>

namespace {

constexpr Index row_grain = 1024;
constexpr Index element_grain = 1 << 14;
constexpr Index buffer_size = 512;
using lanes::group;

SumAndCount add(SumAndCount a, SumAndCount b) {
  a.sum.add(b.sum);
  a.count.add(b.count);
  return a;
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

/// Calls of_row(part, row, largest, log_sum) for the rows with a target and returns the sum of the parts; the
/// exponentials of a row add up to exp(largest + log_sum).
template <class OfRow>
SumAndCount sum_over_rows(const Tensor& x, std::span<const std::int32_t> targets, const OfRow& of_row) {
  const Index columns = x.row_size();
  const auto sum_of_block = [&](Index begin, Index end) {
    SumAndCount part;
    for_groups_with_target(targets, begin, end, [&](Index count, const Index* rows) {
      double sums[group];
      real largest[group];
      sum_exponentials([&](Index r) { return x.row(rows[r]); }, count, columns,
                       [&](Index r) { prefetch_row_near(x.row(rows[r]) + group * columns, columns); }, sums,
                       largest);
      vector_math::log_of_sums(sums, sums, count);
      for (Index r = 0; r < count; ++r) of_row(part, rows[r], static_cast<double>(largest[r]), sums[r]);
    });
    return part;
  };
  return parallel_reduce(x.num_rows(), row_grain, SumAndCount{}, sum_of_block, add);
}

/// Calls of_row(row, e, sum) for the rows with a target, with e_j = exp(x_j - max x) and sum their sum: it
/// writes or adds to the row of out. Without `accumulate`, the other rows become 0.
template <class OfRow>
void gradients_of_rows(const Tensor& x, std::span<const std::int32_t> targets, Tensor& out, bool accumulate,
                       const OfRow& of_row) {
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
      for (Index r = 0; r < count; ++r) of_row(rows[r], exponentials.data() + r * columns, sums[r]);
    });
  });
}

/// Returns the sum of term(i) over [0, n), times weights[i] if there are any, in four sums that run side by
/// side.
template <class Term>
ExactSum exact_sum_of(Index n, std::span<const real> weights, const Term& term) {
  ExactSum part[4];
  if (weights.empty())
    for (Index i = 0; i < n; ++i) part[i % 4].add(static_cast<double>(term(i)));
  else
    for (Index i = 0; i < n; ++i)
      part[i % 4].add(static_cast<double>(weights[i]) * static_cast<double>(term(i)));
  for (Index l = 1; l < 4; ++l) part[0].add(part[l]);
  return part[0];
}

/// Returns the sum of terms(begin, end, weights of these) over blocks of all elements.
template <class Terms>
SumAndCount sum_of_blocks(Index size, std::span<const real> weights, const Terms& terms) {
  return parallel_reduce(
      size, element_grain, SumAndCount{},
      [&](Index begin, Index end) {
        const auto some = weights.empty() ? weights : weights.subspan(begin, end - begin);
        return SumAndCount{terms(begin, end, some), {static_cast<double>(end - begin), 0}};
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
SumAndCount sum_of_differences(const Tensor& a, const Tensor& b, std::span<const real> weights,
                               const Term& term) {
  return sum_of_blocks(a.size(), weights, [&](Index begin, Index end, std::span<const real> some) {
    return exact_sum_of(end - begin, some, [&, from = a.data() + begin, to = b.data() + begin](Index i) {
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

SumAndCount cross_entropy_sum(const Tensor& x, std::span<const std::int32_t> targets,
                              const TargetWeights* weights) {
  return sum_over_rows(x, targets, [&](SumAndCount& part, Index row, double largest, double log_sum) {
    const real* z = x.row(row);
    const std::int32_t target = targets[row];
    if (weights == nullptr) {
      part.sum.add(largest - static_cast<double>(z[target]) + log_sum);
      return part.count.add(1);
    }
    const double whole = largest + log_sum;
    const auto weight = static_cast<double>(weights->of_class[target]);
    const double of_row = weights->row(row);
    part.sum.add(of_row * weights->kept * weight * (whole - static_cast<double>(z[target])));
    if (weights->kept < 1)  // otherwise zeros, also times the loss of a class whose logit is -inf
      part.sum.add(of_row * sum_of<double>(x.row_size(), [&](Index c) {
                     return static_cast<double>(weights->spread[c]) * (whole - static_cast<double>(z[c]));
                   }));
    part.count.add(of_row * weight);
  });
}

void cross_entropy_backward(const Tensor& x, std::span<const std::int32_t> targets, real scale, Tensor& out,
                            bool accumulate, const TargetWeights* weights) {
  double spread = 0;
  if (weights != nullptr)
    for (const real part : weights->spread) spread += static_cast<double>(part);
  gradients_of_rows(x, targets, out, accumulate, [&](Index row, const real* exponentials, double sum) {
    real* to = out.row(row);
    real& at_target = to[targets[row]];
    if (weights == nullptr) {
      add_or_write(to, x.row_size(), accumulate,
                   [exponentials, factor = static_cast<real>(scale / sum)](auto at) {
                     return at(exponentials) * factor;
                   });
      at_target -= scale;
      return;
    }
    const double kept = weights->kept * static_cast<double>(weights->of_class[targets[row]]);
    const auto of_row = static_cast<real>(scale * weights->row(row));
    write_gradients(to, x.row_size(), accumulate,
                    [exponentials, s = weights->spread.data(), of_row,
                     factor = static_cast<real>(of_row * (kept + spread) / sum)](Index c) {
                      return exponentials[c] * factor - s[c] * of_row;
                    });
    at_target -= static_cast<real>(of_row * kept);
  });
}

SumAndCount element_loss_sum(const ElementLoss& loss, const Tensor& a, const Tensor& b,
                             std::span<const real> weights) {
  switch (loss.kind) {
    case ElementLoss::bce:
      return sum_of_blocks(a.size(), weights, [&](Index begin, Index end, std::span<const real> some) {
        const auto term = [z = a.data() + begin, t = b.data() + begin](auto at) {
          const auto value = at(z);
          const decltype(at(z)) zero{};
          const auto size = value < zero ? -value : value;
          return (value < zero ? zero : value) - value * at(t) + lanes::log1p_exp_minus(size);
        };
        Array<real> terms(end - begin);
        lanes::write_columns(terms.data(), end - begin, term);
        return exact_sum_of(end - begin, some, [&](Index i) { return terms[i]; });
      });
    case ElementLoss::squared:
      return sum_of_differences(a, b, weights, [](double d) { return d * d; });
    case ElementLoss::absolute:
      return sum_of_differences(a, b, weights, [](double d) { return std::abs(d); });
    case ElementLoss::huber:
      return sum_of_differences(a, b, weights, [limit = static_cast<double>(loss.limit())](double d) {
        const double size = std::abs(d);
        return size <= limit ? d * d / 2 : limit * (size - limit / 2);
      });
  }
  return {};
}

void element_loss_backward(const ElementLoss& loss, const Tensor& a, const Tensor& b, real scale, Tensor& out,
                           bool accumulate) {
  switch (loss.kind) {
    case ElementLoss::bce:
      return parallel_for(out.size(), element_grain, [&](Index begin, Index end) {
        real sigmoids[buffer_size];
        for (Index first = begin; first < end; first += buffer_size) {
          const Index count = std::min(buffer_size, end - first);
          vector_math::sigmoid(a.data() + first, sigmoids, count);
          write_gradients(out.data() + first, count, accumulate,
                          [&, t = b.data() + first](Index i) { return scale * (sigmoids[i] - t[i]); });
        }
      });
    case ElementLoss::squared:
      return gradients_of_differences(a, b, out, accumulate,
                                      [twice = 2 * scale](real d) { return twice * d; });
    case ElementLoss::absolute:
      return gradients_of_differences(a, b, out, accumulate,  // d gives 0 at 0 and NaN at NaN
                                      [=](real d) { return d > 0   ? scale
                                                           : d < 0 ? -scale
                                                                   : d; });
    case ElementLoss::huber:
      return gradients_of_differences(a, b, out, accumulate, [scale, delta = loss.limit()](real d) {
        const real raised = d < -delta ? -delta : d;
        return scale * (raised > delta ? delta : raised);
      });
  }
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
      part.sum.add(correct ? 1.0 : 0.0);
      part.count.add(1);
    }
    return part;
  };
  return parallel_reduce(x.num_rows(), row_grain, SumAndCount{}, correct_rows, add);
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(SumAndCount, cross_entropy_sum,
             (const Tensor& x, std::span<const std::int32_t> targets, const TargetWeights* weights),
             (x, targets, weights));
SAR_DISPATCH(void, cross_entropy_backward,
             (const Tensor& x, std::span<const std::int32_t> targets, real scale, Tensor& out,
              bool accumulate, const TargetWeights* weights),
             (x, targets, scale, out, accumulate, weights));
SAR_DISPATCH(SumAndCount, element_loss_sum,
             (const ElementLoss& loss, const Tensor& a, const Tensor& b, std::span<const real> weights),
             (loss, a, b, weights));
SAR_DISPATCH(void, element_loss_backward,
             (const ElementLoss& loss, const Tensor& a, const Tensor& b, real scale, Tensor& out,
              bool accumulate),
             (loss, a, b, scale, out, accumulate));
SAR_DISPATCH(SumAndCount, count_correct, (const Tensor& x, std::span<const std::int32_t> targets),
             (x, targets));

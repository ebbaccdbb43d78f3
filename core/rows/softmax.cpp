// SPDX-License-Identifier: MIT

// Softmax in groups of lanes::group rows, which stay in the cache. Passes over a group: maxima;
// exponentials, written to out and summed (the next group is prefetched here, where arithmetic dominates);
// scaling of out by 1 / sum, or subtraction of log(sum). Lanes run over columns, partial sums stay in
// registers, and the sums of all rows of a group are reduced across lanes together.
//
// Bytes moved per element (float): forward reads 4 and writes 4, backward reads 8 and writes 4.
#include <sar/core/error.hpp>
#include <sar/core/rows/softmax.hpp>
#include <sar/core/simd/prefetch.hpp>
#include <sar/core/simd/row_exponentials.hpp>
#include <sar/core/simd/row_sums.hpp>
#include <sar/core/simd/vector_math.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>

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

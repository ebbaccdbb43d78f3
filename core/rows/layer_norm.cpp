// SPDX-License-Identifier: MIT

// Layer normalization in groups of 64 bytes / sizeof(real) rows (lanes::group). Passes over a group: sums
// of x, sums of x - center, sums of (x - center)^2, then the pass that writes the result. The first pass
// reads the group from memory, the others from the L1 cache; the second and third prefetch the next group.
// Within a pass, the lanes of a vector run over columns; partial sums stay in registers. The statistics of a
// group are in arrays of one value per row.
#include <sar/core/rows/layer_norm.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/simd/loop_hints.hpp>
#include <sar/core/simd/row_sums.hpp>
#include <sar/core/threads/parallel.hpp>

#include <algorithm>
#include <cmath>

#include <sar/core/isa/isa_begin.hpp>

namespace {

using lanes::group;

constexpr Index row_grain = 256;
static_assert(row_grain % group == 0);

/// xhat = (x - center) inv_std + shift for each row of a group. center is the mean rounded to `real`, so that
/// the difference is exact for x near the mean; shift contains the rounding error.
struct Normalization {
  real center[group], inv_std[group], shift[group];

  /// Computes the statistics of `count` rows starting at `x`.
  Normalization(const real* x, Index count, Index columns, double eps) {
    const double share = 1 / static_cast<double>(columns);
    double sums[group], squares[group];
    lanes::sum_rows(
        count, columns, [&](Index r) { return [row = x + r * columns](auto at) { return at(row); }; }, sums);
    for (Index r = 0; r < group; ++r) center[r] = static_cast<real>(sums[r] * share);
    const auto deviation = [&](Index r) {
      prefetch_row_near(x + (r + group) * columns, columns);
      return [row = x + r * columns, c = center[r]](auto at) { return at(row) - c; };
    };
    lanes::sum_rows(count, columns, deviation, sums);
    lanes::sum_rows(
        count, columns,
        [&](Index r) {
          return [d = deviation(r)](auto at) {
            const auto value = d(at);
            return value * value;
          };
        },
        squares);
    for (Index r = 0; r < group; ++r) {
      const double mean = sums[r] * share;  // mean of the deviations from the center
      const double inverse = 1 / std::sqrt(std::max(squares[r] * share - mean * mean, 0.0) + eps);
      inv_std[r] = static_cast<real>(inverse);
      shift[r] = static_cast<real>(-mean * inverse);
    }
  }

  /// Returns xhat of row r of the group as a function of the place; `row` points to the row.
  [[nodiscard]] auto xhat(Index r, const real* row) const {
    return [row, c = center[r], s = inv_std[r], b = shift[r]](auto at) { return (at(row) - c) * s + b; };
  }
};

/// Calls body(offset of the first row, count, normalization) for each group of rows [begin, end) of x.
template <class Body>
void for_groups(const Tensor& x, Index begin, Index end, double eps, const Body& body) {
  const Index columns = x.row_size();
  for (Index first = begin; first < end; first += group) {
    const Index count = std::min(group, end - first);
    body(first * columns, count, Normalization(x.data() + first * columns, count, columns, eps));
  }
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y) {
  const Index columns = x.row_size();
  const real* w = weight.data();
  const real* b = bias.data();
  parallel_for(x.num_rows(), row_grain, [&](Index begin, Index end) {
    for_groups(x, begin, end, eps, [&](Index first, Index count, const Normalization& n) {
      for (Index r = 0; r < count; ++r) {
        const auto xhat = n.xhat(r, x.data() + first + r * columns);
        real* to = y.data() + first + r * columns;
        if (w != nullptr) {
          lanes::write_columns(to, columns, [=](auto at) { return xhat(at) * at(w) + at(b); });
        } else {
          lanes::write_columns(to, columns, xhat);
        }
      }
    });
  });
}

void layer_norm_backward_sums(const Tensor& x, const Tensor& grad, double eps, std::span<double> sums) {
  const Index columns = x.row_size();
  const auto add_rows = [&](Index begin, Index end, double* sum_gx) {
    double* sum_g = sum_gx + columns;
    for_groups(x, begin, end, eps, [&](Index first, Index count, const Normalization& n) {
      for (Index r = 0; r < count; ++r) {
        const auto xhat = n.xhat(r, x.data() + first + r * columns);
        const real* g = grad.data() + first + r * columns;
        for (Index j = 0; j < columns; ++j) {
          sum_gx[j] += static_cast<double>(g[j]) * xhat(lanes::AtNumber{j});
          sum_g[j] += static_cast<double>(g[j]);
        }
      }
    });
  };
  sum_row_blocks(x.num_rows(), 4 * columns, add_rows, sums);
}

void layer_norm_backward_x(const Tensor& x, const Tensor& weight, double eps, Tensor& g) {
  const Index columns = x.row_size();
  const auto inverse_columns = 1 / static_cast<double>(columns);
  // h_of_row(row) returns h = g weight as a function of the place
  const auto run = [&](const auto& h_of_row) {
    parallel_for(x.num_rows(), row_grain, [&](Index begin, Index end) {
      for_groups(x, begin, end, eps, [&](Index first, Index count, const Normalization& n) {
        const real* x_row = x.data() + first;
        real* g_row = g.data() + first;
        const auto h_of = [&](Index r) { return h_of_row(g_row + r * columns); };
        double sum_h[group], sum_hx[group];
        lanes::sum_rows(count, columns, h_of, sum_h);
        lanes::sum_rows(
            count, columns,
            [&](Index r) {
              return
                  [h = h_of(r), xhat = n.xhat(r, x_row + r * columns)](auto at) { return h(at) * xhat(at); };
            },
            sum_hx);
        for (Index r = 0; r < count; ++r) {
          const real mean_h = static_cast<real>(sum_h[r] * inverse_columns);
          const real mean_hx = static_cast<real>(sum_hx[r] * inverse_columns);
          lanes::write_columns(g_row + r * columns, columns,
                               [=, h = h_of(r), xhat = n.xhat(r, x_row + r * columns), s = n.inv_std[r]](
                                   auto at) { return (h(at) - mean_h - xhat(at) * mean_hx) * s; });
        }
      });
    });
  };
  if (weight.defined()) {
    run([w = weight.data()](const real* row) { return [w, row](auto at) { return at(row) * at(w); }; });
  } else {
    run([](const real* row) { return [row](auto at) { return at(row); }; });
  }
}

#include <sar/core/isa/isa_end.hpp>

SAR_DISPATCH(void, layer_norm,
             (const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y),
             (x, weight, bias, eps, y));
SAR_DISPATCH(void, layer_norm_backward_sums,
             (const Tensor& x, const Tensor& grad, double eps, std::span<double> sums), (x, grad, eps, sums));
SAR_DISPATCH(void, layer_norm_backward_x, (const Tensor& x, const Tensor& weight, double eps, Tensor& g),
             (x, weight, eps, g));

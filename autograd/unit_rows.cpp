// SPDX-License-Identifier: MIT

// Rows in parallel blocks of about 2^15 elements. Forward: the norm of a row, then its product with scale
// / norm, from cache. Backward: the norm again, x . g, then dx; blocks have partial sums of the gradient
// of `scale`. Bytes moved: x read and y written; x and g read and dx written.
#include <sar/autograd/row_sums.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/autograd/unit_rows.hpp>
#include <sar/core/rows/reduce.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr double smallest_norm = 1e-12;

double norm(const real* row, Index width) {
  double sum = 0;
  for (Index j = 0; j < width; ++j) sum += static_cast<double>(row[j]) * static_cast<double>(row[j]);
  return std::sqrt(sum);
}

}  // namespace

Variable scaled_unit_rows(const Variable& x, const Variable& scale) {
  const Tensor& rows = x.value();
  const Index width = rows.row_size();
  const Index grain = std::max<Index>((1 << 15) / std::max<Index>(width, 1), 1);
  Tensor out(x.shape());
  const auto factor = static_cast<double>(scale.value().item());
  parallel_for_each(x.num_rows(), grain, [&](Index i) {
    const real* row = rows.row(i);
    const auto c = static_cast<real>(factor / std::max(norm(row, width), smallest_norm));
    for (Index j = 0; j < width; ++j) out.row(i)[j] = c * row[j];
  });
  if (!recording({&x, &scale})) return out;
  // With n = max(|x|, 1e-12) and g the gradient of y:
  //     dscale = sum_i (x_i . g_i) / n_i
  //     dx = scale / n (g - x (x . g) / n^2), without the second term where |x| <= 1e-12
  return record(std::move(out), [x, scale, factor, width, sums = rank_sums()](const Tensor& grad) {
    Tensor grad_x;
    if (x.requires_grad()) grad_x = Tensor(x.shape());
    double grad_scale = 0;
    const Tensor& values = x.value();
    sum_row_blocks(
        x.num_rows(), width,
        [&](Index first, Index last, double* partial) {
          for (Index i = first; i < last; ++i) {
            const real* row = values.row(i);
            const real* g = grad.row(i);
            const double length = norm(row, width);
            const double inverse = 1 / std::max(length, smallest_norm);
            double dot = 0;
            for (Index j = 0; j < width; ++j) dot += static_cast<double>(row[j]) * static_cast<double>(g[j]);
            *partial += dot * inverse;
            if (!grad_x.defined()) continue;
            const double along = length > smallest_norm ? dot * inverse * inverse : 0;
            for (Index j = 0; j < width; ++j)
              grad_x.row(i)[j] = static_cast<real>(
                  factor * inverse * (static_cast<double>(g[j]) - along * static_cast<double>(row[j])));
          }
        },
        {&grad_scale, 1});
    if (grad_x.defined()) x.gradient()->add(std::move(grad_x));
    if (scale.requires_grad() && sums != nullptr) {
      Tensor terms({x.num_rows(), 1});
      for (Index i = 0; i < x.num_rows(); ++i) {
        const real* row = values.row(i);
        double dot = 0;
        for (Index j = 0; j < width; ++j)
          dot += static_cast<double>(row[j]) * static_cast<double>(grad.row(i)[j]);
        terms.data()[i] = static_cast<real>(dot / std::max(norm(row, width), smallest_norm));
      }
      scale.gradient()->add(row_sums(sums, scale.shape(), terms));
    } else if (scale.requires_grad())
      scale.gradient()->add(Tensor::full(scale.shape(), static_cast<real>(grad_scale)));
  });
}

}}  // namespace sar

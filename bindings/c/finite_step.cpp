// SPDX-License-Identifier: MIT

// Reads each gradient once for the check and once for the norm; arrays are searched only after a loss that is
// not finite.
#include <sar/bindings/c/finite_step.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/nn/train/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace sar { inline namespace SAR_PRECISION { namespace c_interface {
namespace {

constexpr const char* nothing_changed =
    "; nothing has changed (with \"require_finite\": false, the optimizer takes such steps)";

bool is_finite(real value) {
  return std::isfinite(value);
}

bool all_finite(const Tensor& x) {
  // A sum of squares that is finite has finite parts; in double precision it may overflow.
  return std::isfinite(sum_squares(x)) || std::ranges::all_of(std::as_const(x).values(), is_finite);
}

/// Throws InputError if a row that counts has a value that is not finite.
void require_finite_rows(double loss, const StepRows& given) {
  if (!given.rows.defined()) return;
  const Index width = given.rows.row_size();
  for (Index i = 0; i < given.rows.num_rows(); ++i) {
    if (!given.mask.empty() && given.mask[static_cast<std::size_t>(i)] == 0) continue;
    const std::span<const real> row(std::as_const(given.rows).row(i), static_cast<std::size_t>(width));
    const auto found = std::ranges::find_if_not(row, is_finite);
    require<InputError>(found == row.end(), "the loss is ", loss, ", expected a finite number: the array '",
                        given.name, "' has the value ", found == row.end() ? real{0} : *found, " in row ", i,
                        ", field ", found - row.begin(), nothing_changed);
  }
}

}  // namespace

void require_finite_loss(const Communicator& comm, double loss, std::span<const StepRows> given) {
  if (std::isfinite(loss)) return;
  comm.agree([&] {
    for (const StepRows& rows : given) require_finite_rows(loss, rows);
  });
  throw InputError(concat("the loss is ", loss, ", expected a finite number", nothing_changed));
}

void prepare_gradients(Module& model, const GradientOptions& options) {
  if (options.require_finite)
    for (const auto& [name, parameter] : model.named_parameters())
      if (const Tensor gradient = parameter.grad(); gradient.defined())
        require<InputError>(all_finite(gradient), "the gradient of ", name, " has a value that is not finite",
                            nothing_changed);
  if (std::isfinite(options.clip_grad_norm)) clip_grad_norm(model, options.clip_grad_norm);
  if (std::isfinite(options.clip_grad_value)) clip_grad_value(model, options.clip_grad_value);
}
}}}  // namespace sar

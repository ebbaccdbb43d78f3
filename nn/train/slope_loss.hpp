// SPDX-License-Identifier: MIT

/// Losses of a network's results and of their derivatives in its inputs: forces, stresses, Sobolev training.
#pragma once

#include <sar/autograd/variable.hpp>

#include <functional>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// y = f(x_0, x_1, ...), computed by a network.
using SlopeFunction = std::function<Variable(const std::vector<Variable>& inputs)>;
/// Returns the loss [1] of y and the slopes g_k, as the losses of nn/modules/reductions.hpp.
using SlopeLoss = std::function<Variable(const Variable& y, const std::vector<Variable>& slopes)>;

struct ValueAndSlopes {
  Tensor value;                ///< y
  std::vector<Tensor> slopes;  ///< d (sum of y) / d x_k, in the shape of x_k
};

/// Returns f(x) and its slopes. The caller needs no tape; gradients of parameters stay unchanged. Collective
/// if f is.
ValueAndSlopes value_and_slopes(const SlopeFunction& f, const std::vector<Tensor>& inputs);

/// Adds the gradients of L(y, g) to all variables that f reads and that require one, where
///
///     y = f(x)        g_k = d (sum of y) / d x_k
///
/// and returns L. For y an energy of all ranks, as PotentialNetwork::energy(), forces are -g. The slopes cost
/// a forward and a backward pass of f. With a = dL/dy and v = dL/dg as constants, a pass of f on dual
/// variables (autograd/dual.hpp) then gives the gradients, exactly:
///
///     dL/dtheta = d/dtheta (sum of a y + sum of the tangent of y),    x_k with the tangent v_k
///
/// `f` is called twice and must compute the same both times. Throws InputError, with its name, if f uses an
/// operation without a tangent; Error if no gradient is required. Collective if f or loss is; an exception
/// is then the same on every rank if theirs is.
///
/// @code
/// const Linear net(2, 1, gen);
/// const auto f = [&](const std::vector<Variable>& x) { return net(x[0] * x[0]); };
/// backward_slope_loss(f, {Tensor::full({5, 2}, 1)}, [&](const Variable& y, const std::vector<Variable>& g) {
///   return mean(y * y, comm) + mean(g[0] * g[0], comm);
/// });
/// @endcode
double backward_slope_loss(const SlopeFunction& f, const std::vector<Tensor>& inputs, const SlopeLoss& loss);

}}  // namespace sar

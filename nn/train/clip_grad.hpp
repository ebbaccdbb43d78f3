// SPDX-License-Identifier: MIT

/// Gradient clipping, equivalent to torch.nn.utils. Call it between gather_grads and the optimizer's step:
///
///     gather_grads(comm, model);
///     clip_grad_norm(model, 1.0);
///     optimizer.step();
///
/// Local: after gather_grads the gradients are the same on every rank, and so are the clipped ones.
#pragma once

#include <sar/nn/modules/module.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// Local. Multiplies each gradient by
///
///     min(1, max_norm / (n + 1e-6))
///
/// where n is the Euclidean norm of the gradients of all parameters together, and returns n (torch's
/// clip_grad_norm_). If n is NaN, all gradients become NaN. Throws InputError unless max_norm >= 0.
double clip_grad_norm(Module& module, double max_norm);

/// Local. Clamps every element of every gradient to [-clip_value, clip_value] (torch's clip_grad_value_).
/// NaN stays NaN. Throws InputError unless clip_value >= 0.
void clip_grad_value(Module& module, double clip_value);

}}  // namespace sar

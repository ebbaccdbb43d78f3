/// Clipping of gradients, as torch.nn.utils does it. Between gather_grads and the optimizer's step:
///
///     gather_grads(comm, model);
///     clip_grad_norm(model, 1.0);
///     optimizer.step();
///
/// Local: after gather_grads, the gradients are the same on every rank, and so are the results.
#pragma once

#include <sar/nn/module.hpp>

namespace sar::inline SAR_PRECISION {

/// With n the Euclidean norm of the gradients of all parameters together, multiplies each gradient by
///
///     min(1, max_norm / (n + 1e-6))
///
/// and returns n (torch's clip_grad_norm_). When n is NaN, so is every gradient afterwards. Throws InputError
/// unless max_norm is 0 or more. Local.
double clip_grad_norm(Module& module, double max_norm);

/// Puts every element of every gradient between -clip_value and clip_value (torch's clip_grad_value_); NaN
/// stays. Throws InputError unless clip_value is 0 or more. Local.
void clip_grad_value(Module& module, double clip_value);

}  // namespace sar

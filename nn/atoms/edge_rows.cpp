// SPDX-License-Identifier: MIT

// The tangent of the radial rows is an operation of its own, linear in the tangent of d, whose gradient needs
// the second derivatives. Messages are linear in phi and in the filter, and but for the scalars a also in
// direction and vectors together: their tangent is the sum of messages with one of the three replaced by its
// tangent.
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/atoms/edge_rows.hpp>
#include <sar/nn/atoms/vector_messages.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// J t, with J the derivative of radial_rows() in d.
Variable radial_tangent(const Variable& d, const Variable& t, const RadialFunctions& functions) {
  const Tensor at = d.value(), tangent = t.value();
  Tensor out({at.num_rows(), functions.columns()});
  radial_rows_tangent(functions, at, tangent, out);
  if (!recording({&d, &t})) return out;
  return record(std::move(out),
                [at, tangent, functions, dd = d.gradient(), dt = t.gradient()](const Tensor& grad) {
                  if (dt != nullptr) {
                    Tensor gradient(at.shape());
                    radial_rows_backward(functions, at, grad, gradient);
                    dt->add(std::move(gradient));
                  }
                  if (dd != nullptr) {
                    Tensor gradient(at.shape());
                    radial_rows_tangent_backward(functions, at, tangent, grad, gradient);
                    dd->add(std::move(gradient));
                  }
                });
}

/// vector_messages() of operands without tangents; without `scalars`, with 0 in place of a.
Variable messages(const Variable& phi, const Variable& filter, const Variable& direction,
                  const Variable& vectors, bool scalars) {
  const Tensor p = phi.value(), w = filter.value(), d = direction.value();
  const Tensor v = vectors.defined() ? vectors.value() : Tensor();
  Tensor out({p.num_rows(), p.row_size() / 3 * 4});
  vector_messages(VectorMessageRows{p, w, d, v, scalars}, out);
  if (!recording({&phi, &filter, &direction, &vectors})) return out;
  return record(std::move(out), [p, w, d, v, scalars, of_phi = phi.gradient(), of_filter = filter.gradient(),
                                 of_direction = direction.gradient(),
                                 of_vectors = vectors.gradient()](const Tensor& grad) {
    const auto like = [](const Tensor& x, const GradientPtr& to) {
      return to != nullptr ? Tensor(x.shape()) : Tensor();
    };
    VectorMessageGradients gradients{.phi = like(p, of_phi),
                                     .filter = like(w, of_filter),
                                     .direction = like(d, of_direction),
                                     .vectors = like(v, of_vectors)};
    vector_messages_backward(VectorMessageRows{p, w, d, v, scalars}, grad, gradients);
    if (of_phi != nullptr) of_phi->add(std::move(gradients.phi));
    if (of_filter != nullptr) of_filter->add(std::move(gradients.filter));
    if (of_direction != nullptr) of_direction->add(std::move(gradients.direction));
    if (of_vectors != nullptr) of_vectors->add(std::move(gradients.vectors));
  });
}

}  // namespace

Variable radial_rows(const Variable& d, const RadialFunctions& functions) {
  if (d.is_dual())
    return make_dual(radial_rows(d.primal(), functions), radial_tangent(d.primal(), d.tangent(), functions));
  const Tensor at = d.value();
  require<ShapeError>(at.shape().dims() == 2 && at.row_size() == 3, "radial_rows of vectors of shape ",
                      at.shape(), ", expected [n, 3]");
  Tensor out({at.num_rows(), functions.columns()});
  radial_rows(functions, at, out);
  if (!recording({&d})) return out;
  return record(std::move(out), [at, functions, dd = d.gradient()](const Tensor& grad) {
    Tensor gradient(at.shape());
    radial_rows_backward(functions, at, grad, gradient);
    dd->add(std::move(gradient));
  });
}

Variable vector_messages(const Variable& phi, const Variable& filter, const Variable& direction,
                         const Variable& vectors) {
  const bool has_vectors = vectors.defined();
  const Index n = phi.num_rows(), feats = phi.shape().row_size() / 3;
  require<ShapeError>(phi.shape() == Shape{n, 3 * feats} && filter.shape() == phi.shape() &&
                          direction.shape() == Shape{n, 3} &&
                          (!has_vectors || vectors.shape() == Shape{n, 3, feats}),
                      "vector_messages of phi ", phi.shape(), ", filter ", filter.shape(), ", direction ",
                      direction.shape(), " and vectors ", vectors.shape(),
                      ", expected [n, 3 F], [n, 3 F], [n, 3] and [n, 3, F]");
  if (any_dual({&phi, &filter, &direction, &vectors})) {
    const Variable p = phi.primal(), w = filter.primal(), d = direction.primal(), v = vectors.primal();
    Variable tangent;
    const auto add = [&](const Variable& term) {
      tangent = tangent.defined() ? std::exchange(tangent, {}) + term : term;
    };
    if (phi.is_dual()) add(messages(phi.tangent(), w, d, v, true));
    if (filter.is_dual()) add(messages(p, filter.tangent(), d, v, true));
    if (direction.is_dual() || vectors.is_dual())
      add(messages(p, w, tangent_or_zeros(direction), vectors.tangent(), false));
    return make_dual(messages(p, w, d, v, true), tangent);
  }
  return messages(phi, filter, direction, vectors, true);
}

}}  // namespace sar

// SPDX-License-Identifier: MIT
#include <sar/autograd/ops.hpp>
#include <sar/core/error.hpp>
#include <sar/nn/modules/typed_linear.hpp>

#include <utility>

namespace sar { inline namespace SAR_PRECISION {

TypedLinear::TypedLinear(Index in_size, Index out_size, Index num_types, Generator& gen,
                         const TypedLinearOptions& options)
    : in_size_(in_size), out_size_(out_size), num_types_(num_types), options_(options) {
  require<InputError>(in_size > 0 && out_size > 0 && num_types > 0 && options.num_bases >= 0,
                      "TypedLinear from ", in_size, " to ", out_size, " features with ", num_types,
                      " types and ", options.num_bases, " bases");
  if (options_.num_bases == 0) options_.num_bases = num_types;
  const Index bases = options_.num_bases;
  const bool basis = options.regularizer == Regularizer::basis, bdd = options.regularizer == Regularizer::bdd;
  require<InputError>(!bdd || (in_size % bases == 0 && out_size % bases == 0), "TypedLinear from ", in_size,
                      " to ", out_size, " features in ", bases, " blocks");
  const Shape shape = bdd ? Shape{num_types, in_size * out_size / bases}
                          : Shape{basis ? bases : num_types, in_size, out_size};
  const Index fan_in = bdd ? in_size / bases : in_size;
  register_parameter("W", weight_, init::linear_uniform(shape, fan_in, gen.next_stream()));
  if (!basis) return;
  const Shape coefficients{num_types, bases};
  register_parameter("coeff", coeff_, init::xavier_uniform(coefficients, init::relu_gain, gen.next_stream()));
}

Variable TypedLinear::matrices() const {
  const Index bases = options_.num_bases;
  switch (options_.regularizer) {
    case Regularizer::none:
      return weight_;
    case Regularizer::basis:
      return reshape(matmul(coeff_, reshape(weight_, {bases, in_size_ * out_size_})),
                     {num_types_, in_size_, out_size_});
    case Regularizer::bdd:
      return reshape(weight_, {num_types_, bases, in_size_ / bases, out_size_ / bases});
  }
  return {};
}

Variable TypedLinear::operator()(Variable x, std::span<const Index> types) const {
  return gather_mm(std::move(x), matrices(), types);
}

}}  // namespace sar

// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/nn/modules/hetero_linear.hpp>
#include <sar/nn/modules/relation_key.hpp>

namespace sar { inline namespace SAR_PRECISION {

HeteroLinear::HeteroLinear(const std::map<std::string, Index>& in_sizes, Index out_size, Generator& gen,
                           bool bias) {
  register_module("linears", linears_);
  for (const auto& [type, in_size] : in_sizes) {
    const auto linear = of_type_.try_emplace(type, in_size, out_size, gen, bias).first;
    linears_.register_module(relation_key(type), linear->second);
  }
}

HeteroLinear::Rows HeteroLinear::operator()(const Rows& x) const {
  Rows y;
  for (const auto& [type, rows] : x) {
    const auto linear = of_type_.find(type);
    require<InputError>(linear != of_type_.end(), "HeteroLinear got rows of the type '", type,
                        "', for which it has no linear map");
    y.emplace(type, linear->second(rows));
  }
  return y;
}

}}  // namespace sar

// SPDX-License-Identifier: MIT

/// One linear map per node type, or per any other key.
#pragma once

#include <sar/nn/modules/linear.hpp>

#include <map>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// Equivalent to dgl.nn.HeteroLinear: y_t = x_t W_t^T + b_t for each type t. Input widths differ by type; the
/// output width is common.
///
/// Parameters: linears.TYPE.weight [out, in_t] and linears.TYPE.bias [out], as in Linear. The canonical name
/// of a relation, "user:follows:user", is written in DGL's form ('user', 'follows', 'user').
class HeteroLinear : public Module {
 public:
  using Rows = std::map<std::string, Variable>;  ///< keyed by type

  /// Draws streams from the Generator in the order of the types' names. Throws InputError unless all widths
  /// are positive.
  HeteroLinear(const std::map<std::string, Index>& in_sizes, Index out_size, Generator& gen,
               bool bias = true);

  /// Local. x: rows of some of the types, [n_t, in_t] -> [n_t, out] for the same types. Throws InputError
  /// for an unknown type, ShapeError if a width does not match.
  [[nodiscard]] Rows operator()(const Rows& x) const;

 private:
  struct Linears : Module {
    using Module::register_module;
  };
  Linears linears_;
  std::map<std::string, Linear> of_type_;
};

}}  // namespace sar

/// A linear map, or learnable rows, for each type of nodes (or whatever the keys name).
#pragma once

#include <sar/nn/linear.hpp>

#include <map>
#include <memory>
#include <span>
#include <string>

namespace sar::inline SAR_PRECISION {

/// As dgl.nn.HeteroLinear: y_t = x_t W_t^T + b_t for each type t, from widths of its own to one.
///
/// Parameters: linears.TYPE.weight [out, in_t] and linears.TYPE.bias [out], as in Linear. The canonical
/// name of a relation, "user:follows:user", becomes DGL's ('user', 'follows', 'user').
class HeteroLinear : public Module {
 public:
  using Rows = std::map<std::string, Variable>;  ///< by type

  /// The Generator is asked in the order of types' names. Throws InputError unless all widths are positive.
  HeteroLinear(const std::map<std::string, Index>& in_sizes, Index out_size, Generator& gen,
               bool bias = true);

  /// x: rows of some of the types, [n_t, in_t] -> [n_t, out] of the same types. Throws InputError for a type
  /// that there is not, ShapeError for another width. Local.
  [[nodiscard]] Rows operator()(const Rows& x) const;

 private:
  struct Linears : Module {
    using Module::register_module;
  };
  Linears linears_;
  std::map<std::string, std::unique_ptr<Linear>> of_type_;
};

}  // namespace sar::inline SAR_PRECISION

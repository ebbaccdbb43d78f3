// SPDX-License-Identifier: MIT

/// The type of each edge of a graph, for operations that have parameters for each type.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/core/memory/memory.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// A number for each local edge, in the graph's order of edges. A cheap handle: copies, and the records of
/// operations, share the numbers, 2 bytes an edge.
class EdgeTypes {
 public:
  EdgeTypes() = default;  ///< of no edges
  explicit EdgeTypes(Array<std::uint16_t> types)
      : types_(std::make_shared<const Array<std::uint16_t>>(std::move(types))) {}
  /// Types as a list of Index, as in DGL; each operation converts the list to 2 bytes per edge. The list is
  /// borrowed or owned as in RowIds; a borrowed list must live until the operation returns.
  template <class Ids>
  requires(!std::is_same_v<std::remove_cvref_t<Ids>, EdgeTypes> && std::is_convertible_v<Ids, RowIds>)
      EdgeTypes(Ids&& ids)  // NOLINT: converts by design
      : ids_(std::forward<Ids>(ids)) {}
  EdgeTypes(std::initializer_list<Index> ids) : ids_(ids) {}

  [[nodiscard]] Index size() const noexcept { return types_ == nullptr ? ids_.size() : std::ssize(*types_); }

  /// Local. For authors of operations: numbers() of these can be used. Throws ShapeError unless there is a
  /// type for each of `num_edges`, InputError for one that is not in [0, num_types): "RelGraphConv got the
  /// edge type 7, there are 6".
  [[nodiscard]] EdgeTypes checked(Index num_edges, Index num_types, const char* operation) const;
  /// The types of these edges, as operations on rows take them. Of checked() types.
  [[nodiscard]] std::vector<Index> of(const RowIds& edges) const;
  /// Of types that are not a list of Index.
  [[nodiscard]] const Array<std::uint16_t>& numbers() const noexcept { return *types_; }

 private:
  std::shared_ptr<const Array<std::uint16_t>> types_;
  RowIds ids_;  ///< where there are no types_
};

}}  // namespace sar

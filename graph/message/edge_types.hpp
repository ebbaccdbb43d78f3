// SPDX-License-Identifier: MIT

/// EdgeType: an edge type with its source and destination node types. EdgeTypes: the type of each edge of a
/// graph, for operations that have parameters for each type.
#pragma once

#include <sar/autograd/gathered_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// DGL's canonical edge type: {"author", "writes", "paper"} goes from authors to papers.
struct EdgeType {
  std::string source, relation, destination;

  auto operator<=>(const EdgeType&) const = default;
  /// Returns "author:writes:paper", the form in partition files.
  [[nodiscard]] std::string canonical_name() const { return source + ":" + relation + ":" + destination; }
  friend std::ostream& operator<<(std::ostream& out, const EdgeType& type) {
    return out << type.source << ':' << type.relation << ':' << type.destination;
  }
};

/// Local. Returns the position in `types` of the type with this canonical name, or with this relation name
/// if it is unique. Throws InputError that lists the available types.
std::size_t find_edge_type(std::span<const EdgeType> types, std::string_view name);

/// Local. Returns the position of a node type. Throws InputError that lists the available types.
std::size_t find_node_type(std::span<const std::string> types, const std::string& type);

/// Returns the quoted names or edge types for an error message: "'author', 'paper'".
template <class Names>
std::string quoted_list(const Names& names) {
  return names.empty() ? "none" : joined(names, [](const auto& name) { return concat("'", name, "'"); });
}

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

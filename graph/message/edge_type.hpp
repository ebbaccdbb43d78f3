// SPDX-License-Identifier: MIT

/// EdgeType: an edge type with its source and destination node types.
#pragma once

#include <sar/config.hpp>

#include <compare>
#include <span>
#include <string>
#include <string_view>

namespace sar { inline namespace SAR_PRECISION {

/// DGL's canonical edge type: {"author", "writes", "paper"} goes from authors to papers.
struct EdgeType {
  std::string source, relation, destination;

  auto operator<=>(const EdgeType&) const = default;
  /// Returns "author:writes:paper", the form in partition files.
  [[nodiscard]] std::string canonical_name() const { return source + ":" + relation + ":" + destination; }
};

/// Local. Returns the position in `types` of the type with this canonical name, or with this relation name
/// if it is unique. Throws InputError that lists the available types.
std::size_t find_edge_type(std::span<const EdgeType> types, std::string_view name);

/// Local. Returns the position of a node type. Throws InputError that lists the available types.
std::size_t find_node_type(std::span<const std::string> types, const std::string& type);

/// Returns the quoted names for an error message: "'author', 'paper'".
std::string quoted_list(std::span<const std::string> names);

}}  // namespace sar

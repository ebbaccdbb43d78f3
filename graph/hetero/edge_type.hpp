/// EdgeType: which nodes the edges of a type join, and what they are called.
#pragma once

#include <sar/config.hpp>

#include <compare>
#include <span>
#include <string>
#include <string_view>

namespace sar::inline SAR_PRECISION {

/// DGL's canonical edge type: {"author", "writes", "paper"} goes from authors to papers.
struct EdgeType {
  std::string source, relation, destination;

  auto operator<=>(const EdgeType&) const = default;
  /// "author:writes:paper", as in the files of partitions.
  [[nodiscard]] std::string canonical_name() const { return source + ":" + relation + ":" + destination; }
};

/// The position in `types` of the type with this canonical name, or with this relation where only one type
/// has it. Throws InputError that names the types to choose from. Local.
std::size_t find_edge_type(std::span<const EdgeType> types, std::string_view name);

/// The names, each in quotes, as an error names them: "'author', 'paper'".
std::string quoted_list(std::span<const std::string> names);

}  // namespace sar

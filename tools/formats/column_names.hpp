// SPDX-License-Identifier: MIT

/// Local. The roles of the columns of tables of edges and of nodes, and the names that people give them.
#pragma once

#include <sar/config.hpp>

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace sar::formats {

enum class ColumnRole : char {
  ignored,
  source,
  target,
  key,  ///< of nodes
  weight,
  features,
  one_hot,
  split,
  labels,
  type,
  train_mask,  ///< this and those behind it are masks
  val_mask,
  test_mask
};

/// Whether two names are equal but for capitals, underscores, blanks and other signs.
bool same_name(std::string_view a, std::string_view b);

/// "", "Unnamed: 0", "EdgeId", "id", "index": numbers of the rows, as pandas and other programs write them.
bool is_row_number_name(std::string_view name);

/// Whether a column is called as the ids of nodes: id, node, key, name, x_id.
bool is_key_name(std::string_view name);

/// The columns that are called source and target (source and target, src and dst, from and to, user and item,
/// ...), with "_id", "node" and the like before or behind; -1: none is. Throws InputError where names do not
/// decide.
std::pair<Index, Index> find_end_names(const std::vector<std::string_view>& names);

/// Whether the ends of an edge are called as nodes of two kinds: "user" and "movie".
bool name_two_kinds(std::string_view source, std::string_view target);

/// How sure it is that the fields of a line name columns, and are no nodes.
enum class HeaderNames {
  none,      ///< "ann,bob"
  possible,  ///< "u,v", "node1,node2", "user,film"
  certain,   ///< "source,target", "user,item"
};
HeaderNames header_names(const std::vector<std::string_view>& fields);

/// Whether a column has 0 and 1, true and false.
inline bool is_mask(ColumnRole role) {
  return role >= ColumnRole::train_mask;
}

/// A role and its names.
struct RoleNames {
  ColumnRole role;
  const char* name;                ///< in --columns and --node-columns
  const char* field = "";          ///< the data that it becomes
  std::string_view key = {};       ///< in DatasetOptions::fields, of edges
  std::string_view of_edges = {};  ///< usual names of columns, letters and digits alone
  std::string_view of_nodes = {};
};
/// All of them, in the order of describe().
std::span<const RoleNames> role_names();
const RoleNames& names_of(ColumnRole role);
/// Whether a column is called as nodes of the role usually are.
bool is_usual(const RoleNames& role, std::string_view name);
/// The role of data of edges with such a name: "Weight", "edge_label"; `edge_labels`: rating, score and value
/// are labels.
ColumnRole usual_role(std::string_view name, bool edge_labels);

/// The number of a part of the edges, by its name: "train", "val", "valid" and "test" are 0, 1, 1, 2; a
/// number is itself.
std::optional<double> to_part(std::string_view field) noexcept;

}  // namespace sar::formats

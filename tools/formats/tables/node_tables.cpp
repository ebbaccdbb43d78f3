// SPDX-License-Identifier: MIT
#include "node_tables.hpp"

#include "json_features.hpp"
#include "node_table.hpp"

#include <utility>

namespace sar::formats {

void add_node_tables(FileSource& source, const SourceOptions& options) {
  const auto add = [&](NodeTable table) {
    source.add_node_fields(table.num_nodes, std::move(table.fields), table.note);
  };
  if (!options.node_table.empty()) add(read_node_table(source, options));
  if (!options.node_features.empty()) add(read_json_features(source, options));
}

}  // namespace sar::formats

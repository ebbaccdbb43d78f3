#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>

namespace sar { inline namespace SAR_PRECISION {

std::size_t SourceTypes::node_type(const std::string& name) const {
  const auto found = std::ranges::find(nodes, name, &SourceNodes::name);
  require<InputError>(found != nodes.end(), "there is no node type ", name, ", expected one of ",
                      joined(nodes, &SourceNodes::name));
  return static_cast<std::size_t>(found - nodes.begin());
}

Index SourceTypes::num_nodes() const {
  return offsets_of_sizes(nodes, &SourceNodes::num_nodes).back();
}
Index SourceTypes::num_edges() const {
  return offsets_of_sizes(edges, &SourceEdges::num_edges).back();
}

std::string SourceTypes::describe() const {
  const auto list = [](const char* begin, const std::vector<DataField>& fields, const char* end) {
    std::string names;
    for (const DataField& field : fields) names += (names.empty() ? begin : " ") + field.name;
    return names.empty() ? names : names + end;
  };
  if (is_homogeneous())
    return concat(nodes[0].num_nodes, " nodes, ", edges[0].num_edges, " edges",
                  list("; nodes: ", nodes[0].fields, ""), list("; edges: ", edges[0].fields, ""));
  const auto of_nodes = [&](const SourceNodes& type) {
    return concat(type.name, " ", type.num_nodes, " nodes", list(" (", type.fields, ")"));
  };
  const auto of_edges = [&](const SourceEdges& type) {
    return concat(type.canonical_name(), " ", type.num_edges, " edges", list(" (", type.fields, ")"));
  };
  return concat(joined(nodes, of_nodes), edges.empty() ? "" : "; ", joined(edges, of_edges));
}

void GraphSource::require_plausible_sizes(const std::string& place) const {
  const Index edges = num_edges();
  const Index most = std::max(Index{1} << 24, edges > (Index{1} << 50) ? INT64_MAX : 64 * edges);
  for (const SourceNodes& type : types_.nodes)
    require<InputError>(
        !type.fields.empty() || type.num_nodes <= most, place, ": there are ", type.num_nodes,
        types_.is_homogeneous() ? " nodes" : concat(" nodes of type ", type.name, " without data"), " for ",
        edges, " edges, expected at most ", most);
}

std::string last_part_of(const std::string& path) {
  std::filesystem::path last(path);
  if (!last.has_filename()) last = last.parent_path();
  return last.filename().string();
}

}}  // namespace sar

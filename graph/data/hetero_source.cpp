#include <sar/core/error.hpp>
#include <sar/graph/data/hetero_source.hpp>

#include <algorithm>
#include <cstdint>

namespace sar::inline SAR_PRECISION {
namespace {

const std::vector<DataField> no_fields;

std::string list_of(const std::vector<DataField>& fields) {
  std::string names;
  for (const DataField& field : fields) names += (names.empty() ? " (" : " ") + field.name;
  return names.empty() ? names : names + ")";
}

}  // namespace

Index HeteroSource::num_nodes() const {
  Index sum = 0;
  for (const SourceNodes& type : types_.nodes) sum += type.num_nodes;
  return sum;
}
Index HeteroSource::num_edges() const {
  Index sum = 0;
  for (const SourceEdges& type : types_.edges) sum += type.num_edges;
  return sum;
}
const std::vector<DataField>& HeteroSource::node_fields() const {
  return types_.nodes.size() == 1 ? types_.nodes[0].fields : no_fields;
}
const std::vector<DataField>& HeteroSource::edge_fields() const {
  return types_.edges.size() == 1 ? types_.edges[0].fields : no_fields;
}

void HeteroSource::require_one_type() const {
  require<InputError>(types_.nodes.size() == 1 && types_.edges.size() == 1, name(), ": the graph has ",
                      types_.nodes.size(), " types of nodes and ", types_.edges.size(),
                      " types of edges, expected one of each");
}
EdgeList HeteroSource::read_edges() {
  require_one_type();
  return read_edges_of(0);
}
DataArray HeteroSource::read_node_data(const std::string& field, std::span<const Index> nodes) {
  require_one_type();
  return read_node_data_of(0, field, nodes);
}
DataArray HeteroSource::read_edge_data(const std::string& field, std::span<const Index> edges) {
  require_one_type();
  return read_edge_data_of(0, field, edges);
}

void HeteroSource::require_plausible_sizes(const std::string& place) const {
  const Index edges = num_edges();
  const Index most = std::max(Index{1} << 24, edges > (Index{1} << 50) ? INT64_MAX : 64 * edges);
  for (const SourceNodes& type : types_.nodes)
    require<InputError>(!type.fields.empty() || type.num_nodes <= most, place, ": there are ", type.num_nodes,
                        " nodes of type ", type.name, " without data for ", edges,
                        " edges, expected at most ", most);
}

std::string HeteroSource::describe_types() const {
  std::string text;
  for (const SourceNodes& type : types_.nodes)
    text += concat(text.empty() ? "" : ", ", type.name, " ", type.num_nodes, " nodes", list_of(type.fields));
  const char* separator = "; ";
  for (const SourceEdges& type : types_.edges) {
    text += concat(separator, type.canonical_name(), " ", type.num_edges, " edges", list_of(type.fields));
    separator = ", ";
  }
  return text;
}

}  // namespace sar

#include "edge_lists_source.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

/// "author:writes:paper" -> its three names
std::vector<std::string> names_of(const std::string& type) {
  std::vector<std::string> names{""};
  for (const char c : type) {
    if (c == ':')
      names.emplace_back();
    else
      names.back() += c;
  }
  const bool right = names.size() == 3 && std::ranges::none_of(names, &std::string::empty);
  require<InputError>(right, "--edges: '", type, "', expected SOURCE:RELATION:DESTINATION");
  return names;
}

}  // namespace

EdgeListsSource::EdgeListsSource(const Communicator& comm_of_source, const SourceOptions& options)
    : HeteroSource(comm_of_source) {
  for (const auto& [type, path] : options.relations) read_relation(type, path, options);
  comm().agree([&] {
    for (const auto& [key, path] : options.node_data) open_node_data(key, path);
    for (SourceNodes& type : types_.nodes) type.fields = node_data_[type.name].fields;
    require_plausible_sizes(name());
  });
}

SourceNodes& EdgeListsSource::nodes_of(const std::string& type) {
  const auto found = std::ranges::find(types_.nodes, type, &SourceNodes::name);
  return found != types_.nodes.end() ? *found : types_.nodes.emplace_back(SourceNodes{type, 0, {}});
}

void EdgeListsSource::read_relation(const std::string& type, const std::string& path, SourceOptions options) {
  std::vector<std::string> names;
  comm().agree([&] { names = names_of(type); });
  options.node_ids = NodeIds::dense;
  options.node_data.clear();
  files_.push_back(std::make_unique<EdgeListSource>(comm(), path, options));
  edges_.push_back(files_.back()->read_edges());
  types_.edges.push_back(
      {names[0], names[1], names[2], files_.back()->num_edges(), files_.back()->edge_fields()});
  for (const auto& [node_type, ends] :
       {std::pair{names[0], &edges_.back().src}, {names[2], &edges_.back().dst}}) {
    const Index mine = ends->empty() ? 0 : *std::ranges::max_element(*ends) + 1;
    SourceNodes& nodes = nodes_of(node_type);
    nodes.num_nodes = std::max(nodes.num_nodes, comm().all_reduce(mine, ReduceOp::max));
  }
}

void EdgeListsSource::open_node_data(const std::string& key, const std::string& path) {
  const std::size_t slash = key.find('/');
  require<InputError>(slash != std::string::npos, "--node-data: '", key, "', expected TYPE/NAME=FILE.npy");
  SourceNodes& type = types_.nodes[types_.node_type(key.substr(0, slash))];
  auto file = std::make_unique<const NpyFile>(path);
  const Index rows = file->shape().empty() ? 0 : file->num_rows();
  FieldTable& table = node_data_[type.name];
  require<InputError>(table.fields.empty() ? rows >= type.num_nodes : rows == type.num_nodes, path,
                      ": the array has ", rows, " rows, expected ", type.num_nodes,
                      ", one for each node of type ", type.name);
  type.num_nodes = rows;
  DataField field = field_of(key.substr(slash + 1), *file);
  table.add(std::move(field), std::make_unique<NpyFieldData>(std::move(file)), path);
}

EdgeList EdgeListsSource::read_edges_of(std::size_t type) {
  return std::move(edges_[type]);
}
DataArray EdgeListsSource::read_node_data_of(std::size_t type, const std::string& field,
                                             std::span<const Index> nodes) {
  return comm().agree(
      [&] { return node_data_.at(types_.nodes.at(type).name).read(comm(), name(), field, nodes); });
}
DataArray EdgeListsSource::read_edge_data_of(std::size_t type, const std::string& field,
                                             std::span<const Index> edges) {
  return files_.at(type)->read_edge_data(field, edges);
}

}  // namespace sar::formats

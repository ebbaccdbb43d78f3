// SPDX-License-Identifier: MIT
#include "edge_list_source.hpp"

#include "node_lists.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

/// "author:writes:paper" -> its three names
EdgeTypeData type_named(const std::string& type) {
  std::vector<std::string> names{""};
  for (const char c : type) {
    if (c == ':')
      names.emplace_back();
    else
      names.back() += c;
  }
  const bool right = names.size() == 3 && std::ranges::none_of(names, &std::string::empty);
  require<InputError>(right, "--edges: '", type, "', expected SOURCE:RELATION:DESTINATION");
  return {.src_type = names[0], .name = names[1], .dst_type = names[2]};
}

}  // namespace

EdgeListSource::EdgeListSource(const Communicator& comm_of_source, const std::string& path,
                               const SourceOptions& options)
    : FileSource(comm_of_source, options.relations.empty() ? "edge list" : "",
                 options.relations.empty() ? path : "edge lists") {
  const bool typed = !options.relations.empty();
  require<InputError>(!typed || options.node_keys.empty(), options.node_keys,
                      ": --node-keys are for one edge list, expected none with --edges");
  if (!typed) read_edges_of({}, path, options);
  for (const auto& [name, file] : options.relations) {
    EdgeTypeData type;
    comm().agree([&] { type = type_named(name); });
    SourceOptions of_file = options;
    if (of_file.node_ids != NodeIds::from_one) of_file.node_ids = NodeIds::dense;
    read_edges_of(std::move(type), file, of_file);
  }
  comm().agree([&] {
    if (!typed) require_plausible_size(path);
    add_node_data(options);
    list_fields();
    require_plausible_sizes(path_);
  });
}

/// Rows of node data tell of nodes without edges behind the last one that has some. Local.
void EdgeListSource::add_node_data(const SourceOptions& options) {
  const bool typed = !options.relations.empty();
  require<InputError>(
      keys_ == nullptr || !options.node_keys.empty() || !options.node_table.empty() ||
          options.node_data.empty(),
      path_,
      ": the nodes are names or integers with gaps, numbered by first appearance, which does not say "
      "the row of a node in --node-data, expected --node-keys FILE with the ids in the order of the "
      "rows, or --node-ids dense, if ids are numbers of rows");
  std::string hint;
  if (!typed && smallest_node_ == 1)
    hint = "; the ids start at 1, and --node-ids from-1 counts from 1";
  else if (!typed && keys_ == nullptr)
    hint = "; if ids have gaps, --node-keys FILE says which row belongs to which id";
  for (const auto& [key, file] : lists_last(options.node_data)) {
    const std::size_t slash = typed ? key.find('/') : 0;
    require<InputError>(slash != std::string::npos, "--node-data: '", key, "', expected TYPE/NAME=FILE.npy");
    if (typed)
      add_node_file(types_.place_of(key.substr(0, slash)), key.substr(slash + 1), file, true);
    else
      add_node_file(0, key, file, keys_ == nullptr, hint);
  }
}

/// Adds a type of edges, and the types of their ends where they are new.
void EdgeListSource::read_edges_of(EdgeTypeData type, const std::string& path, const SourceOptions& options) {
  EdgeListFile file(comm(), path, options);
  type.num_edges = file.num_edges;
  for (const auto& [name, ends] :
       {std::pair{type.src_type, &EdgeChunk::src}, {type.dst_type, &EdgeChunk::dst}}) {
    Index count = file.keys != nullptr ? file.keys->size() : 0;
    for (const EdgeChunk& chunk : file.chunks.chunks())
      count = std::max(count, 1 + *std::ranges::max_element(chunk.*ends));
    count = comm().all_reduce(count, ReduceOp::max);
    if (std::ranges::find(types_.node_types, name, &NodeTypeData::name) == types_.node_types.end())
      add_nodes(name);
    NodeTypeData& nodes = types_.node_types[types_.place_of(name)];
    nodes.book = slices_of(std::max(nodes.num_nodes(), count));
  }
  add_edges(std::move(type));
  chunks_.back() = std::move(file.chunks);
  edges_.back() = std::move(file.fields);
  keys_ = std::move(file.keys);
  smallest_node_ = file.smallest();
  names_are_integers_ = file.names_are_integers();
  first_id_ = options.node_ids == NodeIds::from_one ? 1 : 0;
  for (const std::string& note : file.notes())
    notes_.push_back(note.starts_with("WARNING: ") ? concat("WARNING: ", path, ": ", note.substr(9))
                                                   : concat(path, ": ", note));
}

void EdgeListSource::write_node_keys(const std::string& directory) const {
  if (keys_ != nullptr) keys_->write(directory + "/node_keys.txt");
}

}  // namespace sar::formats

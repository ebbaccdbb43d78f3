#include "ogb_hetero_source.hpp"

#include "text.hpp"

#include <sar/core/error.hpp>
#include <sar/core/file.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

namespace sar::formats {
namespace {

namespace fs = std::filesystem;

/// The fields between the commas of a line.
std::vector<std::string> fields_of_line(std::string_view line) {
  std::vector<std::string> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view field = trimmed(line.substr(0, comma));
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
      field = field.substr(1, field.size() - 2);
    fields.emplace_back(field);
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

Index to_count(const std::string& text, const std::string& place) {
  Index count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  require<InputError>(
      error == std::errc() && end == text.data() + text.size() && count >= 0 && count < Index{1} << 60, place,
      " is '", text.substr(0, 40), "', expected a whole number from 0 on");
  return count;
}

/// A table of two lines, names and what they have.
std::vector<std::pair<std::string, std::string>> named_values(const OgbText& text, const std::string& path) {
  const std::vector<std::string> lines = text.read_text(path);
  require<InputError>(lines.size() == 2, path, ": there are ", lines.size(),
                      " lines, expected two: the names of the types and a value for each");
  const auto names = fields_of_line(lines[0]), values = fields_of_line(lines[1]);
  require<InputError>(names.size() == values.size(), path, ": there are ", names.size(), " names and ",
                      values.size(), " values, expected one for each");
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    require<InputError>(!names[i].empty(), path, ": a type has no name, expected one");
    pairs.emplace_back(names[i], values[i]);
  }
  std::ranges::sort(pairs);
  for (std::size_t i = 1; i < pairs.size(); ++i)
    require<InputError>(pairs[i].first != pairs[i - 1].first, path, ": there are several types named ",
                        pairs[i].first, ", expected one");
  return pairs;
}

}  // namespace

bool is_ogb_hetero(const std::string& path) {
  for (const char* part : {"/raw/triplet-type-list.csv.gz", "/raw/triplet-type-list.csv", "/raw/relations",
                           "/raw/num-node-dict.csv.gz", "/raw/num-node-dict.csv", "/raw/edge_index_dict.npz"})
    if (is_there(path + part)) return true;
  return false;
}

OgbHeteroSource::OgbHeteroSource(const Communicator& comm_of_source, const std::string& path,
                                 const SourceOptions& options)
    : HeteroSource(comm_of_source),
      path_(path),
      block_bytes_(options.block_bytes),
      raw_(comm_of_source, path + "/raw", options.block_bytes) {
  fs::path last(path);
  if (!last.has_filename()) last = last.parent_path();
  name_ = last.filename().string();
  read_node_types();
  read_edge_types();
  node_files_ = shared_list(comm(), [&] {
    std::vector<std::string> found;
    std::error_code unreachable;
    for (const std::string& file : names_in(path_ + "/raw", unreachable))
      if (file.starts_with("node_")) found.push_back(file);
    std::ranges::sort(found);
    return found;
  });
  split_ = find_split(comm(), path_ + "/split", options.split);
  nodes_.resize(types_.nodes.size());
  edges_.resize(types_.edges.size());
  chunks_.resize(types_.edges.size());
  for (std::size_t t = 0; t < nodes_.size(); ++t) read_type(t);
  for (std::size_t k = 0; k < edges_.size(); ++k) read_relation(k);
  require_plausible_sizes(path_);
}

void OgbHeteroSource::read_node_types() {
  const std::string path = raw_.find_file("num-node-dict", true);
  for (const auto& [type, count] : named_values(raw_, path))
    types_.nodes.push_back({type, to_count(count, concat(path, ": the number of nodes of ", type)), {}});
}

void OgbHeteroSource::read_edge_types() {
  const std::string path = raw_.find_file("triplet-type-list", true);
  std::vector<std::vector<std::string>> triplets;
  for (const std::string& line : raw_.read_text(path)) {
    triplets.push_back(fields_of_line(line));
    require<InputError>(triplets.back().size() == 3, path, ": a line is '", line.substr(0, 80),
                        "', expected source type, relation and destination type");
  }
  std::ranges::sort(triplets);
  for (std::size_t k = 0; k < triplets.size(); ++k) {
    const auto& names = triplets[k];
    require<InputError>(k == 0 || names != triplets[k - 1], path, ": ", names[0], ",", names[1], ",",
                        names[2], " is there twice, expected once");
    for (const std::string& end : {names[0], names[2]})
      require<InputError>(std::ranges::find(types_.nodes, end, &SourceNodes::name) != types_.nodes.end(),
                          path, ": there is no node type ", end, ", expected one of num-node-dict.csv.gz");
    types_.edges.push_back({names[0], names[1], names[2], 0, {}});
  }
}

/// What a table such as nodetype-has-feat says of a type must be so.
void OgbHeteroSource::require_flag(const std::string& file, const std::string& type, bool there,
                                   const std::string& what) const {
  if (file.empty()) return;
  for (const auto& [name, value] : named_values(raw_, file))
    require<InputError>(name != type || (value == "True") == there, file, ": ", type, " has '", value,
                        "', and ", what, there ? " is" : " is not", " there, expected the same of both");
}

void OgbHeteroSource::read_type(std::size_t t) {
  SourceNodes& type = types_.nodes[t];
  const PartitionBook slices = PartitionBook::even(type.num_nodes, comm().size());
  const auto read = [&](const std::string& folder, const std::string& field, bool features) {
    const OgbText files(comm(), path_ + "/raw/" + folder + "/" + type.name, block_bytes_);
    const std::string file = files.find_file(folder, false);
    if (!file.empty()) files.read_field(nodes_[t], field, file, slices, features);
    return !file.empty();
  };
  const bool has_features = read("node-feat", "features", true),
             has_labels = read("node-label", "labels", false);
  require_flag(raw_.find_file("nodetype-has-feat", false), type.name, has_features,
               "raw/node-feat/" + type.name + "/node-feat.csv.gz");
  require_flag(raw_.find_file("nodetype-has-label", false), type.name, has_labels,
               "raw/node-label/" + type.name + "/node-label.csv.gz");
  for (const std::string& folder : node_files_) read(folder, folder, false);
  const OgbText split(comm(), split_ + "/" + type.name, block_bytes_);
  if (!split_.empty() && !split.find_file("train", false).empty()) split.read_masks(nodes_[t], slices);
  type.fields = nodes_[t].fields;
}

void OgbHeteroSource::read_relation(std::size_t k) {
  SourceEdges& type = types_.edges[k];
  const std::string folder =
      concat(path_, "/raw/relations/", type.src_type, "___", type.name, "___", type.dst_type);
  const OgbText files(comm(), folder, block_bytes_);
  type.num_edges = files.read_count("num-edge-list");
  files.read_edges(files.find_file("edge", true), type.num_edges,
                   types_.nodes[types_.node_type(type.src_type)].num_nodes,
                   types_.nodes[types_.node_type(type.dst_type)].num_nodes, chunks_[k]);
  const PartitionBook slices = PartitionBook::even(type.num_edges, comm().size());
  if (const std::string file = files.find_file("edge-feat", false); !file.empty())
    files.read_field(edges_[k], "features", file, slices, true);
  for (const std::string& file : files.other_files("edge_"))
    files.read_field(edges_[k], without_extension(file), file, slices, false);
  type.fields = edges_[k].fields;
}

std::string OgbHeteroSource::description() const {
  return concat("OGB folder ", name_, ": ", describe_types());
}

EdgeList OgbHeteroSource::read_edges_of(std::size_t type) {
  return comm().agree([&] { return chunks_.at(type).take_edges(); });
}
DataArray OgbHeteroSource::read_node_data_of(std::size_t type, const std::string& field,
                                             std::span<const Index> nodes) {
  return comm().agree([&] {
    return nodes_.at(type).read(comm(), concat(path_, ": ", types_.nodes[type].name), field, nodes);
  });
}
DataArray OgbHeteroSource::read_edge_data_of(std::size_t type, const std::string& field,
                                             std::span<const Index> edges) {
  return comm().agree([&] {
    return edges_.at(type).read(comm(), concat(path_, ": ", types_.edges[type].canonical_name()), field,
                                edges);
  });
}

}  // namespace sar::formats

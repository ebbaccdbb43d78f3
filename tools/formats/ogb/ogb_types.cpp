// SPDX-License-Identifier: MIT

/// OGB's folders of graphs with several types.
#include "formats/first_lines.hpp"
#include "formats/packed/zip_file.hpp"
#include "ogb_source.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <algorithm>
#include <utility>

namespace sar::formats {
namespace {

/// The fields between the commas of a line.
std::vector<std::string> fields_of_line(std::string_view line) {
  std::vector<std::string> fields;
  for (const std::string_view field : fields_of(line, ',')) fields.emplace_back(unquoted(field));
  return fields;
}

Index to_count(const std::string& text, const std::string& place) {
  const auto count = to_integer(text);
  require<InputError>(count && *count >= 0 && *count < Index{1} << 60, place, " is '", text.substr(0, 40),
                      "', expected a whole number from 0 on");
  return *count;
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
  for (const char* part : {"/raw/relations", "/raw/edge_index_dict.npz"})
    if (is_there_or_packed(path + part)) return true;
  return !csv_file(path + "/raw/triplet-type-list").empty() || !csv_file(path + "/raw/num-node-dict").empty();
}

void OgbSource::read_types(const std::string& split) {
  read_node_types();
  read_edge_types();
  const std::vector<std::string> folders = shared_list(comm(), [&] {
    std::vector<std::string> found;
    for (const std::string& file : names_in_folder(path_ + "/raw"))
      if (file.starts_with("node_")) found.push_back(file);
    return found;
  });
  for (std::size_t t = 0; t < types_.node_types.size(); ++t) read_nodes_of(t, folders, split);
  for (std::size_t k = 0; k < types_.edge_types.size(); ++k) {
    const EdgeTypeData& type = types_.edge_types[k];
    const std::string folder =
        concat(path_, "/raw/relations/", type.src_type, "___", type.name, "___", type.dst_type);
    read_text_edges(k, OgbText(comm(), folder, block_bytes_));
  }
}

void OgbSource::read_node_types() {
  const std::string path = raw_.find_file("num-node-dict", true);
  for (const auto& [type, count] : named_values(raw_, path))
    add_nodes(type, to_count(count, concat(path, ": the number of nodes of ", type)));
}

void OgbSource::read_edge_types() {
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
      require<InputError>(
          std::ranges::find(types_.node_types, end, &NodeTypeData::name) != types_.node_types.end(), path,
          ": there is no node type ", end, ", expected one of num-node-dict.csv.gz");
    add_edges({.src_type = names[0], .name = names[1], .dst_type = names[2]});
  }
}

/// What a table such as nodetype-has-feat says of a type must be so.
void OgbSource::require_flag(const std::string& file, const std::string& type, bool there,
                             const std::string& what) const {
  if (file.empty()) return;
  for (const auto& [name, value] : named_values(raw_, file))
    require<InputError>(name != type || (value == "True") == there, file, ": ", type, " has '", value,
                        "', and ", what, there ? " is" : " is not", " there, expected the same of both");
}

void OgbSource::read_nodes_of(std::size_t t, const std::vector<std::string>& folders,
                              const std::string& split) {
  const std::string& type = types_.node_types[t].name;
  const auto read = [&](const std::string& folder, const std::string& field, TableNumbers numbers) {
    const OgbText files(comm(), path_ + "/raw/" + folder + "/" + type, block_bytes_);
    return read_node_field(t, field, files, files.find_file(folder, false), numbers);
  };
  const bool has_features = read("node-feat", "features", TableNumbers::features),
             has_labels = read("node-label", "labels", TableNumbers::labels);
  require_flag(raw_.find_file("nodetype-has-feat", false), type, has_features,
               "raw/node-feat/" + type + "/node-feat.csv.gz");
  require_flag(raw_.find_file("nodetype-has-label", false), type, has_labels,
               "raw/node-label/" + type + "/node-label.csv.gz");
  for (const std::string& folder : folders) read(folder, folder, TableNumbers::labels);
  const OgbText masks(comm(), split + "/" + type, block_bytes_);
  if (!split.empty() && !masks.find_file("train", false).empty())
    masks.read_masks(nodes_[t], types_.node_types[t].book);
}

}  // namespace sar::formats

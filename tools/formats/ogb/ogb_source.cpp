// SPDX-License-Identifier: MIT
#include "ogb_source.hpp"

#include "formats/arrays/npz_arrays.hpp"
#include "formats/file_source.hpp"
#include "formats/first_lines.hpp"
#include "formats/packed/npz.hpp"
#include "formats/packed/zip_file.hpp"
#include "ogb_text.hpp"

#include <sar/core/error.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

const NpzMember& find_member(const NpzFile& archive, const std::string& name) {
  const NpzMember* member = archive.find(name);
  require<InputError>(member != nullptr, archive.path(), ": there is no array ", name,
                      ", expected an OGB dataset");
  return *member;
}

/// The one number of a list with a number for each graph.
Index count_in(const Communicator& comm, const NpzFile& archive, const std::string& name) {
  const std::vector<Index> counts = read_integers(comm, find_member(archive, name));
  require<InputError>(counts.size() == 1, archive.path(), ": ", name, " has ", counts.size(),
                      " graphs, expected one (a dataset of node properties)");
  require<InputError>(counts[0] >= 0, archive.path(), ": ", name, " is ", counts[0],
                      ", expected no negative number");
  return counts[0];
}

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
std::vector<std::pair<std::string, std::string>> named_values(const TableFolder& text,
                                                              const std::string& path) {
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

/// Whether a folder is one of several types.
bool is_ogb_hetero(const std::string& path) {
  for (const char* part : {"/raw/relations", "/raw/edge_index_dict.npz"})
    if (is_there_or_packed(path + part)) return true;
  return !csv_file(path + "/raw/triplet-type-list").empty() || !csv_file(path + "/raw/num-node-dict").empty();
}

class OgbSource final : public FileSource {
 public:
  OgbSource(const Communicator& comm_of_source, const std::string& path, const SourceOptions& options)
      : FileSource(comm_of_source, "OGB folder", path),
        block_bytes_(options.block_bytes),
        raw_(comm_of_source, path + "/raw/", options.block_bytes) {
    const std::string split = find_split(comm(), path_ + "/split", options.split);
    has_types_ = !shared_text(comm(), [&] { return is_ogb_hetero(path_) ? path_ : ""; }).empty();
    if (has_types_)
      read_types(split);
    else if (!shared_text(comm(), [&] { return if_there(path_ + "/raw/data.npz"); }).empty())
      read_binary_graph();
    else
      read_text_graph();
    pair_lists_ = split;
    if (!split.empty() && !has_pair_lists(comm(), split)) {
      pair_lists_.clear();
      if (!has_types_)
        TableFolder(comm(), split + "/", block_bytes_).read_masks(nodes_[0], types_.node_types[0].book);
    }
    list_fields();
    require_plausible_sizes(path_);
  }

  [[nodiscard]] std::vector<ListedPairs> read_listed_pairs(std::size_t type) override {
    if (pair_lists_.empty()) return {};
    const EdgeTypeData& edges = types_.edge_types[type];
    std::optional<ListedRelation> relation;
    if (has_types_) {
      require<InputError>(edges_[type].contains("edge_reltype") && edges.num_edges > 0, folder_of(edges),
                          ": there is no edge_reltype.csv.gz with a row, expected one, which says the number "
                          "of this edge type in the lists of ",
                          pair_lists_);
      const std::array<Index, 1> first{0};
      const DataArray row = read_edge_data(type, "edge_reltype", first);
      relation.emplace(ListedRelation{0, types_.node_type(edges.src_type), types_.node_type(edges.dst_type)});
      convert_elements(row.type, row.bytes.data(), 1, &relation->number);
    }
    return read_pair_lists(comm(), pair_lists_, num_nodes(), relation, block_bytes_);
  }
  [[nodiscard]] bool has_listed_pairs() const override { return !pair_lists_.empty(); }

 private:
  bool read_node_field(std::size_t type, const std::string& field, const TableFolder& files,
                       const std::string& file, TableNumbers numbers) {
    const PartitionBook& book = types_.node_types[type].book;
    if (!file.empty()) nodes_[type].add(field, book, files.read_rows(file, book, numbers), file);
    return !file.empty();
  }

  /// The edges of a type and their data in a folder.
  void read_text_edges(std::size_t k, const TableFolder& files) {
    EdgeTypeData& type = types_.edge_types[k];
    type.num_edges = files.read_count("num-edge-list");
    files.read_edges(files.find_file("edge", true), type.num_edges,
                     types_.node_type(type.src_type).num_nodes(), types_.node_type(type.dst_type).num_nodes(),
                     chunks_[k]);
    const PartitionBook slices = slices_of(type.num_edges);
    const auto add = [&](const std::string& field, const std::string& file, TableNumbers numbers) {
      edges_[k].add(field, slices, files.read_rows(file, slices, numbers), file);
    };
    if (const std::string file = files.find_file("edge-feat", false); !file.empty())
      add("features", file, TableNumbers::features);
    for (const std::string& file : files.other_files("edge_"))
      add(without_extension(file), file, TableNumbers::labels);
  }

  void read_text_graph() {
    add_nodes(default_node_type, raw_.read_count("num-node-list"));
    add_edges();
    read_text_edges(0, raw_);
    require_plausible_size(path_);
    read_node_field(0, "features", raw_, raw_.find_file("node-feat", false), TableNumbers::features);
    for (const auto& [name, field] : {std::pair{"node-label", "labels"}, {"species", "node_species"}})
      read_node_field(0, field, raw_, raw_.find_file(name, false), TableNumbers::labels);
    for (const std::string& file : raw_.other_files("node_"))
      read_node_field(0, without_extension(file), raw_, file, TableNumbers::labels);
  }

  // The binary form: raw/data.npz, raw/node-label.npz.

  void read_binary_graph() {
    require<InputError>(!path_in_archive(path_), path_,
                        "/raw/data.npz: an archive in an archive is not read, expected it unpacked (unzip)");
    const auto archive = open_npz(comm(), path_ + "/raw/data.npz");
    add_nodes(default_node_type, count_in(comm(), *archive, "num_nodes_list"));
    add_edges();
    types_.edge_types[0].num_edges = count_in(comm(), *archive, "num_edges_list");
    require_plausible_size(archive->path());
    const NpzMember& edges = find_member(*archive, "edge_index");
    const std::vector<Index> shape = shape_of(comm(), edges);
    require<InputError>(shape == std::vector<Index>{2, num_edges()}, edges.place(), ": shape is ",
                        shape_to_string(shape), ", expected (2, ", num_edges(), ")");
    read_edge_array(comm(), edges, /*by_edge=*/false, chunks_[0]);
    require_ends(edges.place());
    for (const NpzMember& member : archive->members()) {
      if (member.name.starts_with("node_"))
        add_binary_field(nodes_[0], member.name == "node_feat" ? "features" : member.name, member);
      else if (member.name.starts_with("edge_") && member.name != "edge_index")
        add_binary_field(edges_[0], member.name == "edge_feat" ? "features" : member.name, member);
    }
    const std::string labels = shared_text(comm(), [&] { return if_there(path_ + "/raw/node-label.npz"); });
    if (!labels.empty()) {
      const auto label_archive = open_npz(comm(), labels);
      add_binary_field(nodes_[0], "labels", find_member(*label_archive, "node_label"));
    } else {
      read_node_field(0, "labels", raw_, raw_.find_file("node-label", false), TableNumbers::labels);
    }
  }

  void add_binary_field(FieldTable& to, const std::string& field, const NpzMember& member) {
    const bool of_nodes = &to == &nodes_[0];
    add_array_field(comm(), to, field, member, of_nodes ? num_nodes() : num_edges(),
                    of_nodes ? "node" : "edge");
  }

  // Several types.

  [[nodiscard]] std::string folder_of(const EdgeTypeData& type) const {
    return concat(path_, "/raw/relations/", type.src_type, "___", type.name, "___", type.dst_type);
  }

  void read_types(const std::string& split) {
    read_node_types();
    read_edge_types();
    const std::vector<std::string> folders = shared_list(comm(), [&] {
      std::vector<std::string> found;
      for (const std::string& file : names_in_folder(path_ + "/raw"))
        if (file.starts_with("node_")) found.push_back(file);
      return found;
    });
    for (std::size_t t = 0; t < types_.node_types.size(); ++t) read_nodes_of(t, folders, split);
    for (std::size_t k = 0; k < types_.edge_types.size(); ++k)
      read_text_edges(k, TableFolder(comm(), folder_of(types_.edge_types[k]) + "/", block_bytes_));
  }

  void read_node_types() {
    const std::string path = raw_.find_file("num-node-dict", true);
    for (const auto& [type, count] : named_values(raw_, path))
      add_nodes(type, to_count(count, concat(path, ": the number of nodes of ", type)));
  }

  void read_edge_types() {
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
  void require_flag(const std::string& file, const std::string& type, bool there,
                    const std::string& what) const {
    if (file.empty()) return;
    for (const auto& [name, value] : named_values(raw_, file))
      require<InputError>(name != type || (value == "True") == there, file, ": ", type, " has '", value,
                          "', and ", what, there ? " is" : " is not", " there, expected the same of both");
  }

  void read_nodes_of(std::size_t t, const std::vector<std::string>& folders, const std::string& split) {
    const std::string& type = types_.node_types[t].name;
    const auto read = [&](const std::string& folder, const std::string& field, TableNumbers numbers) {
      const TableFolder files(comm(), path_ + "/raw/" + folder + "/" + type + "/", block_bytes_);
      return read_node_field(t, field, files, files.find_file(folder, false), numbers);
    };
    const bool has_features = read("node-feat", "features", TableNumbers::features),
               has_labels = read("node-label", "labels", TableNumbers::labels);
    require_flag(raw_.find_file("nodetype-has-feat", false), type, has_features,
                 "raw/node-feat/" + type + "/node-feat.csv.gz");
    require_flag(raw_.find_file("nodetype-has-label", false), type, has_labels,
                 "raw/node-label/" + type + "/node-label.csv.gz");
    for (const std::string& folder : folders) read(folder, folder, TableNumbers::labels);
    const TableFolder masks(comm(), split + "/" + type + "/", block_bytes_);
    if (!split.empty() && !masks.find_file("train", false).empty())
      masks.read_masks(nodes_[t], types_.node_types[t].book);
  }

  Index block_bytes_;
  bool has_types_ = false;  // of nodes and edges
  TableFolder raw_;         // the files of raw/
  std::string pair_lists_;  // the folder of the split; empty: it is one of nodes, or none
};

}  // namespace

std::unique_ptr<GraphSource> open_ogb_source(const Communicator& comm, const std::string& path,
                                             const SourceOptions& options) {
  return std::make_unique<OgbSource>(comm, path, options);
}

}  // namespace sar::formats

// SPDX-License-Identifier: MIT
#include "ogb_source.hpp"

#include "formats/arrays/npz_arrays.hpp"
#include "formats/packed/npz.hpp"
#include "formats/packed/zip_file.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <string_view>
#include <utility>

namespace sar::formats {
namespace {

const NpzMember& find_member(const NpzFile& archive, std::string_view name) {
  const NpzMember* member = archive.find(std::string(name));
  require<InputError>(member != nullptr, archive.path(), ": there is no array ", name,
                      ", expected an OGB dataset");
  return *member;
}

/// The one number of a list with a number for each graph.
Index count_in(const Communicator& comm, const NpzFile& archive, const std::string& name) {
  const std::vector<Index> counts = read_integers(comm, archive, find_member(archive, name));
  require<InputError>(counts.size() == 1, archive.path(), ": ", name, " has ", counts.size(),
                      " graphs, expected one (a dataset of node properties)");
  require<InputError>(counts[0] >= 0, archive.path(), ": ", name, " is ", counts[0],
                      ", expected no negative number");
  return counts[0];
}

}  // namespace

OgbSource::OgbSource(const Communicator& comm_of_source, const std::string& path,
                     const SourceOptions& options)
    : FileSource(comm_of_source, "OGB folder", path),
      block_bytes_(options.block_bytes),
      raw_(comm_of_source, path + "/raw", options.block_bytes) {
  const std::string split = find_split(comm(), path_ + "/split", options.split);
  has_types_ = !shared_path(comm(), [&] { return is_ogb_hetero(path_) ? path_ : ""; }).empty();
  if (has_types_)
    read_types(split);
  else if (!shared_path(comm(), [&] { return if_there(path_ + "/raw/data.npz"); }).empty())
    read_binary_graph();
  else
    read_text_graph();
  pair_lists_ = split;
  if (!split.empty() && find_pair_lists().empty()) {
    pair_lists_.clear();
    if (!has_types_) OgbText(comm(), split, block_bytes_).read_masks(nodes_[0], types_.node_types[0].book);
  }
  list_fields();
  require_plausible_sizes(path_);
}

bool OgbSource::read_node_field(std::size_t type, const std::string& field, const OgbText& files,
                                const std::string& file, TableNumbers numbers) {
  if (!file.empty()) files.read_field(nodes_[type], field, file, types_.node_types[type].book, numbers);
  return !file.empty();
}

/// The edges of a type and their data in a folder.
void OgbSource::read_text_edges(std::size_t k, const OgbText& files) {
  EdgeTypeData& type = types_.edge_types[k];
  type.num_edges = files.read_count("num-edge-list");
  files.read_edges(files.find_file("edge", true), type.num_edges, types_.node_type(type.src_type).num_nodes(),
                   types_.node_type(type.dst_type).num_nodes(), chunks_[k]);
  if (const std::string file = files.find_file("edge-feat", false); !file.empty())
    files.read_field(edges_[k], "features", file, slices_of(type.num_edges), TableNumbers::features);
  for (const std::string& file : files.other_files("edge_"))
    files.read_field(edges_[k], without_extension(file), file, slices_of(type.num_edges),
                     TableNumbers::labels);
}

void OgbSource::read_text_graph() {
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

void OgbSource::read_binary_graph() {
  require<InputError>(!path_in_archive(path_), path_,
                      "/raw/data.npz: an archive in an archive is not read, expected it unpacked (unzip)");
  const auto archive = open_npz(comm(), path_ + "/raw/data.npz");
  add_nodes(default_node_type, count_in(comm(), *archive, "num_nodes_list"));
  add_edges();
  types_.edge_types[0].num_edges = count_in(comm(), *archive, "num_edges_list");
  require_plausible_size(archive->path());
  read_binary_edges(*archive);
  for (const NpzMember& member : archive->members()) {
    if (member.name.starts_with("node_"))
      add_binary_field(nodes_[0], member.name == "node_feat" ? "features" : member.name, *archive, member);
    else if (member.name.starts_with("edge_") && member.name != "edge_index")
      add_binary_field(edges_[0], member.name == "edge_feat" ? "features" : member.name, *archive, member);
  }
  const std::string labels = shared_path(comm(), [&] { return if_there(path_ + "/raw/node-label.npz"); });
  if (!labels.empty()) {
    const auto label_archive = open_npz(comm(), labels);
    add_binary_field(nodes_[0], "labels", *label_archive, find_member(*label_archive, "node_label"));
  } else {
    read_node_field(0, "labels", raw_, raw_.find_file("node-label", false), TableNumbers::labels);
  }
}

void OgbSource::read_binary_edges(const NpzFile& archive) {
  const NpzMember& member = find_member(archive, "edge_index");
  const std::string place = archive.place_of(member);
  const NpyHeader header = header_of(comm(), archive, member);
  require<InputError>(header.shape == std::vector<Index>{2, num_edges()}, place, ": shape is ",
                      shape_to_string(header.shape), ", expected (2, ", num_edges(), ")");
  read_edge_array(comm(), archive, member, /*by_edge=*/false, chunks_[0]);
  require_ends(place);
}

void OgbSource::add_binary_field(FieldTable& to, const std::string& field, const NpzFile& archive,
                                 const NpzMember& member) {
  const bool of_nodes = &to == &nodes_[0];
  add_array_field(comm(), to, field, archive, member, of_nodes ? num_nodes() : num_edges(),
                  of_nodes ? "node" : "edge");
}

}  // namespace sar::formats

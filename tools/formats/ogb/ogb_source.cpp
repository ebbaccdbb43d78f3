// SPDX-License-Identifier: MIT
#include "ogb_source.hpp"

#include "formats/arrays/npz_arrays.hpp"
#include "formats/packed/npz.hpp"
#include "formats/packed/zip_file.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <filesystem>
#include <memory>
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
  const auto any_rank_sees = [&](bool (*is)(const std::string&), const std::string& what) {
    bool sees = false;
    comm().agree([&] { sees = is(what); });
    return comm().all_reduce(sees ? 1 : 0, ReduceOp::max) == 1;
  };
  if (any_rank_sees(is_ogb_hetero, path_)) {
    has_types_ = true;
    read_types(options.split);
    pair_lists_ = find_split(comm(), path_ + "/split", options.split);
    if (!pair_lists_.empty() && find_pair_lists().empty()) pair_lists_.clear();
    list_fields();
    require_plausible_sizes(path_);
    return;
  }
  add_nodes();
  add_edges();
  if (any_rank_sees(is_there_or_packed, path_ + "/raw/data.npz"))
    read_binary_graph();
  else
    read_text_graph();
  read_splits(options.split);
  list_fields();
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
  types_.node_types[0].book = slices_of(raw_.read_count("num-node-list"));
  read_text_edges(0, raw_);
  require_plausible_size(path_);
  read_node_field(0, "features", raw_, raw_.find_file("node-feat", false), TableNumbers::features);
  for (const auto& [name, field] : {std::pair{"node-label", "labels"}, {"species", "node_species"}})
    read_node_field(0, field, raw_, raw_.find_file(name, false), TableNumbers::labels);
  for (const std::string& file : raw_.other_files("node_"))
    read_node_field(0, without_extension(file), raw_, file, TableNumbers::labels);
}

void OgbSource::read_splits(const std::string& scheme) {
  pair_lists_ = find_split(comm(), path_ + "/split", scheme);
  if (pair_lists_.empty() || !find_pair_lists().empty()) return;
  const OgbText split(comm(), std::exchange(pair_lists_, ""), block_bytes_);
  split.read_masks(nodes_[0], types_.node_types[0].book);
}

// The binary form: raw/data.npz, raw/node-label.npz.

void OgbSource::read_binary_graph() {
  require<InputError>(!path_in_archive(path_), path_,
                      "/raw/data.npz: an archive in an archive is not read, expected it unpacked (unzip)");
  const auto archive = open_npz(comm(), path_ + "/raw/data.npz");
  types_.node_types[0].book = slices_of(count_in(comm(), *archive, "num_nodes_list"));
  types_.edge_types[0].num_edges = count_in(comm(), *archive, "num_edges_list");
  require_plausible_size(archive->path());
  read_binary_edges(*archive);
  for (const NpzMember& member : archive->members()) {
    if (member.name.starts_with("node_"))
      add_binary_field(nodes_[0], member.name == "node_feat" ? "features" : member.name, *archive, member);
    else if (member.name.starts_with("edge_") && member.name != "edge_index")
      add_binary_field(edges_[0], member.name == "edge_feat" ? "features" : member.name, *archive, member);
  }
  const std::string labels = path_ + "/raw/node-label.npz";
  const bool binary_labels = is_there_or_packed(labels);
  if (comm().all_reduce(binary_labels ? 1 : 0, ReduceOp::max) == 1) {
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
  require_ends(comm(), place, chunks_[0], num_nodes());
}

void OgbSource::add_binary_field(FieldTable& to, const std::string& field, const NpzFile& archive,
                                 const NpzMember& member) {
  const bool of_nodes = &to == &nodes_[0];
  add_array_field(comm(), to, field, archive, member, of_nodes ? num_nodes() : num_edges(),
                  of_nodes ? "node" : "edge");
}

}  // namespace sar::formats

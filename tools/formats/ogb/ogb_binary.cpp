// SPDX-License-Identifier: MIT

/// The binary form of OGB's folders: raw/data.npz, raw/node-label.npz.
#include "formats/arrays/npz_arrays.hpp"
#include "formats/packed/npz_rows.hpp"
#include "formats/packed/zip_file.hpp"
#include "ogb_source.hpp"

#include <sar/core/error.hpp>

#include <string>
#include <string_view>

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

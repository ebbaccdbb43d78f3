// SPDX-License-Identifier: MIT
#include "ogb_source.hpp"

#include "formats/packed/zip_file.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <filesystem>
#include <memory>
#include <utility>

namespace sar::formats {

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

}  // namespace sar::formats

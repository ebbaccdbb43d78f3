#include "ogb_source.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <filesystem>
#include <memory>
#include <utility>

namespace sar::formats {

OgbSource::OgbSource(const Communicator& comm_of_source, const std::string& path,
                     const SourceOptions& options, bool typed)
    : FileSource(comm_of_source, "OGB folder", path),
      block_bytes_(options.block_bytes),
      raw_(comm_of_source, path + "/raw", options.block_bytes) {
  if (typed) {
    read_types(options.split);
    list_fields();
    require_plausible_sizes(path_);
    return;
  }
  add_nodes();
  add_edges();
  bool binary = false;
  comm().agree([&] { binary = is_there(path_ + "/raw/data.npz"); });
  if (comm().all_reduce(binary ? 1 : 0, ReduceOp::max) == 1)
    read_binary_graph();
  else
    read_text_graph();
  read_splits(options.split);
  list_fields();
}

PartitionBook OgbSource::node_slices(std::size_t type) const {
  return PartitionBook::even(types_.nodes[type].num_nodes, comm().size());
}

bool OgbSource::read_node_field(std::size_t type, const std::string& field, const OgbText& files,
                                const std::string& file, bool features) {
  if (!file.empty()) files.read_field(nodes_[type], field, file, node_slices(type), features);
  return !file.empty();
}

/// The edges of a type and their data in a folder.
void OgbSource::read_text_edges(std::size_t k, const OgbText& files) {
  SourceEdges& type = types_.edges[k];
  type.num_edges = files.read_count("num-edge-list");
  files.read_edges(files.find_file("edge", true), type.num_edges,
                   types_.nodes[types_.node_type(type.src_type)].num_nodes,
                   types_.nodes[types_.node_type(type.dst_type)].num_nodes, chunks_[k]);
  const PartitionBook slices = PartitionBook::even(type.num_edges, comm().size());
  if (const std::string file = files.find_file("edge-feat", false); !file.empty())
    files.read_field(edges_[k], "features", file, slices, true);
  for (const std::string& file : files.other_files("edge_"))
    files.read_field(edges_[k], without_extension(file), file, slices, false);
}

void OgbSource::read_text_graph() {
  types_.nodes[0].num_nodes = raw_.read_count("num-node-list");
  read_text_edges(0, raw_);
  require_plausible_size(path_);
  for (const auto& [name, field] :
       {std::pair{"node-feat", "features"}, {"node-label", "labels"}, {"species", "node_species"}})
    read_node_field(0, field, raw_, raw_.find_file(name, false), field == std::string("features"));
  for (const std::string& file : raw_.other_files("node_"))
    read_node_field(0, without_extension(file), raw_, file, false);
}

void OgbSource::read_splits(const std::string& scheme) {
  pair_lists_ = find_split(comm(), path_ + "/split", scheme);
  if (pair_lists_.empty() || !find_pair_lists().empty()) return;
  const OgbText split(comm(), std::exchange(pair_lists_, ""), block_bytes_);
  split.read_masks(nodes_[0], node_slices(0));
}

}  // namespace sar::formats

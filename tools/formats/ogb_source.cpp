#include "ogb_source.hpp"

#include <sar/core/error.hpp>
#include <sar/core/file.hpp>

#include <filesystem>
#include <memory>
#include <utility>

namespace sar::formats {

OgbSource::OgbSource(const Communicator& comm_of_source, const std::string& path,
                     const SourceOptions& options)
    : FileSource(comm_of_source, "OGB folder", path),
      block_bytes_(options.block_bytes),
      raw_(comm_of_source, path + "/raw", options.block_bytes) {
  bool binary = false;
  comm().agree([&] { binary = is_there(path_ + "/raw/data.npz"); });
  if (comm().all_reduce(binary ? 1 : 0, ReduceOp::max) == 1)
    read_binary_graph();
  else
    read_text_graph();
  read_splits(options.split);
  add_node_files(options.node_data);
}

void OgbSource::read_text_field(FieldTable& to, const std::string& field, const std::string& path,
                                bool features) {
  raw_.read_field(to, field, path,
                  PartitionBook::even(&to == &nodes_ ? num_nodes_ : num_edges_, comm().size()), features);
}

void OgbSource::read_text_graph() {
  num_nodes_ = raw_.read_count("num-node-list");
  num_edges_ = raw_.read_count("num-edge-list");
  raw_.read_edges(raw_.find_file("edge", true), num_edges_, num_nodes_, num_nodes_, chunks_);
  require_plausible_size(path_);
  if (const std::string file = raw_.find_file("node-feat", false); !file.empty())
    read_text_field(nodes_, "features", file, true);
  if (const std::string file = raw_.find_file("node-label", false); !file.empty())
    read_text_field(nodes_, "labels", file, false);
  if (const std::string file = raw_.find_file("species", false); !file.empty())
    read_text_field(nodes_, "node_species", file, false);
  for (const std::string& file : raw_.other_files("node_"))
    read_text_field(nodes_, without_extension(file), file, false);
  if (const std::string file = raw_.find_file("edge-feat", false); !file.empty())
    read_text_field(edges_, "features", file, true);
  for (const std::string& file : raw_.other_files("edge_"))
    read_text_field(edges_, without_extension(file), file, false);
}

void OgbSource::read_splits(const std::string& scheme) {
  pair_lists_ = find_split(comm(), path_ + "/split", scheme);
  if (pair_lists_.empty() || !find_pair_lists().empty()) return;
  const OgbText split(comm(), std::exchange(pair_lists_, ""), block_bytes_);
  split.read_masks(nodes_, PartitionBook::even(num_nodes_, comm().size()));
}

}  // namespace sar::formats

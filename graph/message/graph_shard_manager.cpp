// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/graph/message/graph_shard_manager.hpp>
#include <sar/graph/topology/make_topology.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

const GraphOptions& checked(const GraphOptions& options) {
  require<InputError>(options.pipeline_depth >= 1, "pipeline_depth is ", options.pipeline_depth,
                      "; it must be at least 1");
  require<InputError>(options.max_halo_bytes >= 0, "max_halo_bytes is ", options.max_halo_bytes,
                      "; it must not be negative");
  require<InputError>(options.edge_chunk >= 1, "edge_chunk is ", options.edge_chunk,
                      "; it must be at least 1");
  const std::vector<std::string> formats = allowed_halo_formats(options);
  const std::string format = to_string(options.halo_format);
  require<InputError>(std::ranges::find(formats, format) != formats.end(), "halo_format is ", format,
                      options.reproducible ? " on a reproducible graph" : " in double precision",
                      ", expected ", joined(formats));
  return options;
}

}  // namespace

GraphShardManager::GraphShardManager(const Communicator& comm, const PartitionBook& src_book,
                                     const PartitionBook& dst_book, EdgeList edges, bool is_block,
                                     const GraphOptions& options, Array<Index> src_ids, Array<Index> dst_ids)
    : GraphShardManager(comm.agree([&] {
        return GraphShardManager(std::make_shared<ShardedGraph>(
                                     make_topology(comm, src_book, dst_book, std::move(edges), is_block,
                                                   std::make_shared<const Array<Index>>(std::move(src_ids)),
                                                   std::make_shared<const Array<Index>>(std::move(dst_ids)))),
                                 options);
      })) {}

GraphShardManager::GraphShardManager(std::shared_ptr<const ShardedGraph> state, const GraphOptions& options)
    : GraphShardManager(state, options, Frames(state->is_homogeneous())) {}

GraphShardManager::GraphShardManager(std::shared_ptr<const ShardedGraph> state, const GraphOptions& options,
                                     Frames frames)
    : options_(checked(options)),
      state_(std::move(state)),
      frames_(std::make_shared<Frames>(std::move(frames))) {}

void GraphShardManager::set_options(const GraphOptions& options) {
  options_ = checked(options);
}

GraphShardManager GraphShardManager::get_full_partition_graph() const {
  GraphShardManager block = *this;
  block.options_.mode = HaloMode::one_shot;
  return block;
}

Tensor GraphShardManager::local_edge_rows(const Tensor& by_edge_id) const {
  return comm().agree([&] {
    for (const Index id : edge_ids())
      require<ShapeError>(id >= 0 && id < by_edge_id.num_rows(), "edge data of shape ", by_edge_id.shape(),
                          " has no row for edge ", id);
    Tensor rows(by_edge_id.shape().with_rows(num_edges()));
    gather_rows(by_edge_id, edge_ids(), rows);
    return rows;
  });
}

const GraphTopology& GraphShardManager::topology() const noexcept {
  return *state_->topology;
}
const Communicator& GraphShardManager::comm() const noexcept {
  return topology().comm;
}
Index GraphShardManager::num_src_nodes() const noexcept {
  return state_->num_src_rows();
}
Index GraphShardManager::num_dst_nodes() const noexcept {
  return topology().local.num_dst;
}
Index GraphShardManager::num_edges() const noexcept {
  return topology().num_edges();
}
Index GraphShardManager::num_global_src_nodes() const noexcept {
  return topology().src_book.num_nodes();
}
Index GraphShardManager::num_global_dst_nodes() const noexcept {
  return topology().dst_book.num_nodes();
}
Index GraphShardManager::num_global_edges() const noexcept {
  return topology().num_global_edges;
}
std::size_t GraphShardManager::index_bytes() const noexcept {
  return state_->bytes();
}
bool GraphShardManager::is_block() const noexcept {
  return topology().is_block;
}
const Array<Index>& GraphShardManager::in_degrees() const {
  return state_->degrees.in->get();
}
const Array<Index>& GraphShardManager::out_degrees() const {
  return state_->degrees.out->get();
}
const Array<Index>& GraphShardManager::src_ids() const noexcept {
  return *state_->shared_src_ids;
}
const Array<Index>& GraphShardManager::dst_ids() const noexcept {
  return topology().dst_ids();
}
const Array<Index>& GraphShardManager::edge_ids() const {
  return topology().edge_ids();
}
void GraphShardManager::drop_edge_ids() {
  topology().shared_edge_ids->reset();
}
const Tensor& GraphShardManager::edge_weight() const noexcept {
  return topology().edge_weight;
}

Frame& GraphShardManager::ndata() const {
  require<InputError>(
      frames_->src == frames_->dst,
      "ndata() of a graph whose sources and destinations are different nodes; use srcdata() and "
      "dstdata()");
  return *frames_->src;
}

LocalScope GraphShardManager::local_scope() const {
  return LocalScope(frames_);
}

LocalScope::LocalScope(std::shared_ptr<Frames> frames) : frames_(std::move(frames)) {
  for (const auto& frame : {frames_->src, frames_->dst, frames_->edge}) before_.push_back(*frame);
}
LocalScope::~LocalScope() {
  std::size_t k = 0;
  for (const auto& frame : {frames_->src, frames_->dst, frames_->edge}) *frame = std::move(before_[k++]);
}

}}  // namespace sar

// SPDX-License-Identifier: MIT
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/graph/topology/graph_topology.hpp>
#include <sar/graph/topology/sharded_graph.hpp>

#include <algorithm>
#include <utility>

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

Graph::Graph(const Communicator& comm, const PartitionBook& src_book, const PartitionBook& dst_book,
             EdgeList edges, bool is_block, const GraphOptions& options, Array<Index> src_ids,
             Array<Index> dst_ids)
    : Graph(comm.agree([&] {
        return Graph(std::make_shared<ShardedGraph>(
                         make_topology(comm, src_book, dst_book, std::move(edges), is_block,
                                       std::make_shared<const Array<Index>>(std::move(src_ids)),
                                       std::make_shared<const Array<Index>>(std::move(dst_ids)))),
                     options);
      })) {}

Graph::Graph(std::shared_ptr<const ShardedGraph> relation, const GraphOptions& options)
    : Graph(relation, options, Frames(relation->is_homogeneous())) {}

Graph::Graph(std::shared_ptr<const ShardedGraph> relation, const GraphOptions& options, Frames frames)
    : options_(checked(options)),
      relation_(std::move(relation)),
      frames_(std::make_shared<Frames>(std::move(frames))) {}

const Graph& Graph::relation() const {
  if (relation_ == nullptr)
    throw InputError(concat("a graph of ", edge_types().size(), " edge types (",
                            joined(edge_types(), &EdgeType::canonical_name),
                            ") where one is needed, expected graph[type]"));
  return *this;
}
const std::shared_ptr<const ShardedGraph>& Graph::shards() const {
  return relation().relation_;
}

void Graph::set_options(const GraphOptions& options) {
  options_ = checked(options);
}

Graph Graph::get_full_partition_graph() const {
  Graph block = *this;
  block.options_.mode = HaloMode::one_shot;
  return block;
}

Tensor Graph::local_edge_rows(const Tensor& by_edge_id) const {
  return comm().agree([&] {
    for (const Index id : edge_ids())
      require<ShapeError>(id >= 0 && id < by_edge_id.num_rows(), "edge data of shape ", by_edge_id.shape(),
                          " has no row for edge ", id);
    Tensor rows(by_edge_id.shape().with_rows(num_edges()));
    gather_rows(by_edge_id, edge_ids(), rows);
    return rows;
  });
}

const GraphTopology& Graph::topology() const {
  return *shards()->topology;
}
Index Graph::num_src_nodes() const {
  return shards()->num_src_rows();
}
Index Graph::num_dst_nodes() const {
  return topology().local.num_dst;
}
Index Graph::num_global_src_nodes() const {
  return topology().src_book.num_nodes();
}
Index Graph::num_global_dst_nodes() const {
  return topology().dst_book.num_nodes();
}
std::size_t Graph::index_bytes() const {
  return shards()->bytes();
}
const Array<Index>& Graph::in_degrees() const {
  return shards()->degrees.in->get();
}
const Array<Index>& Graph::out_degrees() const {
  return shards()->degrees.out->get();
}
const Array<Index>& Graph::src_ids() const {
  return *shards()->shared_src_ids;
}
const Array<Index>& Graph::dst_ids() const {
  return topology().dst_ids();
}
const Array<Index>& Graph::edge_ids() const {
  return topology().edge_ids();
}
void Graph::drop_edge_ids() {
  topology().shared_edge_ids->reset();
}
const Tensor& Graph::edge_weight() const {
  return topology().edge_weight;
}

Frame& Graph::ndata() const {
  require<InputError>(
      frames().src == frames().dst,
      "ndata() of a graph whose sources and destinations are different nodes; use srcdata() and "
      "dstdata()");
  return *frames().src;
}

LocalScope Graph::local_scope() const {
  (void)frames();  // throws if there are several relations
  return LocalScope(frames_);
}

LocalScope::LocalScope(std::shared_ptr<Frames> frames) : frames_(std::move(frames)) {
  for (const auto& frame : {frames_->src, frames_->dst, frames_->edge}) before_.push_back(*frame);
}
LocalScope::~LocalScope() {
  std::size_t k = 0;
  for (const auto& frame : {frames_->src, frames_->dst, frames_->edge}) *frame = std::move(before_[k++]);
}

Tensor fetch_edge_rows(const Graph& graph, const PartitionBook& ids, const Tensor& mine) {
  const Communicator& comm = graph.comm();
  return comm.agree([&] {
    require<ShapeError>(ids.num_parts() == comm.size() && mine.num_rows() == ids.num_nodes(comm.rank()),
                        "edge data of shape ", mine.shape(), " of rank ", comm.rank(),
                        " has not a row for each of its edge ids");
    require<ShapeError>(comm.all_equal(mine.row_size(), "fetch_edge_rows"),
                        "the ranks have edge data of different widths, rank ", comm.rank(), " of ",
                        mine.row_size());
    Tensor rows(mine.shape().with_rows(graph.num_edges()));
    fetch_row_bytes(comm, ids, reinterpret_cast<const std::byte*>(mine.data()),
                    mine.row_size() * static_cast<Index>(sizeof(real)), graph.edge_ids(),
                    reinterpret_cast<std::byte*>(rows.data()));
    return rows;
  });
}
}}  // namespace sar

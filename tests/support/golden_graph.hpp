// SPDX-License-Identifier: MIT

/// The graph of a golden case, distributed over the ranks: homogeneous, bipartite or a block.
///
/// Each rank gets an even share of the sources and destinations. In a block the destinations are the first
/// sources of the whole graph, and each rank's destinations must be the first of its own sources: nodes are
/// renumbered for that.
#pragma once

#include "support/reference.hpp"
#include "support/rows.hpp"

#include <sar/graph/construct/message_flow_graph.hpp>
#include <sar/graph/message/graph.hpp>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace sar::test {

struct GoldenGraph {
  std::vector<Index> my_src;  ///< this rank's sources as the case numbers them, in local order
  std::vector<Index> my_dst;
  Graph graph;

  /// The rows of a whole tensor that belong to these nodes or edges.
  static Tensor rows(const Tensor& whole, std::span<const Index> ids) {
    Tensor mine(whole.shape().with_rows(std::ssize(ids)));
    for (Index i = 0; i < mine.num_rows(); ++i) std::copy_n(whole.row(ids[i]), whole.row_size(), mine.row(i));
    return mine;
  }
  [[nodiscard]] Tensor src_rows(const Tensor& whole) const { return rows(whole, my_src); }
  [[nodiscard]] Tensor dst_rows(const Tensor& whole) const { return rows(whole, my_dst); }
  [[nodiscard]] Tensor edge_rows(const Tensor& whole) const { return rows(whole, graph.edge_ids()); }
};

/// form: "homogeneous", "bipartite" or "block".
inline GoldenGraph golden_graph(const Communicator& comm, const std::vector<Index>& src,
                                const std::vector<Index>& dst, Index num_src, Index num_dst,
                                const std::string& form, const GraphOptions& options) {
  const bool block = form == "block", bipartite = form == "bipartite";
  const PartitionBook dst_book = PartitionBook::even(num_dst, comm.size());

  // old_src[new number] = number in the case
  std::vector<Index> old_src, src_offsets{0};
  const PartitionBook rest = PartitionBook::even(std::max<Index>(num_src - num_dst, 0), comm.size());
  const PartitionBook all = PartitionBook::even(num_src, comm.size());
  for (int p = 0; p < comm.size(); ++p) {
    if (block) {
      for (Index v = dst_book.begin(p); v < dst_book.end(p); ++v) old_src.push_back(v);
      for (Index v = rest.begin(p); v < rest.end(p); ++v) old_src.push_back(num_dst + v);
    } else {
      for (Index v = all.begin(p); v < all.end(p); ++v) old_src.push_back(v);
    }
    src_offsets.push_back(static_cast<Index>(old_src.size()));
  }
  std::vector<Index> new_src(old_src.size());
  for (Index i = 0; i < std::ssize(old_src); ++i) new_src[old_src[i]] = i;
  const PartitionBook src_book(src_offsets);

  EdgeList edges;
  for (Index k = 0; k < std::ssize(src); ++k) {
    if (dst_book.owner(dst[k]) != comm.rank()) continue;
    edges.src.push_back(new_src[src[k]]);
    edges.dst.push_back(dst[k]);
    edges.id.push_back(k);
  }
  std::vector<Index> my_dst;
  for (Index v = dst_book.begin(comm.rank()); v < dst_book.end(comm.rank()); ++v) my_dst.push_back(v);
  return {{old_src.begin() + src_book.begin(comm.rank()), old_src.begin() + src_book.end(comm.rank())},
          std::move(my_dst),
          Graph(comm, src_book, dst_book, std::move(edges), !bipartite, options)};
}

inline GoldenGraph golden_graph(const Communicator& comm, const Case& golden, const GraphOptions& options) {
  return golden_graph(comm, golden.indices("src"), golden.indices("dst"),
                      static_cast<Index>(golden.number("num_src")),
                      static_cast<Index>(golden.number("num_dst")), golden.arg("graph"), options);
}

/// The graph of a homogeneous case as two message flow graphs of one layer: one for every third node of each
/// rank, one for the others. Together their outputs are the rows of the case's output, and the sums of their
/// gradients are its gradients.
inline std::vector<MessageFlowGraph> golden_mfgs(const GoldenGraph& whole) {
  std::vector<Index> seeds, others;
  for (const Index v : whole.my_dst) (v % 3 == 1 ? seeds : others).push_back(v);
  std::vector<MessageFlowGraph> mfgs = construct_mfgs(whole.graph, seeds, 1);
  mfgs.push_back(construct_mfgs(whole.graph, others, 1)[0]);
  return mfgs;
}

/// The part of a golden graph that is a message flow graph.
inline GoldenGraph golden_part(const GoldenGraph& whole, const MessageFlowGraph& mfg) {
  const auto pick = [](const std::vector<Index>& nodes, const Array<Index>& rows) {
    std::vector<Index> picked;
    for (const Index row : rows) picked.push_back(nodes[row]);
    return picked;
  };
  return {pick(whole.my_src, mfg.src_rows()), pick(whole.my_dst, mfg.dst_rows()), mfg};
}

}  // namespace sar::test

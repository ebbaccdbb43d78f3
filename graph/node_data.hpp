/// What one worker holds of a dataset: its nodes, their data, and their in-edges.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/core/tensor.hpp>
#include <sar/graph/partition_book.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sar {

/// In-edges of this worker's nodes, in no particular order. Ids are those of the partitioned graph
/// (PartitionBook); `id` names the edge in the whole graph: unique, and the same for every partitioning.
struct EdgeList {
  Array<Index> src;
  Array<Index> dst;
  Array<Index> id;
  Array<real> weight;  ///< empty, or one per edge

  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
};

/// Rows belong to the nodes book.begin(p) .. book.end(p) of rank p, in that order.
struct NodeData {
  std::string name;           ///< for messages: "cora", "sbm"
  PartitionBook book;         ///< who owns which nodes
  Array<Index> original_ids;  ///< the node's id in the dataset: keys random draws, names results
  EdgeList edges;             ///< in-edges of my nodes
  Index num_edges = 0;        ///< of the whole graph
  Index num_classes = 0;
  Tensor features;             ///< [my nodes, F]
  Array<std::int64_t> labels;  ///< -1: unlabelled
  Array<std::uint8_t> train_mask, val_mask, test_mask;

  [[nodiscard]] Index num_nodes() const noexcept { return book.num_nodes(); }
};

}  // namespace sar

// SPDX-License-Identifier: MIT

/// EdgeList: edges as columns, the input of graph construction.
#pragma once

#include <sar/core/memory/memory.hpp>

namespace sar { inline namespace SAR_PRECISION {

/// In-edges of this rank's nodes, in no particular order. Node ids are global ids (PartitionBook). `id`
/// identifies the edge in the whole graph: it is unique, and the same for every partitioning.
struct EdgeList {
  Array<Index> src;
  Array<Index> dst;
  Array<Index> id;
  Array<real> weight;  ///< empty, or one per edge

  void append(const EdgeList& from, Index e) {
    src.push_back(from.src[e]);
    dst.push_back(from.dst[e]);
    id.push_back(from.id[e]);
    if (!from.weight.empty()) weight.push_back(from.weight[e]);
  }
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(src.size()); }
};

}}  // namespace sar

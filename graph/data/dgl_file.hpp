// SPDX-License-Identifier: MIT

/// Binary files that DGL writes: named tensors (node_feat.dgl, by dgl.data.utils.save_tensors) and graphs
/// (graph.dgl, by dgl.save_graphs).
///
/// Everything is local. Errors are InputError with the file, the tensor and its place in the file, what was
/// found and what was expected. Sizes are checked against the file's size before memory is allocated.
/// dgl_file.cpp describes the layout.
#pragma once

#include <sar/core/files/data_array.hpp>
#include <sar/core/memory/memory.hpp>

#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

/// The tensors of a file, by name; the first extent of a tensor counts its rows.
DataColumns read_dgl_tensors(const std::string& path);

/// A heterogeneous graph. The nodes of each type and the edges of each type are counted from 0.
struct DglGraph {
  struct NodeType {
    std::string name;
    Index num_nodes = 0;
    DataColumns data;
  };
  struct EdgeType {
    std::string name;
    Index src_type = 0, dst_type = 0;  ///< positions in node_types
    Array<Index> src, dst;             ///< the ends of edge 0, 1, ...
    DataColumns data;
  };
  std::vector<NodeType> node_types;
  std::vector<EdgeType> edge_types;
};

/// The graph of a file with one graph, in any of DGL's formats (COO, CSR, CSC), with ids of 32 or 64 bits.
DglGraph read_dgl_graph(const std::string& path);
}}  // namespace sar

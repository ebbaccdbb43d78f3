/// Binary files that DGL writes: named tensors (node_feat.dgl, by dgl.data.utils.save_tensors) and graphs
/// (graph.dgl, by dgl.save_graphs).
///
/// Everything is local. Errors are InputError naming the file, the tensor, where it lies, what was found and
/// what was expected; sizes are checked against the file's before memory is asked for. docs/file_formats.md
/// describes the formats.
#pragma once

#include <sar/core/memory.hpp>
#include <sar/graph/io/data_array.hpp>

#include <string>
#include <vector>

namespace sar {

/// The tensors of a file, by name; the first extent of a tensor counts its rows.
DataColumns read_dgl_tensors(const std::string& path);

/// A graph with any types of nodes and edges. Nodes of each type and edges of each type are counted from 0.
struct DglGraph {
  struct NodeType {
    std::string name;
    Index num_nodes = 0;
    DataColumns data;
  };
  struct EdgeType {
    std::string name;
    std::size_t src_type = 0, dst_type = 0;  ///< of node_types
    Array<Index> src, dst;                   ///< the ends of edge 0, 1, ...
    DataColumns data;
  };
  std::vector<NodeType> node_types;
  std::vector<EdgeType> edge_types;
};

/// The only graph of a file, stored in any of DGL's formats (COO, CSR, CSC), with ids of 32 or 64 bits.
DglGraph read_dgl_graph(const std::string& path);

}  // namespace sar

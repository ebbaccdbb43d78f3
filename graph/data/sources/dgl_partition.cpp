// SPDX-License-Identifier: MIT
#include <sar/comm/rows/unique_ids.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/data/sources/dgl_partition.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Appends the fields of several parts to each other. A part without rows may lack them.
DataColumns join_columns(std::vector<std::pair<Index, DataColumns*>> parts, const std::string& what) {
  std::erase_if(parts, [](const auto& part) { return part.first == 0; });
  if (parts.empty()) return {};
  DataColumns joined = std::move(*parts.front().second);
  if (parts.size() == 1) return joined;
  for (auto& [name, first] : joined) {
    Index rows = 0;
    for (const auto& [num_rows, columns] : parts) {
      rows += num_rows;
      if (columns == parts.front().second) continue;
      const auto found = columns->find(name);
      require<InputError>(columns->size() == joined.size() && found != columns->end() &&
                              found->second.type == first.type && found->second.row_shape == first.row_shape,
                          what, ": the data '", name, "' are not in all parts, expected the same of each");
    }
    DataArray all(first.type, first.row_shape, rows);
    auto* out = all.bytes.data();
    for (const auto& [num_rows, columns] : parts) {
      DataArray& part = columns == parts.front().second ? first : columns->at(name);
      out = std::copy(part.bytes.begin(), part.bytes.end(), out);
      part = {};
    }
    first = std::move(all);
  }
  return joined;
}

/// The arrays array(part) of all parts, one after the other.
template <class GetArray>
Array<Index> join_arrays(std::vector<GraphData>& parts, const GetArray& array) {
  if (parts.size() == 1) return std::move(array(parts.front()));
  Array<Index> joined;
  for (GraphData& part : parts) joined.insert(joined.end(), array(part).begin(), array(part).end());
  return joined;
}

/// The type of an end of the edges is known when one of the parts knows it.
void join_end_type(std::string& known, const std::string& other, const std::string& what) {
  if (known.empty()) known = other;
  require<InputError>(other.empty() || other == known, what, ": edges end in nodes of type ", known,
                      " and of ", other, ", expected one type");
}

GraphData join_parts(std::vector<GraphData> parts, const std::string& path) {
  GraphData joined;
  for (std::size_t t = 0; t < parts.front().node_types.size(); ++t) {
    std::vector<std::pair<Index, DataColumns*>> data;
    bool ids_are_original = true;
    for (GraphData& part : parts) {
      NodeTypeData& type = part.node_types[t];
      ids_are_original = ids_are_original && type.ids_are_original;
      data.emplace_back(static_cast<Index>(type.original_ids.size()), &type.data);
    }
    const std::string name = parts.front().node_types[t].name;
    DataColumns columns = join_columns(std::move(data), concat(path, ": node type ", name));
    Array<Index> ids = join_arrays(
        parts, [&](GraphData & part) -> auto& { return part.node_types[t].original_ids; });
    joined.node_types.push_back({name, {}, std::move(ids), std::move(columns), ids_are_original});
  }
  for (std::size_t t = 0; t < parts.front().edge_types.size(); ++t) {
    std::vector<std::pair<Index, DataColumns*>> data;
    EdgeTypeData& first = parts.front().edge_types[t];
    const std::string what = concat(path, ": edge type ", first.name);
    bool ids_are_original = true;
    for (GraphData& part : parts) {
      EdgeTypeData& type = part.edge_types[t];
      ids_are_original = ids_are_original && type.ids_are_original;
      join_end_type(first.src_type, type.src_type, what);
      join_end_type(first.dst_type, type.dst_type, what);
      data.emplace_back(type.edges.size(), &type.data);
    }
    EdgeTypeData type{first.src_type, first.name, first.dst_type, {}, 0, {}};
    type.data = join_columns(std::move(data), what);
    type.ids_are_original = ids_are_original;
    for (const auto column : {&EdgeList::src, &EdgeList::dst, &EdgeList::id})
      type.edges.*column = join_arrays(
          parts, [&](GraphData & part) -> auto& { return part.edge_types[t].edges.*column; });
    joined.edge_types.push_back(std::move(type));
  }
  return joined;
}

/// Gives a rank without rows the fields of the others, without rows. Collective, inside agree().
void agree_on_columns(const Communicator& comm, DataColumns& columns, Index rows, const std::string& what) {
  const int root = comm.all_reduce(rows > 0 ? comm.rank() : comm.size() - 1, ReduceOp::min);
  auto count = static_cast<Index>(columns.size());
  comm.broadcast(std::span(&count, 1), root);
  DataColumns expected;
  auto mine = columns.begin();  // names of the root in turn
  for (Index i = 0; i < count; ++i) {
    const bool is_root = comm.rank() == root;
    const std::string name = comm.broadcast(is_root ? mine->first : std::string(), root);
    std::vector<Index> layout;  // the shape of a row and the type
    if (is_root) {
      layout = mine->second.row_shape;
      layout.push_back(static_cast<Index>(mine->second.type));
      ++mine;
    }
    auto length = static_cast<Index>(layout.size());
    comm.broadcast(std::span(&length, 1), root);
    layout.resize(length);
    comm.broadcast(std::span(layout), root);
    const auto type = static_cast<NpyType>(layout.back());
    layout.pop_back();
    expected.emplace(name, DataArray(type, std::move(layout), 0));
  }
  if (rows == 0) {
    columns = std::move(expected);
    return;
  }
  require<InputError>(columns.size() == expected.size(), what, ": there are ", columns.size(),
                      " data in one part and ", expected.size(), " in another, expected the same");
  for (const auto& [name, column] : expected) {
    const auto found = columns.find(name);
    require<InputError>(found != columns.end() && found->second.type == column.type &&
                            found->second.row_shape == column.row_shape,
                        what, ": the data '", name,
                        "' are not the same in all parts, expected the same type and shape");
  }
}

/// Where the JSON does not tell the type of an end, a rank with edges has found it. Collective, inside
/// agree().
void agree_on_end_type(const Communicator& comm, const DglPartition& partition, std::string& type,
                       const std::string& what) {
  const auto& names = partition.node_types;
  const auto mine = type.empty()
                        ? Index{-1}
                        : static_cast<Index>(std::find(names.begin(), names.end(), type) - names.begin());
  const Index common = names.size() == 1 ? 0 : comm.all_reduce(mine, ReduceOp::max);
  require<InputError>(common >= 0, what,
                      ": there are no edges and their ends have no types, expected a name such as "
                      "author:writes:paper");
  join_end_type(type, names[common], what);
}

}  // namespace

GraphData load_dgl_partition(const Communicator& comm, const std::string& json_path) {
  return comm.agree([&] {
    const DglPartition partition = read_dgl_partition(json_path);
    const auto num_parts = static_cast<Index>(partition.parts.size());
    require<InputError>(comm.size() <= num_parts, json_path, ": there are ", num_parts, " parts for ",
                        comm.size(), " ranks, expected a part for each rank at least");
    const PartitionBook parts_of_rank = PartitionBook::even(num_parts, comm.size());
    std::vector<GraphData> parts;
    for (Index p = parts_of_rank.begin(comm.rank()); p < parts_of_rank.end(comm.rank()); ++p)
      parts.push_back(read_dgl_part(partition, static_cast<int>(p)));
    GraphData mine = join_parts(std::move(parts), json_path);
    mine.name = partition.name;
    for (std::size_t t = 0; t < mine.node_types.size(); ++t) {
      NodeTypeData& nodes = mine.node_types[t];
      const std::string what = concat(json_path, ": node type ", nodes.name);
      nodes.book = partition.nodes.books[t].joined(parts_of_rank);
      nodes.ids_are_original = comm.all_reduce(nodes.ids_are_original ? 1 : 0, ReduceOp::min) == 1;
      require_permutation(comm, nodes.original_ids, nodes.book.num_nodes(), what + ": original ids");
      agree_on_columns(comm, nodes.data, static_cast<Index>(nodes.original_ids.size()), what);
    }
    for (std::size_t t = 0; t < mine.edge_types.size(); ++t) {
      EdgeTypeData& edges = mine.edge_types[t];
      const std::string what = concat(json_path, ": edge type ", edges.name);
      edges.num_edges = partition.edges.books[t].num_nodes();
      edges.ids_are_original = comm.all_reduce(edges.ids_are_original ? 1 : 0, ReduceOp::min) == 1;
      agree_on_end_type(comm, partition, edges.src_type, what);
      agree_on_end_type(comm, partition, edges.dst_type, what);
      require_permutation(comm, edges.edges.id, edges.num_edges, what + ": original ids");
      agree_on_columns(comm, edges.data, edges.edges.size(), what);
    }
    return mine;
  });
}

}}  // namespace sar

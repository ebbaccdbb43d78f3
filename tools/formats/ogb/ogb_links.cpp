// SPDX-License-Identifier: MIT

/// The splits of OGB's folders of link prediction: lists of pairs of nodes, and of knowledge graphs: lists of
/// (head, relation, tail) of several edge types.
#include "formats/packed/npz.hpp"
#include "formats/packed/sliced_rows.hpp"
#include "formats/packed/zip_file.hpp"
#include "ogb_source.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <array>
#include <numeric>
#include <utility>

namespace sar::formats {
namespace {

constexpr Index most_relations = Index{1} << 31;

Array<Index> integers_of(const DataArray& rows) {
  Array<Index> values(static_cast<std::size_t>(rows.num_rows * rows.row_size()));
  convert_elements(rows.type, rows.bytes.data(), std::ssize(values), values.data());
  return values;
}

/// A column of integers.
Array<Index> column_of(const DataArray& rows, Index column) {
  const Array<Index> all = integers_of(rows);
  Array<Index> values;
  for (Index i = 0; i < rows.num_rows; ++i) values.push_back(all[i * rows.row_size() + column]);
  return values;
}

}  // namespace

std::vector<std::string> OgbSource::find_pair_lists() const {
  return shared_list(comm(), [&] {
    std::vector<std::string> found;
    for (const char* list : {"/train", "/valid", "/test"})
      for (const char* form : {".npz", "/edge", "/source_node", "/head", ".pt"}) {
        const std::string path = pair_lists_ + list;
        const std::string file = *form == '.' ? path + form : csv_file(path + form);
        if (!file.empty() && is_there_or_packed(file) && csv_file(path).empty()) found.push_back(file);
      }
    return found;
  });
}

std::vector<ListedPairs> OgbSource::read_listed_pairs(std::size_t type) {
  if (pair_lists_.empty()) return {};
  std::vector<ListedPairs> lists;
  const Index relation = has_types_ ? relation_number(type) : 0;
  for (const char* list : {"/train", "/valid", "/test"})
    lists.push_back(has_types_ ? read_triples(pair_lists_ + list, type, relation)
                               : read_pairs(pair_lists_ + list));
  return lists;
}

/// The lists "edge" and "edge_neg", or "source_node", "target_node" and "target_node_neg".
ListedPairs OgbSource::read_pairs(const std::string& list) {
  ListedPairs pairs;
  const std::optional<DataArray> edge = read_pair_array(list, "edge", 2);
  if (edge) {
    pairs.edges.src = column_of(*edge, 0);
    pairs.edges.dst = column_of(*edge, 1);
    if (const auto negative = read_pair_array(list, "edge_neg", 2))
      pairs.negatives = {column_of(*negative, 0), column_of(*negative, 1)};
  } else {
    const auto source = read_pair_array(list, "source_node", 1),
               target = read_pair_array(list, "target_node", 1);
    require<InputError>(
        source && target, list,
        source || target ? ": source_node or target_node is missing" : ".npz: there are no pairs",
        ", expected the array edge, or source_node and target_node");
    pairs.edges.src = column_of(*source, 0);
    pairs.edges.dst = column_of(*target, 0);
    const Index ends[] = {comm().all_reduce(source->num_rows), comm().all_reduce(target->num_rows)};
    require<InputError>(ends[0] == ends[1], list, ": source_node has ", ends[0], " rows, expected ", ends[1],
                        " as target_node");
    if (const auto negative = read_pair_array(list, "target_node_neg", 0)) {
      const Index rows = comm().all_reduce(negative->num_rows);
      require<InputError>(rows == ends[0], list, ": target_node_neg has ", rows, " rows, expected ", ends[0],
                          " as source_node");
      pairs.negatives_per_edge = negative->row_size();
      for (Index i = 0; i < negative->num_rows; ++i)
        pairs.negatives.src.insert(pairs.negatives.src.end(), static_cast<std::size_t>(negative->row_size()),
                                   pairs.edges.src[i]);
      pairs.negatives.dst = integers_of(*negative);
    }
  }
  pairs.edges.id.resize(pairs.edges.src.size());
  const auto before = comm().all_gather(std::ssize(pairs.edges.src));
  std::iota(pairs.edges.id.begin(), pairs.edges.id.end(),
            std::accumulate(before.begin(), before.begin() + comm().rank(), Index{0}));
  return pairs;
}

/// This rank's slice of an array of nodes, [n] or [n, columns]; 0: any. None if there is none of the name.
std::optional<DataArray> OgbSource::read_pair_array(const std::string& list, const std::string& name,
                                                    Index columns, Index end, const char* what) {
  const auto files = shared_list(comm(), [&] {
    const std::string path = is_there_or_packed(list + ".npz") ? list + ".npz" : csv_file(list + "/" + name);
    require<InputError>(
        is_there_or_packed(list + ".npz") || !is_there_or_packed(list + ".pt") || is_there_or_packed(list),
        list, ".pt: is a file of torch, expected ", list,
        ".npz, as Python writes it: numpy.savez(\"train.npz\", **torch.load(\"train.pt\", "
        "weights_only=False)) and so on");
    return path.empty() ? std::vector<std::string>() : std::vector<std::string>{path};
  });
  if (files.empty()) return std::nullopt;
  std::string place = files[0];
  DataArray rows;
  if (place.ends_with(".npz")) {
    const auto archive = open_npz(comm(), place);
    const NpzMember* member = archive->find(name);
    if (member == nullptr) return std::nullopt;
    place = archive->place_of(*member);
    rows = read_pair_member(*archive, *member);
  } else {
    rows = read_pair_text(place, end);
  }
  const Index all = comm().all_reduce(rows.num_rows);
  comm().agree([&] {
    require<InputError>(all == 0 || columns == 0 || rows.row_size() == columns, place, ": a row has ",
                        rows.row_size(), " numbers, expected ", columns);
    Array<Index> nodes(static_cast<std::size_t>(rows.num_rows * rows.row_size()));
    const Index held = convert_elements(rows.type, rows.bytes.data(), std::ssize(nodes), nodes.data());
    if (held < std::ssize(nodes))
      throw_not_held<Index>(place, concat("a ", what), rows.type,
                            rows.bytes.data() + held * element_bytes(rows.type));
    for (const Index node : nodes)
      require<InputError>(0 <= node && node < end, place, ": there is no ", what, " ", node, ", expected ",
                          index_range(end));
  });
  return rows;
}

/// A table whose number of lines is known in the end.
DataArray OgbSource::read_pair_text(const std::string& path, Index end) {
  const TableFormat format{.columns = count_columns(comm(), path), .smallest = 0, .largest = end - 1};
  std::vector<std::pair<Index, std::vector<std::int64_t>>> blocks;
  const PartitionBook slices = slices_of(
      read_table<std::int64_t>(comm(), path, format, block_bytes_, [&](auto& values, const BlockPlace& at) {
        comm().agree([&] { blocks.emplace_back(at.first_row, std::exchange(values, {})); });
      }));
  DataArray mine;
  comm().agree([&] {
    mine = DataArray(NpyType::int64, {format.columns}, slices.num_nodes(comm().rank()));
    blocks.resize(static_cast<std::size_t>(comm().all_reduce(std::ssize(blocks), ReduceOp::max)));
  });
  for (const auto& [first, block] : blocks)
    send_rows(comm(), slices, first, std::as_bytes(std::span<const std::int64_t>(block)), mine.row_bytes(),
              mine.bytes.data());
  return mine;
}

DataArray OgbSource::read_pair_member(const NpzFile& archive, const NpzMember& member) {
  NpzArray array(comm(), archive, member);
  const std::vector<Index>& shape = array.header().shape;
  require<InputError>(shape.size() == 1 || shape.size() == 2, archive.place_of(member), ": shape is ",
                      shape_to_string(shape), ", expected nodes [n] or [n, k]");
  return array.read_rows(slices_of(shape[0]));
}

// Triples (head, relation, tail) of the graphs of several types.

Index OgbSource::relation_number(std::size_t type) {
  const EdgeTypeData& edges = types_.edge_types[type];
  const std::string place =
      concat(path_, "/raw/relations/", edges.src_type, "___", edges.name, "___", edges.dst_type);
  require<InputError>(edges_[type].data.contains("edge_reltype") && edges.num_edges > 0, place,
                      ": there is no edge_reltype.csv.gz with a row, expected one, which says the number of "
                      "this edge type in the lists of ",
                      pair_lists_);
  const std::array<Index, 1> first{0};
  const DataArray row = read_edge_data(type, "edge_reltype", first);
  return integers_of(row).at(0);
}

// With heads and tails that a pair stands against, it is there twice: its source against other sources, and
// its destination against other destinations.
ListedPairs OgbSource::read_triples(const std::string& list, std::size_t type, Index relation) {
  const EdgeTypeData& edges = types_.edge_types[type];
  const Index sources = types_.node_type(edges.src_type).num_nodes(),
              destinations = types_.node_type(edges.dst_type).num_nodes();
  const auto head = read_pair_array(list, "head", 1), tail = read_pair_array(list, "tail", 1),
             number = read_pair_array(list, "relation", 1, most_relations, "relation");
  require<InputError>(head && tail && number, list,
                      ": there are no arrays head, relation and tail, expected them, or the split of node "
                      "masks");
  std::array<std::optional<DataArray>, 2> others{read_pair_array(list, "head_neg", 0),
                                                 read_pair_array(list, "tail_neg", 0)};
  const Index rows = comm().all_reduce(head->num_rows);
  const auto check_rows = [&](const std::optional<DataArray>& array, const char* name) {
    const Index found = array ? comm().all_reduce(array->num_rows) : rows;
    require<InputError>(found == rows, list, ": ", name, " has ", found, " rows, expected ", rows,
                        " as head");
  };
  check_rows(tail, "tail");
  check_rows(number, "relation");
  check_rows(others[0], "head_neg");
  check_rows(others[1], "tail_neg");
  const auto before = comm().all_gather(head->num_rows);
  const Index first = std::accumulate(before.begin(), before.begin() + comm().rank(), Index{0});

  ListedPairs pairs;
  comm().agree([&] {
    const Array<Index> src = integers_of(*head), dst = integers_of(*tail), of = integers_of(*number);
    std::array<Array<Index>, 2> values;
    for (std::size_t end = 0; end < 2; ++end)
      if (others[end]) values[end] = integers_of(*others[end]);
    require<InputError>(!others[0] || !others[1] || others[0]->row_size() == others[1]->row_size(), list,
                        ": head_neg has ", others[0] ? others[0]->row_size() : 0, " columns and tail_neg ",
                        others[1] ? others[1]->row_size() : 0, ", expected as many");
    const auto check_node = [&](Index node, Index end, const char* name, const std::string& of_type) {
      require<InputError>(node < end, list, ": ", name, " has the node ", node, " of type ", of_type,
                          ", expected ", index_range(end));
      return node;
    };
    for (Index i = 0; i < std::ssize(src); ++i) {
      if (of[i] != relation) continue;
      const Index u = check_node(src[i], sources, "head", edges.src_type),
                  v = check_node(dst[i], destinations, "tail", edges.dst_type);
      const auto add = [&](Index copy) {
        pairs.edges.src.push_back(u);
        pairs.edges.dst.push_back(v);
        pairs.edges.id.push_back(2 * (first + i) + copy);
      };
      if (!others[0] && !others[1]) add(0);
      for (std::size_t end = 0; end < 2; ++end) {
        if (!others[end]) continue;
        add(static_cast<Index>(end));
        const Index k = others[end]->row_size();
        pairs.negatives_per_edge = k;
        for (Index j = 0; j < k; ++j) {
          const Index node = values[end][i * k + j];
          pairs.negatives.src.push_back(end == 0 ? check_node(node, sources, "head_neg", edges.src_type) : u);
          pairs.negatives.dst.push_back(
              end == 0 ? v : check_node(node, destinations, "tail_neg", edges.dst_type));
        }
      }
    }
  });
  pairs.negatives_per_edge = comm().all_reduce(pairs.negatives_per_edge, ReduceOp::max);
  return pairs;
}

}  // namespace sar::formats

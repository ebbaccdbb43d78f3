// SPDX-License-Identifier: MIT

/// The splits of OGB's folders of link prediction: lists of pairs of nodes, and of knowledge graphs: lists of
/// (head, relation, tail) of several edge types.
#include "formats/csv_table.hpp"
#include "formats/packed/npz.hpp"
#include "formats/packed/zip_file.hpp"
#include "ogb_source.hpp"

#include <sar/core/error.hpp>

#include <array>
#include <numeric>

namespace sar::formats {
namespace {

constexpr Index most_relations = Index{1} << 31;

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

Array<Index> OgbSource::PairArray::column(Index c) const {
  Array<Index> column;
  for (Index i = 0; i < rows; ++i) column.push_back(values[i * columns + c]);
  return column;
}

void OgbSource::require_rows(const std::string& list, const char* name, const std::optional<PairArray>& array,
                             const char* other_name, const PairArray& other) const {
  if (!array) return;
  const Index found = comm().all_reduce(array->rows), expected = comm().all_reduce(other.rows);
  require<InputError>(found == expected, list, ": ", name, " has ", found, " rows, expected ", expected,
                      " as ", other_name);
}

/// The lists "edge" and "edge_neg", or "source_node", "target_node" and "target_node_neg".
ListedPairs OgbSource::read_pairs(const std::string& list) {
  ListedPairs pairs;
  if (const auto edge = read_pair_array(list, "edge", 2)) {
    pairs.edges.src = edge->column(0);
    pairs.edges.dst = edge->column(1);
    if (const auto negative = read_pair_array(list, "edge_neg", 2))
      pairs.negatives = {negative->column(0), negative->column(1)};
  } else {
    const auto source = read_pair_array(list, "source_node", 1),
               target = read_pair_array(list, "target_node", 1);
    require<InputError>(
        source && target, list,
        source || target ? ": source_node or target_node is missing" : ".npz: there are no pairs",
        ", expected the array edge, or source_node and target_node");
    require_rows(list, "source_node", source, "target_node", *target);
    pairs.edges.src = source->values;
    pairs.edges.dst = target->values;
    const auto negative = read_pair_array(list, "target_node_neg", 0);
    require_rows(list, "target_node_neg", negative, "source_node", *source);
    if (negative) {
      pairs.negatives_per_edge = negative->columns;
      for (const Index node : source->values)
        pairs.negatives.src.insert(pairs.negatives.src.end(), static_cast<std::size_t>(negative->columns),
                                   node);
      pairs.negatives.dst = negative->values;
    }
  }
  pairs.edges.id.resize(pairs.edges.src.size());
  std::iota(pairs.edges.id.begin(), pairs.edges.id.end(),
            gather_book(comm(), std::ssize(pairs.edges.src)).begin(comm().rank()));
  return pairs;
}

std::optional<OgbSource::PairArray> OgbSource::read_pair_array(const std::string& list,
                                                               const std::string& name, Index columns,
                                                               Index end, const char* what) {
  std::string place = shared_path(comm(), [&] {
    const std::string npz = if_there(list + ".npz");
    require<InputError>(!npz.empty() || !is_there_or_packed(list + ".pt") || is_there_or_packed(list), list,
                        ".pt: is a file of torch, expected ", list,
                        ".npz, as Python writes it: numpy.savez(\"train.npz\", **torch.load(\"train.pt\", "
                        "weights_only=False)) and so on");
    return npz.empty() ? csv_file(list + "/" + name) : npz;
  });
  if (place.empty()) return std::nullopt;
  DataArray rows;
  if (place.ends_with(".npz")) {
    const auto archive = open_npz(comm(), place);
    const NpzMember* member = archive->find(name);
    if (member == nullptr) return std::nullopt;
    place = archive->place_of(*member);
    NpzArray array(comm(), *archive, *member);
    const std::vector<Index>& shape = array.header().shape;
    require<InputError>(shape.size() == 1 || shape.size() == 2, place, ": shape is ", shape_to_string(shape),
                        ", expected nodes [n] or [n, k]");
    rows = array.read_rows(slices_of(shape[0]));
  } else {
    const TableFormat format{.columns = count_columns(comm(), place), .smallest = 0, .largest = end - 1};
    rows = read_table_rows<std::int64_t>(comm(), place, format, block_bytes_);
  }
  const Index all = comm().all_reduce(rows.num_rows);
  return comm().agree([&] {
    require<InputError>(all == 0 || columns == 0 || rows.row_size() == columns, place, ": a row has ",
                        rows.row_size(), " numbers, expected ", columns);
    PairArray array{.rows = rows.num_rows, .columns = rows.row_size(), .values = {}};
    array.values.resize(static_cast<std::size_t>(rows.num_rows * rows.row_size()));
    const Index held =
        convert_elements(rows.type, rows.bytes.data(), std::ssize(array.values), array.values.data());
    if (held < std::ssize(array.values))
      throw_not_held<Index>(place, concat("a ", what), rows.type,
                            rows.bytes.data() + held * element_bytes(rows.type));
    for (const Index node : array.values)
      require<InputError>(0 <= node && node < end, place, ": there is no ", what, " ", node, ", expected ",
                          index_range(end));
    return array;
  });
}

// Triples (head, relation, tail) of the graphs of several types.

Index OgbSource::relation_number(std::size_t type) {
  const EdgeTypeData& edges = types_.edge_types[type];
  const std::string place =
      concat(path_, "/raw/relations/", edges.src_type, "___", edges.name, "___", edges.dst_type);
  require<InputError>(edges_[type].contains("edge_reltype") && edges.num_edges > 0, place,
                      ": there is no edge_reltype.csv.gz with a row, expected one, which says the number of "
                      "this edge type in the lists of ",
                      pair_lists_);
  const std::array<Index, 1> first{0};
  Index number = 0;
  const DataArray row = read_edge_data(type, "edge_reltype", first);
  convert_elements(row.type, row.bytes.data(), 1, &number);
  return number;
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
  const std::array<std::optional<PairArray>, 2> others{read_pair_array(list, "head_neg", 0),
                                                       read_pair_array(list, "tail_neg", 0)};
  require_rows(list, "tail", tail, "head", *head);
  require_rows(list, "relation", number, "head", *head);
  require_rows(list, "head_neg", others[0], "head", *head);
  require_rows(list, "tail_neg", others[1], "head", *head);
  const Index first = gather_book(comm(), head->rows).begin(comm().rank());

  ListedPairs pairs;
  comm().agree([&] {
    require<InputError>(!others[0] || !others[1] || others[0]->columns == others[1]->columns, list,
                        ": head_neg has ", others[0] ? others[0]->columns : 0, " columns and tail_neg ",
                        others[1] ? others[1]->columns : 0, ", expected as many");
    const auto check_node = [&](Index node, Index end, const char* name, const std::string& of_type) {
      require<InputError>(node < end, list, ": ", name, " has the node ", node, " of type ", of_type,
                          ", expected ", index_range(end));
      return node;
    };
    for (Index i = 0; i < head->rows; ++i) {
      if (number->values[i] != relation) continue;
      const Index u = check_node(head->values[i], sources, "head", edges.src_type),
                  v = check_node(tail->values[i], destinations, "tail", edges.dst_type);
      const auto add = [&](Index copy) {
        pairs.edges.src.push_back(u);
        pairs.edges.dst.push_back(v);
        pairs.edges.id.push_back(2 * (first + i) + copy);
      };
      if (!others[0] && !others[1]) add(0);
      for (std::size_t end = 0; end < 2; ++end) {
        if (!others[end]) continue;
        add(static_cast<Index>(end));
        const Index k = others[end]->columns;
        pairs.negatives_per_edge = k;
        for (Index j = 0; j < k; ++j) {
          const Index node = others[end]->values[i * k + j];
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

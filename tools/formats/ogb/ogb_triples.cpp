// SPDX-License-Identifier: MIT

/// The splits of OGB's folders of knowledge graphs: lists of (head, relation, tail) of several edge types.
#include "ogb_source.hpp"

#include <sar/core/error.hpp>

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

}  // namespace

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

// SPDX-License-Identifier: MIT
#include "ogb_text.hpp"

#include "formats/csv_table.hpp"
#include "formats/packed/npz.hpp"
#include "formats/packed/zip_file.hpp"

#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>

#include <array>
#include <utility>

namespace sar::formats {
namespace {

constexpr Index most_relations = Index{1} << 31;
constexpr const char* list_names[] = {"/train", "/valid", "/test"};

/// A rank's rows of an array of whole numbers.
struct PairArray {
  Index rows = 0, columns = 1;
  Array<Index> values;

  [[nodiscard]] Array<Index> column(Index c) const {
    Array<Index> column;
    for (Index i = 0; i < rows; ++i) column.push_back(values[i * columns + c]);
    return column;
  }
};

/// The arrays of a list, in the archive LIST.npz or in files LIST/NAME.csv.gz. Functions are collective, and
/// throw InputError, the same on every rank.
class PairList {
 public:
  PairList(const Communicator& comm, std::string path, Index block_bytes, Index num_nodes)
      : comm_(comm), path_(std::move(path)), block_bytes_(block_bytes), num_nodes_(num_nodes) {}

  /// The lists "edge" and "edge_neg", or "source_node", "target_node" and "target_node_neg".
  [[nodiscard]] ListedPairs pairs() const;
  /// The triples (head, relation, tail) of one relation.
  [[nodiscard]] ListedPairs triples(const ListedRelation& relation) const;

 private:
  using Found = std::optional<PairArray>;
  /// An array of nodes with so many columns, 0: any; nothing: there is none of the name.
  [[nodiscard]] Found read(const std::string& name, Index columns) const {
    return read(name, columns, num_nodes_, "node");
  }
  /// An array of numbers from 0 to end - 1, of which a message says `what` they are.
  [[nodiscard]] Found read(const std::string& name, Index columns, Index end, const char* what) const;
  /// Throws InputError if the arrays do not have as many rows on all ranks together.
  void require_rows(const char* name, const Found& array, const char* other_name, const Found& other) const {
    if (!array) return;
    const Index found = comm_.all_reduce(array->rows), expected = comm_.all_reduce(other->rows);
    require<InputError>(found == expected, path_, ": ", name, " has ", found, " rows, expected ", expected,
                        " as ", other_name);
  }

  const Communicator& comm_;
  std::string path_;
  Index block_bytes_, num_nodes_;
};

ListedPairs PairList::pairs() const {
  ListedPairs pairs;
  if (const Found edge = read("edge", 2)) {
    pairs.edges.src = edge->column(0);
    pairs.edges.dst = edge->column(1);
    if (const Found negative = read("edge_neg", 2))
      pairs.negatives = {negative->column(0), negative->column(1)};
  } else {
    const Found source = read("source_node", 1), target = read("target_node", 1);
    require<InputError>(
        source && target, path_,
        source || target ? ": source_node or target_node is missing" : ".npz: there are no pairs",
        ", expected the array edge, or source_node and target_node");
    require_rows("source_node", source, "target_node", target);
    pairs.edges.src = source->values;
    pairs.edges.dst = target->values;
    const Found negative = read("target_node_neg", 0);
    require_rows("target_node_neg", negative, "source_node", source);
    if (negative) {
      pairs.negatives_per_edge = negative->columns;
      for (const Index node : source->values)
        pairs.negatives.src.insert(pairs.negatives.src.end(), static_cast<std::size_t>(negative->columns),
                                   node);
      pairs.negatives.dst = negative->values;
    }
  }
  const Index edges = std::ssize(pairs.edges.src);
  pairs.edges.id = consecutive(gather_book(comm_, edges).begin(comm_.rank()), edges);
  return pairs;
}

PairList::Found PairList::read(const std::string& name, Index columns, Index end, const char* what) const {
  std::string place = shared_text(comm_, [&] {
    const std::string npz = if_there(path_ + ".npz");
    require<InputError>(!npz.empty() || !is_there_or_packed(path_ + ".pt") || is_there_or_packed(path_),
                        path_, ".pt: is a file of torch, expected ", path_,
                        ".npz, as Python writes it: numpy.savez(\"train.npz\", **torch.load(\"train.pt\", "
                        "weights_only=False)) and so on");
    return npz.empty() ? csv_file(path_ + "/" + name) : npz;
  });
  if (place.empty()) return std::nullopt;
  DataArray rows;
  if (place.ends_with(".npz")) {
    const auto archive = open_npz(comm_, place);
    const NpzMember* member = archive->find(name);
    if (member == nullptr) return std::nullopt;
    place = member->place();
    NpzArray array(comm_, *member);
    const std::vector<Index>& shape = array.shape();
    require<InputError>(shape.size() == 1 || shape.size() == 2, place, ": shape is ", shape_to_string(shape),
                        ", expected nodes [n] or [n, k]");
    rows = array.read_rows(PartitionBook::even(shape[0], comm_.size()));
  } else {
    const TableFormat format{.columns = count_columns(comm_, place), .smallest = 0, .largest = end - 1};
    rows = read_table_rows<std::int64_t>(comm_, place, format, block_bytes_);
  }
  const Index all = comm_.all_reduce(rows.num_rows);
  return comm_.agree([&] {
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

// With heads and tails that a pair stands against, it is there twice: its source against other sources, and
// its destination against other destinations.
ListedPairs PairList::triples(const ListedRelation& relation) const {
  const Found head = read("head", 1), tail = read("tail", 1),
              number = read("relation", 1, most_relations, "relation");
  require<InputError>(head && tail && number, path_,
                      ": there are no arrays head, relation and tail, expected them, or the split of node "
                      "masks");
  const std::array<Found, 2> others{read("head_neg", 0), read("tail_neg", 0)};
  require_rows("tail", tail, "head", head);
  require_rows("relation", number, "head", head);
  require_rows("head_neg", others[0], "head", head);
  require_rows("tail_neg", others[1], "head", head);
  const Index first = gather_book(comm_, head->rows).begin(comm_.rank());

  ListedPairs pairs;
  comm_.agree([&] {
    require<InputError>(!others[0] || !others[1] || others[0]->columns == others[1]->columns, path_,
                        ": head_neg has ", others[0] ? others[0]->columns : 0, " columns and tail_neg ",
                        others[1] ? others[1]->columns : 0, ", expected as many");
    const auto check_node = [&](Index node, const char* name, const NodeTypeData& of) {
      require<InputError>(node < of.num_nodes(), path_, ": ", name, " has the node ", node, " of type ",
                          of.name, ", expected ", index_range(of.num_nodes()));
      return node;
    };
    for (Index i = 0; i < head->rows; ++i) {
      if (number->values[i] != relation.number) continue;
      const Index u = check_node(head->values[i], "head", relation.heads),
                  v = check_node(tail->values[i], "tail", relation.tails);
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
          pairs.negatives.src.push_back(end == 0 ? check_node(node, "head_neg", relation.heads) : u);
          pairs.negatives.dst.push_back(end == 0 ? v : check_node(node, "tail_neg", relation.tails));
        }
      }
    }
  });
  pairs.negatives_per_edge = comm_.all_reduce(pairs.negatives_per_edge, ReduceOp::max);
  return pairs;
}

}  // namespace

bool has_pair_lists(const Communicator& comm, const std::string& split) {
  return !shared_text(comm, [&]() -> std::string {
            for (const char* list : list_names)
              for (const char* form : {".npz", "/edge", "/source_node", "/head", ".pt"}) {
                const std::string path = split + list;
                const std::string file = *form == '.' ? path + form : csv_file(path + form);
                if (!file.empty() && is_there_or_packed(file) && csv_file(path).empty()) return file;
              }
            return "";
          }).empty();
}

std::vector<ListedPairs> read_pair_lists(const Communicator& comm, const std::string& split, Index num_nodes,
                                         const std::optional<ListedRelation>& relation, Index block_bytes) {
  std::vector<ListedPairs> lists;
  for (const char* name : list_names) {
    const PairList list(comm, split + name, block_bytes, num_nodes);
    lists.push_back(relation ? list.triples(*relation) : list.pairs());
  }
  return lists;
}

}  // namespace sar::formats

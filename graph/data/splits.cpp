// SPDX-License-Identifier: MIT

// A keyed bijection gives each node its place in a random order. The first n nodes of a group (all, or those
// of a class) are those before a place that bisection finds: O(N / P log N) time to sort, and log2(N) sums
// over the ranks of a number for each group.
#include <sar/comm/rows/distributed_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>
#include <sar/core/text.hpp>
#include <sar/graph/data/splits.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// A node of this rank that has a label.
struct Candidate {
  Index place;  ///< in the random order of all nodes
  Index row;
};

/// The candidates of each group, in their order.
using Groups = std::vector<std::vector<Candidate>>;

constexpr const char* part_names[] = {"training", "validation", "test"};

/// How many nodes of a group of `size` a part gets; `before` is the share of the parts before it.
Index wanted(const SplitPart& part, double before, Index size) {
  if (part.count >= 0) return part.count;
  const auto all = static_cast<double>(size);
  return std::llround((before + part.share) * all) - std::llround(before * all);
}

class SplitDraw {
 public:
  SplitDraw(const Communicator& comm, const NodeData& data, std::uint64_t seed)
      : comm_(comm), data_(data), parts_(data.labels.size(), -1) {
    const Index largest = data.original_ids.empty() ? Index{-1} : std::ranges::max(data.original_ids);
    end_ = comm.all_reduce(largest, ReduceOp::max) + 1;
    const KeyedBijection order(end_, {seed, RandomStream::node_split + 0, 0});
    for (Index row = 0; row < std::ssize(data.labels); ++row)
      if (data.labels[row] >= 0) all_.push_back({order(data.original_ids[row]), row});
    std::ranges::sort(all_, {}, &Candidate::place);
  }

  /// The nodes with a label, of all ranks. Collective.
  [[nodiscard]] Index num_candidates() const { return comm_.all_reduce(std::ssize(all_)); }
  /// Gives the part its nodes. Collective.
  void take(int part, const SplitPart& how, double before) {
    const Groups groups = group(how.per_class);
    std::vector<Index> sizes = count(groups, [](const Candidate&) { return true; });
    std::vector<Index> left = count(groups, [&](const Candidate& node) { return parts_[node.row] < 0; });
    std::vector<Index> numbers;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      numbers.push_back(how.count == SplitPart::rest ? left[g] : wanted(how, before, sizes[g]));
      require<InputError>(
          numbers[g] <= left[g], data_.name, ": the ", part_names[part], " ", data_.item, "s shall be ",
          how.text(), how.per_class ? concat(", and class ", g, " has ") : ", and there are ", left[g], " ",
          data_.item, "s with a label", part > 0 ? " left" : "", ", expected at least ", numbers[g]);
    }
    const std::vector<Index> ends = find_ends(groups, numbers);
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const Candidate& node : groups[g])
        if (parts_[node.row] < 0 && node.place < ends[g]) parts_[node.row] = part;
  }
  [[nodiscard]] Array<std::uint8_t> mask(int part) const {
    Array<std::uint8_t> mask(parts_.size());
    std::ranges::transform(parts_, mask.begin(), [&](int of) { return of == part ? 1 : 0; });
    return mask;
  }

 private:
  [[nodiscard]] Groups group(bool per_class) const {
    if (!per_class) return {all_};
    Groups groups(static_cast<std::size_t>(data_.num_classes));
    for (const Candidate& node : all_) groups[data_.labels[node.row]].push_back(node);
    return groups;
  }
  /// The nodes of each group, of all ranks, for which `is` holds. Collective.
  template <class Is>
  [[nodiscard]] std::vector<Index> count(const Groups& groups, const Is& is) const {
    std::vector<Index> counts;
    for (const auto& nodes : groups) counts.push_back(std::ranges::count_if(nodes, is));
    comm_.all_reduce(std::span<Index>(counts));
    return counts;
  }
  /// For each group the smallest place before which so many nodes without a part stand. Collective.
  [[nodiscard]] std::vector<Index> find_ends(const Groups& groups, const std::vector<Index>& numbers) const {
    std::vector<std::vector<Index>> places;
    for (const auto& nodes : groups) {
      std::vector<Index>& of_group = places.emplace_back();
      for (const Candidate& node : nodes)
        if (parts_[node.row] < 0) of_group.push_back(node.place);
    }
    std::vector<Index> low(groups.size(), 0), high(groups.size(), end_), counts(groups.size());
    for (Index width = end_; width > 0; width /= 2) {
      for (std::size_t g = 0; g < groups.size(); ++g)
        counts[g] = std::ranges::lower_bound(places[g], (low[g] + high[g]) / 2) - places[g].begin();
      comm_.all_reduce(std::span<Index>(counts));
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (low[g] == high[g]) continue;
        const Index middle = (low[g] + high[g]) / 2;
        (counts[g] >= numbers[g] ? high[g] : low[g]) = counts[g] >= numbers[g] ? middle : middle + 1;
      }
    }
    return low;
  }

  const Communicator& comm_;
  const NodeData& data_;
  Index end_ = 0;               // behind all places
  std::vector<Candidate> all_;  // by place
  std::vector<int> parts_;      // of my nodes; -1: none
};

}  // namespace

std::string SplitPart::text() const {
  if (count == rest) return "rest";
  return concat(count >= 0 ? concat(count) : concat(share), per_class ? "/class" : "");
}

SplitPart parse_split_part(const std::string& text) {
  SplitPart part;
  std::string_view number = text;
  constexpr std::string_view behind = "/class";
  part.per_class = number.ends_with(behind);
  if (part.per_class) number.remove_suffix(behind.size());
  const auto count = to_signed_number<Index>(number);
  const auto share = to_signed_number<double>(number);
  const bool is_share = share && *share >= 0 && *share <= 1 && (!count || *count == 0);
  if (number == "rest" && !part.per_class)
    part.count = SplitPart::rest;
  else if (is_share)
    part.share = *share;
  else if (count && *count >= 0 && *count < SplitPart::rest)
    part.count = *count;
  else
    throw InputError(concat("'", text, "', expected a share as 0.6, a number of nodes as 500, a number for ",
                            "each class as 20/class, or rest"));
  return part;
}

void require_shares(const DrawSplitOptions& options) {
  for (const bool per_class : {false, true}) {
    double sum = 0;
    for (const SplitPart* part : {&options.train, &options.valid, &options.test}) {
      if (part->count >= 0 || part->per_class != per_class) continue;
      require<InputError>(0 <= part->share && part->share <= 1, "a share is ", part->share,
                          ", expected 0 to 1");
      sum += part->share;
    }
    require<InputError>(sum <= 1 + 1e-9, "the shares are ", sum, " together, expected at most 1");
  }
}

void draw_split(const Communicator& comm, NodeData& data, const DrawSplitOptions& options) {
  std::array<Array<std::uint8_t>, 3> masks = comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("draw_split").equal(options));
    require_shares(options);
    for (const SplitPart* part : {&options.train, &options.valid, &options.test})
      require<InputError>(!part->per_class || data.label_type == LabelType::classes, data.name,
                          ": a part of the split shall be a number of each class, and the labels are ",
                          to_string(data.label_type), ", expected a share or a number of all ", data.item,
                          "s");
    const Index nodes = data.book.num_nodes();
    require<InputError>(data.num_classes <= nodes, data.name, ": there are ", data.num_classes,
                        " classes and ", nodes, " ", data.item, "s, expected no more classes than ",
                        data.item, "s");
    SplitDraw draw(comm, data, options.seed);
    require<InputError>(draw.num_candidates() > 0, data.name, ": no ", data.item,
                        " has a label, expected labels for a split of the ", data.item, "s");
    double before[] = {0, 0};  // shares of all nodes, and of each class
    const SplitPart* const parts[] = {&options.train, &options.valid, &options.test};
    for (int i = 0; i < 3; ++i) {
      draw.take(i, *parts[i], before[parts[i]->per_class ? 1 : 0]);
      if (parts[i]->count < 0) before[parts[i]->per_class ? 1 : 0] += parts[i]->share;
    }
    return std::array{draw.mask(0), draw.mask(1), draw.mask(2)};
  });
  data.splits = {};
  data.train_mask = std::move(masks[0]);
  data.val_mask = std::move(masks[1]);
  data.test_mask = std::move(masks[2]);
}

// One random draw for each edge, from the smaller and the larger original id of its ends: O(E / P) time. The
// original ids of sources are fetched once from their owners; the edges are read in order.

EdgeSplit split_edges(const Communicator& comm, const NodeData& data, const EdgeSplitOptions& options) {
  return comm.agree([&] {
    const double valid = options.valid, test = options.test;
    require<InputError>(valid >= 0 && test >= 0 && valid + test < 1, "split_edges: shares of ", valid,
                        " for validation and ", test,
                        " for test, expected 0 or more, and less than 1 together");
    const CallScope compared(
        comm,
        CollectiveCall("split_edges").equal("valid", valid).equal("test", test).equal("seed", options.seed));
    const EdgeList& edges = data.edges;
    const Array<Index> src_ids = fetch_values(comm, data.book, std::span<const Index>(data.original_ids),
                                              std::span<const Index>(edges.src));
    const Random random({options.seed, RandomStream::edge_split + 0, 0});
    const auto nodes = static_cast<std::uint64_t>(data.num_nodes());
    EdgeSplit split;
    for (Index e = 0; e < edges.size(); ++e) {
      const Index u = src_ids[e], v = data.original_ids[edges.dst[e] - data.book.begin(comm.rank())];
      const auto [low, high] = std::minmax({static_cast<std::uint64_t>(u), static_cast<std::uint64_t>(v)});
      const double draw = random.uniform(low * nodes + high);
      (draw < test ? split.test : draw < test + valid ? split.valid : split.train).append(edges, e);
    }
    return split;
  });
}

namespace {

const char* const mask_keys[] = {"train_mask", "val_mask", "test_mask"};

/// Zeros and ones, row by row.
Array<std::uint8_t> to_zeros_and_ones(const DataArray& mask, const std::string& place,
                                      std::span<const Index> ids) {
  if (mask.row_size() == 1) return mask.to_mask(place, ids);
  const Index columns = mask.row_size();
  Array<std::int64_t> values(static_cast<std::size_t>(mask.num_rows * columns));
  const Index held = convert_elements(mask.type, mask.bytes.data(), std::ssize(values), values.data());
  Array<std::uint8_t> rows(values.size());
  for (Index i = 0; i < std::ssize(values); ++i) {
    const Index row = i / columns;
    if (i >= held || (values[i] != 0 && values[i] != 1))
      throw InputError(concat(place, ": row ", ids.empty() ? row : ids[static_cast<std::size_t>(row)],
                              ", split ", i % columns, " is ",
                              element_text(mask.type, mask.bytes.data() + i * element_bytes(mask.type)),
                              ", expected 0 or 1"));
    rows[i] = values[i] == 1 ? 1 : 0;
  }
  return rows;
}

Array<std::uint8_t> column_of_mask(const Array<std::uint8_t>& rows, Index columns, Index column) {
  if (columns == 1) return rows;
  Array<std::uint8_t> mask(rows.size() / static_cast<std::size_t>(columns));
  for (std::size_t row = 0; row < mask.size(); ++row)
    mask[row] = rows[static_cast<std::size_t>(columns) * row + static_cast<std::size_t>(column)];
  return mask;
}

void require_split(const std::string& place, Index count, Index split) {
  require<InputError>(0 <= split && split < count, place, ": there ", count == 1 ? "is " : "are ", count,
                      count == 1 ? " split" : " splits", ", expected split ", index_range(count), ", not ",
                      split);
}

}  // namespace

Index num_splits(const NodeTypeData& nodes, const std::map<std::string, std::string>& names) {
  Index count = 0;
  for (const char* key : mask_keys) {
    const auto given = names.find(key);
    const std::string name = given == names.end() ? key : given->second;
    for (const DataField& field : nodes.unread)
      if (field.name == name) count = std::max(count, field.row_size());
    if (const auto found = nodes.data.find(name); found != nodes.data.end())
      count = std::max(count, found->second.row_size());
  }
  return count;
}

Index num_splits(const GraphSource& source, const DatasetOptions& options) {
  return num_splits(source.types().node_types.at(0), options.fields);
}

void choose_split(NodeData& data, Index split) {
  require_split(data.name, data.splits.count, split);
  if (data.splits.count == 1) return;
  std::array<Array<std::uint8_t>, 3> chosen;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const NodeSplits::Mask& mask = data.splits.masks[i];
    chosen[i] = column_of_mask(mask.rows, mask.columns, split);
  }
  data.splits.chosen = split;
  data.train_mask = std::move(chosen[0]);
  data.val_mask = std::move(chosen[1]);
  data.test_mask = std::move(chosen[2]);
}

void set_splits(NodeData& data, const std::array<DataArray, 3>& masks, Index split,
                const std::array<std::string, 3>& places) {
  NodeSplits splits;
  for (const DataArray& mask : masks) splits.count = std::max(splits.count, mask.row_size());
  Array<std::uint8_t>* const single[] = {&data.train_mask, &data.val_mask, &data.test_mask};
  for (std::size_t i = 0; i < masks.size(); ++i) {
    const Index columns = masks[i].row_size();
    require<InputError>(columns == 1 || columns == splits.count, places[i], ": the mask has ", columns,
                        " splits, expected ", splits.count, " as another mask has, or one");
    splits.masks[i] = {columns, to_zeros_and_ones(masks[i], places[i], data.original_ids)};
  }
  require_split(data.name, splits.count, split);
  if (splits.count == 1)
    for (std::size_t i = 0; i < masks.size(); ++i) *single[i] = std::move(splits.masks[i].rows);
  data.splits = std::move(splits);
  choose_split(data, split);
}

Array<std::uint8_t> mask_of_split(const DataArray& mask, Index split, const std::string& place,
                                  std::span<const Index> ids) {
  const Index columns = mask.row_size();
  if (columns != 1) require_split(place, columns, split);
  return column_of_mask(to_zeros_and_ones(mask, place, ids), columns, split);
}

Array<Index> labelled_nodes(const NodeData& data, const Communicator& comm,
                            std::initializer_list<std::span<const std::uint8_t>> masks) {
  Array<Index> nodes;
  for (Index v = 0; v < std::ssize(data.labels); ++v) {
    const auto has = [v](std::span<const std::uint8_t> mask) {
      return mask[static_cast<std::size_t>(v)] != 0;
    };
    if (data.labels[v] >= 0 && std::ranges::any_of(masks, has))
      nodes.push_back(data.book.begin(comm.rank()) + v);
  }
  return nodes;
}

MaskCounts count_mask(const NodeData& data, const Communicator& comm, std::span<const std::uint8_t> mask) {
  constexpr Index none = std::numeric_limits<Index>::max();
  return comm.agree([&]() -> MaskCounts {
    require<ShapeError>(std::ssize(mask) == std::ssize(data.labels), data.name, ": a mask of ", mask.size(),
                        " ", data.item, "s, expected ", data.labels.size(), ", as there are labels");
    Index counts[] = {0, 0};
    Index first = none;
    for (Index v = 0; v < std::ssize(mask); ++v) {
      if (mask[static_cast<std::size_t>(v)] == 0) continue;
      ++counts[0];
      if (data.labels[v] >= 0) continue;
      ++counts[1];
      first = std::min(first, data.original_ids[v]);
    }
    comm.all_reduce(std::span<Index>(counts));
    first = comm.all_reduce(first, ReduceOp::min);
    return {counts[0], counts[1], first == none ? -1 : first};
  });
}

void require_training_labels(const Communicator& comm, const NodeData& data, const std::string& name) {
  const std::string& place = name.empty() ? data.name : name;
  comm.agree([&] {
    const MaskCounts training = count_mask(data, comm, data.train_mask);
    const Index labelled = comm.all_reduce(std::ranges::count_if(data.labels, [](auto y) { return y >= 0; }));
    require<InputError>(training.nodes > 0, place, ": no ", data.item, " is a training ", data.item,
                        ", expected a train_mask that ", "selects at least one");
    require<InputError>(labelled > 0, place, ": no ", data.item, " has a label, expected labels (or label) ",
                        "among the data of the ", data.item, "s, with a class for at least one training ",
                        data.item);
    require<InputError>(training.unlabelled < training.nodes, place, ": the mask selects ", training.nodes,
                        " training ", data.item, "s, of which none has a label, expected one at least");
  });
}
}}  // namespace sar

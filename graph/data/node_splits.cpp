// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/data/node_splits.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
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
  if (columns > 1) require_split(place, columns, split);
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

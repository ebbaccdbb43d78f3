// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/graph/data/labelled_nodes.hpp>

#include <algorithm>
#include <limits>

namespace sar { inline namespace SAR_PRECISION {

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

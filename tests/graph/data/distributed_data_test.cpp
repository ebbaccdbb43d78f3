// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"

#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/graph/data/distributed_data.hpp>
#include <sar/graph/data/generators.hpp>

#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

TEST_CASE("what each rank has loaded is read by all ranks, without a copy") {
  const Communicator comm = Communicator::world();
  const NodeData data = make_karate(comm);
  std::vector<Index> all(data.num_nodes());
  std::iota(all.begin(), all.end(), Index{0});
  const std::size_t live = live_bytes();
  const DistributedTensor<> features = distributed_features(comm, data);
  const DistributedTensor<std::int64_t> labels = distributed_labels(comm, data);
  CHECK(live_bytes() - live < 4096);
  CHECK(features.mine().data() == data.features.data());
  const auto features_in_order = comm.all_gather(std::as_const(data.features).values());
  CHECK(std::ranges::equal(std::as_const(features).pull(all).values(), features_in_order));
  const auto labels_in_order = comm.all_gather(std::span<const std::int64_t>(data.labels));
  CHECK(std::ranges::equal(labels.pull(all), labels_in_order));
}

TEST_CASE("fields of nodes and edges of any type are read by all ranks") {
  const Communicator comm = Communicator::world();
  GraphData graph = to_graph_data(make_karate(comm));
  NodeTypeData& nodes = graph.node_types.front();
  EdgeTypeData& edges = graph.edge_types.front();
  const Index mine = std::ssize(edges.edges.dst);
  DataArray twice(NpyType::int32, {2}, mine);
  const PartitionBook book = gather_book(comm, mine);
  CHECK(book.num_nodes(comm.rank()) == mine);
  CHECK(book.num_nodes() == edges.num_edges);
  for (Index e = 0; e < mine; ++e)
    for (const Index j : {0, 1})
      reinterpret_cast<std::int32_t*>(twice.bytes.data())[2 * e + j] =
          static_cast<std::int32_t>(2 * (book.begin(comm.rank()) + e) + j);
  edges.data["twice"] = twice;
  const auto tensor = distributed_field<std::int32_t>(comm, edges, "twice");
  const std::vector<Index> ids{edges.num_edges - 1, 0, 7};
  const Array<std::int32_t> rows = tensor.pull(ids);
  for (Index i = 0; i < 6; ++i) CHECK(rows[i] == 2 * ids[i / 2] + i % 2);

  const auto mask = distributed_field<std::uint8_t>(comm, nodes, "train_mask");
  CHECK(mask.shape() == Shape{graph.node_types.front().book.num_nodes()});
  CHECK(std::ranges::equal(mask.mine(), nodes.data.at("train_mask").to_mask("train_mask")));

  CHECK(
      thrown_by_all<InputError>(comm, [&] { distributed_field<double>(comm, nodes, "labels"); }) ==
      "the field 'labels' has numbers of type int64, expected floating-point numbers of 8 bytes, as those of "
      "the tensor");
  CHECK(thrown_by_all<InputError>(comm, [&] { distributed_field<double>(comm, edges, "size"); }) ==
        "there is no field 'size', expected one of: twice");
}

}  // namespace

// Programs that were written for version 1.0: its names, and the places of its headers.
#include <doctest/doctest.h>

#include <sar/graph/attention.hpp>
#include <sar/graph/data_array.hpp>
#include <sar/graph/dataset.hpp>
#include <sar/graph/graph_shard_manager.hpp>
#include <sar/graph/host_graph.hpp>
#include <sar/graph/message_flow_graph.hpp>
#include <sar/graph/npy.hpp>
#include <sar/graph/partition.hpp>
#include <sar/graph/partition_book.hpp>
#include <sar/graph/partition_graph.hpp>
#include <sar/nn/safetensors.hpp>
#include <sar/sar.hpp>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

using namespace sar;

TEST_CASE("names of version 1.0 mean what they meant") {
  const Communicator comm = Communicator::self();
  NodeData data = make_karate(comm);
  GraphShardManager graph = construct_full_graph(comm, data, {.mode = Mode::one_shot});
  CHECK(graph.options().mode == HaloMode::one_shot);
  CHECK(graph.dst_is_prefix());
  CHECK(Target::u == MessageTarget::u);
  CHECK(InFeats(3).src == 3);

  const Tensor x = Tensor::full({2, 3}, 2), w = Tensor::full({3, 4}, 1);
  CHECK(linear_io(x, w).value().data()[0] == 6);
  CHECK(sum(Variable(x), Over::rows).value().data()[0] == 4);
  const std::vector<other_real> other(6, 1);
  CHECK(Tensor::from({2, 3}, std::span<const other_real>(other)).size() == 6);
  CHECK(row_matmul(x, Tensor::full({2, 3, 1}, 1)).value().data()[0] == 6);
  CHECK(typed_matmul(x, Tensor::full({1, 3, 2}, 1), std::vector<Index>{0, 0}).value().data()[0] == 6);
  poll();

  const std::vector<Index, AccountedAllocator<Index>> ids(4, 7);
  const Array<Index> array = ids;
  CHECK(array[3] == 7);
}

TEST_CASE("write_safetensors takes the state of a module, as in version 1.0") {
  Generator gen(1);
  const Linear linear(2, 3, gen);
  const auto path = std::filesystem::temp_directory_path() / ("version_1." + std::to_string(::getpid()) + ".safetensors");
  write_safetensors(path.string(), linear.named_buffers(), linear.named_counters(), real_type);
  CHECK(SafetensorsFile(path.string()).entries().size() == linear.named_buffers().size());
  write_safetensors(path.string(), {{"w", Tensor::zeros({2})}}, {}, real_type);
  CHECK(SafetensorsFile(path.string()).entries().size() == 1);
  std::filesystem::remove(path);
}

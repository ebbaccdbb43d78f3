// SPDX-License-Identifier: MIT

/// A file of a graph, read by itself and as the graph of a part of tests/data/dgl/homogeneous.
#include "fuzz.hpp"

#include <sar/graph/data/dgl_file.hpp>
#include <sar/graph/data/dgl_partition.hpp>

using namespace sar;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static DglPartition partition = read_dgl_partition(SAR_TEST_DATA "/dgl/homogeneous/cycle.json");
  partition.parts[0].graph = fuzz::write_input(bytes, size);
  return fuzz::run([&] {
    read_dgl_graph(partition.parts[0].graph);
    read_dgl_part(partition, 0);
  });
}

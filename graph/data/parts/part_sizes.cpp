// SPDX-License-Identifier: MIT

// The halo of a part is counted with a set of distinct ids: O(in-edges) insertions of 8 bytes. The sizes of
// all parts are one all_reduce of 40 bytes for each part and type.

#include <sar/core/memory/distinct_ids.hpp>
#include <sar/graph/data/parts/part_sizes.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr std::array numbers_of_part{&PartSize::nodes, &PartSize::in_edges, &PartSize::cut_edges,
                                     &PartSize::training_nodes, &PartSize::halo_nodes};

}  // namespace

void count_part(const GraphData& of_part, int part, PartitionReport& report) {
  PartSize& sum = report.parts[part];
  for (std::size_t t = 0; t < of_part.node_types.size(); ++t) {
    const PartitionBook& parts = of_part.node_types[t].book;
    DistinctIds halo(parts.num_nodes());
    for (std::size_t k = 0; k < of_part.edge_types.size(); ++k) {
      if (of_part.edge_types[k].src_type != of_part.node_types[t].name) continue;
      const Array<Index>& sources = of_part.edge_types[k].edges.src;
      PartSize& size = report.edge_types[k].parts[part];
      size.in_edges = std::ssize(sources);
      for (const Index src : sources) {
        if (parts.begin(part) <= src && src < parts.end(part)) continue;
        halo.insert(src);
        ++size.cut_edges;
      }
      sum.in_edges += size.in_edges;
      sum.cut_edges += size.cut_edges;
    }
    halo.make_numbers();
    PartSize& size = report.node_types[t].parts[part];
    size.nodes = parts.num_nodes(part);
    size.halo_nodes = halo.size();
    sum.nodes += size.nodes;
    sum.halo_nodes += size.halo_nodes;
  }
}

void share_sizes(const Communicator& comm, PartitionReport& report) {
  std::vector<Index> numbers;
  const auto for_each_number = [&](const auto& take) {
    const auto of_parts = [&](std::vector<PartSize>& parts) {
      for (PartSize& size : parts)
        for (const auto number : numbers_of_part) take(size.*number);
    };
    of_parts(report.parts);
    for (auto* types : {&report.node_types, &report.edge_types})
      for (TypeReport& type : *types) of_parts(type.parts);
  };
  for_each_number([&](Index number) { numbers.push_back(number); });
  comm.all_reduce(std::span<Index>(numbers));
  auto next = numbers.begin();
  for_each_number([&](Index& number) { number = *next++; });
}

PartSize TypeReport::total() const {
  PartSize sum;
  for (const PartSize& part : parts)
    for (const auto number : numbers_of_part) sum.*number += part.*number;
  return sum;
}

double TypeReport::balance(Index PartSize::*what) const {
  const Index largest = parts.empty() ? 0 : std::ranges::max(parts, {}, what).*what;
  const Index sum = total().*what;
  return sum == 0
             ? 1
             : static_cast<double>(largest) * static_cast<double>(parts.size()) / static_cast<double>(sum);
}

double PartitionReport::cut_share() const {
  return num_edges == 0 ? 0 : static_cast<double>(total().cut_edges) / static_cast<double>(num_edges);
}

}}  // namespace sar

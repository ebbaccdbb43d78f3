// SPDX-License-Identifier: MIT

/// typed_papers_program PAPERS DIR [weights]: writes a dataset directory with types: PAPERS papers of 4
/// classes, three quarters as many authors, an eighth as many fields, and six relations with 2 PAPERS to
/// PAPERS / 2 edges, two of them with weights if this is asked for.
#include "support/write_npy.hpp"

#include <sar/core/random.hpp>
#include <sar/sar.hpp>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

using namespace sar;

namespace {

constexpr Index width = 8, classes = 4;

struct Nodes {
  std::string name;
  Index number;
};

struct Relation {
  std::size_t src;
  std::string name;
  std::size_t dst;
  Index edges;
};

template <class T>
void write_rows(const std::string& path, const std::vector<T>& values, Index row_size, NpyType type) {
  const std::array shape{std::ssize(values) / row_size, row_size};
  test::write_npy<T>(path, std::span(shape).first(row_size == 1 ? 1 : 2), values, type);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const Index papers = std::atol(argv[1]);
  const std::string directory = argv[2];
  const std::vector<Nodes> nodes{{"paper", papers}, {"author", papers * 3 / 4}, {"field", papers / 8}};
  const std::vector<Relation> relations{{1, "writes", 0, 2 * papers}, {0, "written", 1, 2 * papers},
                                        {0, "cites", 0, 2 * papers},  {0, "has", 2, papers},
                                        {2, "of", 0, papers},         {1, "knows", 1, papers / 2}};
  std::uint64_t stream = 0;  // one for each file

  std::string node_types, edge_types;
  for (const auto& [name, number] : nodes) {
    const std::string folder = directory + "/nodes/" + name + "/";
    std::filesystem::create_directories(folder);
    const Random noise({.seed = 1, .stream = ++stream});
    std::vector<float> features(static_cast<std::size_t>(number * width));
    for (std::size_t i = 0; i < features.size(); ++i) features[i] = static_cast<float>(noise.normal(i));
    if (name == "paper") {
      std::vector<std::int64_t> labels;
      for (Index v = 0; v < number; ++v) {
        labels.push_back(v * 7 % classes);
        features[static_cast<std::size_t>(v * width + labels.back())] += 1;
      }
      write_rows(folder + "labels.npy", labels, 1, NpyType::int64);
      for (const Index part : {0, 1, 2}) {
        std::vector<std::uint8_t> mask;
        for (Index v = 0; v < number; ++v) mask.push_back(v % 3 == part);
        const char* const names[] = {"train_mask.npy", "val_mask.npy", "test_mask.npy"};
        write_rows(folder + names[part], mask, 1, NpyType::boolean);
      }
    }
    write_rows(folder + "features.npy", features, width, NpyType::float32);
    node_types +=
        (node_types.empty() ? "" : ", ") + concat("{\"name\": \"", name, "\", \"num_nodes\": ", number, "}");
  }
  for (const auto& [src, name, dst, edges] : relations) {
    const std::string folder =
        directory + "/edges/" + nodes[src].name + ":" + name + ":" + nodes[dst].name + "/";
    std::filesystem::create_directories(folder);
    const Random draws({.seed = 1, .stream = ++stream});
    std::vector<std::int64_t> ends;
    for (Index i = 0; i < 2 * edges; ++i) {
      const bool is_source = i < edges;
      const double u = draws.uniform(static_cast<std::uint64_t>(i));
      const auto number = static_cast<double>(nodes[is_source ? src : dst].number);
      ends.push_back(static_cast<std::int64_t>((is_source ? u * u : u) * number));  // some sources are hubs
    }
    write_rows(folder + "edge_index.npy", ends, edges, NpyType::int64);
    if (argc == 4 && (name == "writes" || name == "cites")) {
      std::vector<float> weights;
      for (Index i = 0; i < edges; ++i) weights.push_back(static_cast<float>(0.25 + (i * 7 % 11) / 4.0));
      write_rows(folder + "edge_weight.npy", weights, 1, NpyType::float32);
    }
    edge_types += (edge_types.empty() ? "" : ", ") +
                  concat("{\"src_type\": \"", nodes[src].name, "\", \"name\": \"", name,
                         "\", \"dst_type\": \"", nodes[dst].name, "\", \"num_edges\": ", edges, "}");
  }
  std::ofstream(directory + "/hetero.json")
      << "{\"format\": \"sar-dataset\", \"version\": 1, \"node_types\": [" << node_types
      << "], \"edge_types\": [" << edge_types << "]}\n";
}

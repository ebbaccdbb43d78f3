// SPDX-License-Identifier: MIT
#include <sar/graph/data/generate/karate.hpp>
#include <sar/graph/data/sources/load_dataset.hpp>

#include <algorithm>
#include <array>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr Index num_members = 34;

constexpr std::array<std::pair<Index, Index>, 78> friendships{{
    {0, 1},   {0, 2},   {0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},   {0, 10},  {0, 11},
    {0, 12},  {0, 13},  {0, 17},  {0, 19},  {0, 21},  {0, 31},  {1, 2},   {1, 3},   {1, 7},   {1, 13},
    {1, 17},  {1, 19},  {1, 21},  {1, 30},  {2, 3},   {2, 7},   {2, 8},   {2, 9},   {2, 13},  {2, 27},
    {2, 28},  {2, 32},  {3, 7},   {3, 12},  {3, 13},  {4, 6},   {4, 10},  {5, 6},   {5, 10},  {5, 16},
    {6, 16},  {8, 30},  {8, 32},  {8, 33},  {9, 33},  {13, 33}, {14, 32}, {14, 33}, {15, 32}, {15, 33},
    {18, 32}, {18, 33}, {19, 33}, {20, 32}, {20, 33}, {22, 32}, {22, 33}, {23, 25}, {23, 27}, {23, 29},
    {23, 32}, {23, 33}, {24, 25}, {24, 27}, {24, 31}, {25, 31}, {26, 29}, {26, 33}, {27, 33}, {28, 31},
    {28, 33}, {29, 32}, {29, 33}, {30, 32}, {30, 33}, {31, 32}, {31, 33}, {32, 33},
}};

/// Who stayed with the instructor when the club split; the others followed the officer.
constexpr std::array<Index, 17> instructor_side{0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21};
constexpr std::array<Index, 2> heads{0, 33};
constexpr std::array<Index, 4> validation{1, 3, 30, 32};

bool contains(const auto& members, Index v) {
  return std::find(members.begin(), members.end(), v) != members.end();
}

class KarateSource : public GraphSource {
 public:
  explicit KarateSource(const Communicator& comm) : GraphSource(comm, "generated graph", "karate") {
    NodeTypeData& nodes = types_.node_types.emplace_back();
    nodes.book = slices_of(num_members);
    nodes.unread = {{"features", NpyType::uint8, {num_members}}};
    for (const char* field : {"labels", "train_mask", "val_mask", "test_mask"})
      nodes.unread.push_back({field, NpyType::uint8, {}});
    types_.edge_types.emplace_back().num_edges = 2 * std::ssize(friendships);
  }

  [[nodiscard]] EdgeList read_edges(std::size_t) override {
    const PartitionBook shares = slices_of(std::ssize(friendships));
    EdgeList edges;
    for (Index m = shares.begin(comm().rank()); m < shares.end(comm().rank()); ++m) {
      const auto& [u, v] = friendships[m];
      edges.src.insert(edges.src.end(), {u, v});
      edges.dst.insert(edges.dst.end(), {v, u});
      edges.id.insert(edges.id.end(), {2 * m, 2 * m + 1});
    }
    return edges;
  }
  [[nodiscard]] DataArray read_node_data(std::size_t, const std::string& field,
                                         std::span<const Index> nodes) override {
    DataArray rows(NpyType::uint8, {}, std::ssize(nodes));
    if (field == "features") rows = DataArray(NpyType::uint8, {num_members}, std::ssize(nodes));
    std::ranges::fill(rows.bytes, std::byte{0});
    for (Index i = 0; i < rows.num_rows; ++i) {
      const Index member = nodes[static_cast<std::size_t>(i)];
      const bool trains = contains(heads, member), validates = contains(validation, member);
      if (field == "features")
        rows.row(i)[member] = std::byte{1};
      else
        *rows.row(i) = static_cast<std::byte>(field == "labels"       ? !contains(instructor_side, member)
                                              : field == "train_mask" ? trains
                                              : field == "val_mask"   ? validates
                                                                      : !trains && !validates);
    }
    return rows;
  }
  [[nodiscard]] DataArray read_edge_data(std::size_t, const std::string&, std::span<const Index>) override {
    return {};
  }
};

}  // namespace

NodeData make_karate(const Communicator& comm, const DatasetOptions& options) {
  return comm.agree([&] {
    const CallScope compared(comm, CollectiveCall("make_karate"));
    return load_dataset(*karate_source(comm), options);
  });
}

std::unique_ptr<GraphSource> karate_source(const Communicator& comm) {
  return std::make_unique<KarateSource>(comm);
}

}}  // namespace sar

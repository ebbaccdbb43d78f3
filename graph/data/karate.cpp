#include <sar/graph/data/distribute.hpp>
#include <sar/graph/data/generators.hpp>

#include <algorithm>
#include <array>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index num_members = 34;

struct Friendship {
  Index u;
  Index v;
};

constexpr std::array<Friendship, 78> friendships{{
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

void describe_members(NodeData& data) {
  const auto count = static_cast<Index>(data.original_ids.size());
  data.num_classes = 2;
  data.features = Tensor::zeros(Shape{count, num_members});
  data.labels.resize(count);
  for (auto* mask : {&data.train_mask, &data.val_mask, &data.test_mask}) mask->resize(count);
  for (Index i = 0; i < count; ++i) {
    const Index member = data.original_ids[i];
    data.features.row(i)[member] = 1;
    data.labels[i] = contains(instructor_side, member) ? 0 : 1;
    data.train_mask[i] = contains(heads, member);
    data.val_mask[i] = contains(validation, member);
    data.test_mask[i] = data.train_mask[i] == 0 && data.val_mask[i] == 0;
  }
}

}  // namespace

NodeData make_karate(const Communicator& comm, const DatasetOptions& options) {
  return comm.agree([&] {
    require_nodes_for_ranks("karate", num_members, comm.size());
    const PartitionBook shares = PartitionBook::even(static_cast<Index>(friendships.size()), comm.size());
    EdgeList edges;
    for (Index m = shares.begin(comm.rank()); m < shares.end(comm.rank()); ++m) {
      const auto& [u, v] = friendships[m];
      edges.src.insert(edges.src.end(), {u, v});
      edges.dst.insert(edges.dst.end(), {v, u});
      edges.id.insert(edges.id.end(), {2 * m, 2 * m + 1});
    }
    return distribute(comm, "karate", num_members, std::move(edges), options,
                      [](NodeData& data) { describe_members(data); });
  });
}

}  // namespace sar

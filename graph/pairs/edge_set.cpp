// SPDX-License-Identifier: MIT

// The in-edges of a rank are a sorted array of (destination, source): O(E log E) to build. A question goes to
// the owner of its destination, who answers with a binary search: O(log E) random reads of 16 bytes.

#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/pairs/edge_set.hpp>

#include <algorithm>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

EdgeSet::EdgeSet(const Communicator& comm, const PartitionBook& dst_book, const EdgeList& edges)
    : comm_(comm) {
  comm_.agree([&] {
    require<InputError>(dst_book.num_parts() == comm_.size(), "EdgeSet: a partition book of ",
                        dst_book.num_parts(), " ranks, expected ", comm_.size(), ", as the communicator has");
    require<ShapeError>(edges.dst.size() == edges.src.size(), "EdgeSet: ", edges.dst.size(),
                        " destinations for ", edges.src.size(), " sources");
    dst_book_ = dst_book;
    const Index begin = dst_book.begin(comm_.rank()), end = dst_book.end(comm_.rank());
    edges_.resize(static_cast<std::size_t>(edges.size()));
    for (Index e = 0; e < edges.size(); ++e) {
      require<InputError>(edges.dst[e] >= begin && edges.dst[e] < end, "EdgeSet: an edge to node ",
                          edges.dst[e], ", expected a node of this rank, ", begin, " to ", end - 1);
      edges_[e] = {edges.dst[e], edges.src[e]};
    }
    std::sort(edges_.begin(), edges_.end());
  });
}

Array<std::uint8_t> EdgeSet::contains(std::span<const Index> src, std::span<const Index> dst) const {
  return comm_.agree([&] {
    require<ShapeError>(src.size() == dst.size(), "EdgeSet: ", dst.size(), " destinations for ", src.size(),
                        " sources");
    for (const Index node : dst)
      require<InputError>(node >= 0 && node < dst_book_->num_nodes(), "EdgeSet: destination ", node,
                          ", expected a node from 0 to ", dst_book_->num_nodes() - 1);
    Array<std::uint8_t> found(dst.size());
    const auto owner = [&](Index i) { return dst_book_->owner(dst[static_cast<std::size_t>(i)]); };
    const auto ask = [&](const RowRoute& route, Index first, Index last) {
      Array<Edge> wanted;
      for (auto i = static_cast<std::size_t>(first); std::cmp_less(i, last); ++i)
        wanted.push_back({dst[i], src[i]});
      Array<std::uint8_t> answers;
      for (const Edge& edge : route.forward(std::span<const Edge>(wanted)))
        answers.push_back(std::binary_search(edges_.begin(), edges_.end(), edge) ? 1 : 0);
      std::ranges::copy(route.back(std::span<const std::uint8_t>(answers)), found.begin() + first);
    };
    route_chunks(comm_, std::ssize(dst), sizeof(Edge), owner, ask);
    return found;
  });
}

}}  // namespace sar

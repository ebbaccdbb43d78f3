// SPDX-License-Identifier: MIT

/// OwnerRequests: values for some halo rows, sent to the owners of these rows and answered by them. For
/// implementation files.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/topology/graph_topology.hpp>

#include <span>
#include <vector>

namespace sar {
inline namespace SAR_PRECISION {

class OwnerRequests {
 public:
  /// Collective. `halo_rows`: numbers of halo rows of this rank, in any order; they may repeat. Sends 4 bytes
  /// for each to its owner.
  OwnerRequests(const GraphTopology& graph, std::span<const Index> halo_rows);

  /// The rows of this rank that the others named, those of rank 0 first.
  [[nodiscard]] const std::vector<local_index>& rows() const noexcept { return rows_; }

  /// Collective. Sends value i with halo row i. Returns the values that belong to rows().
  template <class T>
  [[nodiscard]] std::vector<T> send(std::span<const T> values) const {
    std::vector<T> sorted;
    sorted.reserve(order_.size());
    for (const Index i : order_) sorted.push_back(values[static_cast<std::size_t>(i)]);
    return comm_.all_to_all_v<T>(sorted, sent_, arriving_);
  }

  /// Collective. `values`: one for each of rows(). Returns those of the halo rows, in their order.
  template <class T>
  [[nodiscard]] std::vector<T> answer(std::span<const T> values) const {
    const std::vector<T> sorted = comm_.all_to_all_v<T>(values, arriving_, sent_);
    std::vector<T> answers(order_.size());
    for (std::size_t k = 0; k < order_.size(); ++k) answers[static_cast<std::size_t>(order_[k])] = sorted[k];
    return answers;
  }

 private:
  Communicator comm_;
  std::vector<Index> order_;  // positions among the halo rows, by owner
  std::vector<Index> sent_, arriving_;
  std::vector<local_index> rows_;
};

}  // namespace SAR_PRECISION
}  // namespace sar

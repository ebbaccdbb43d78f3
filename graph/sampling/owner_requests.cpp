// SPDX-License-Identifier: MIT

// A counting sort by owner. Halo rows are numbered in rotation order, and messages go in the order of ranks.
#include <sar/graph/sampling/owner_requests.hpp>

#include <algorithm>
#include <utility>

namespace sar {
inline namespace SAR_PRECISION {

OwnerRequests::OwnerRequests(const GraphTopology& graph, std::span<const Index> halo_rows)
    : comm_(graph.comm), sent_(static_cast<std::size_t>(graph.comm.size()), 0) {
  const std::vector<HaloRound>& rounds = graph.rounds();
  const auto round_of = [&](Index row) -> const HaloRound& {
    return *(std::ranges::upper_bound(rounds, row, {}, &HaloRound::first) - 1);
  };
  // rounds without rows begin where the next one does, and upper_bound passes them
  for (const Index row : halo_rows) ++sent_[static_cast<std::size_t>(round_of(row).owner)];
  std::vector<Index> next = offsets_of_sizes(sent_);
  order_.resize(halo_rows.size());
  std::vector<local_index> places(halo_rows.size());
  for (std::size_t i = 0; i < halo_rows.size(); ++i) {
    const HaloRound& round = round_of(halo_rows[i]);
    const Index at = next[static_cast<std::size_t>(round.owner)]++;
    order_[static_cast<std::size_t>(at)] = static_cast<Index>(i);
    places[static_cast<std::size_t>(at)] = static_cast<local_index>(halo_rows[i] - round.first);
  }
  auto received = comm_.all_to_all_v<local_index>(places, sent_);
  rows_ = std::move(received.values);
  arriving_ = std::move(received.counts);
  auto row = rows_.begin();
  for (int q = 0; q < comm_.size(); ++q)
    for (Index i = 0; i < arriving_[static_cast<std::size_t>(q)]; ++i, ++row)
      *row = round_to(rounds, comm_.rank(), q).send_rows[*row];
}

}  // namespace SAR_PRECISION
}  // namespace sar

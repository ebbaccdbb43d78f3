// SPDX-License-Identifier: MIT

// Rows take a HaloFetch of one stage. Integers take one all_to_all_v, of 8 bytes per halo row; they arrive by
// owner and are copied into rotation order. O(halo rows + P).
#include <sar/comm/halo/fetch_halo.hpp>
#include <sar/comm/halo/halo_fetch.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

Tensor fetch_halo(const Communicator& comm, const Tensor& owned, HaloRounds rounds) {
  HaloFetch fetch(comm, owned, plan_halo(std::move(rounds)));
  std::optional<HaloRows> all = fetch.next();
  fetch.finish();
  return all ? std::move(all->rows.reals()) : Tensor(owned.shape().with_rows(0));
}

Array<Index> fetch_halo(const Communicator& comm, std::span<const Index> owned,
                        const std::vector<HaloRound>& rounds) {
  const int size = comm.size(), rank = comm.rank();
  Array<Index> sent;
  std::vector<Index> counts(size, 0), arriving(size, 0);
  for (int q = 0; q < size; ++q) {
    if (q == rank) continue;
    const HaloRound& round = round_to(rounds, rank, q);
    for (const std::int32_t row : round.send_rows) sent.push_back(owned[row]);
    counts[q] = std::ssize(round.send_rows);
    arriving[q] = round_from(rounds, rank, q).recv_rows;
  }
  const auto received = comm.all_to_all_v<Index>(sent, counts, arriving);
  Array<Index> halo(received.size());
  auto from = received.begin();
  for (int owner = 0; owner < size; ++owner) {
    if (owner == rank) continue;
    const HaloRound& round = round_from(rounds, rank, owner);
    std::copy_n(from, round.recv_rows, halo.begin() + round.first);
    from += round.recv_rows;
  }
  return halo;
}

}}  // namespace sar

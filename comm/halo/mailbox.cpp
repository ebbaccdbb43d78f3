// SPDX-License-Identifier: MIT

// Inbox posts receives in the order of the packets (PacketRing) up to a window of bytes. Outbox assigns
// packets to slots, asks its caller to pack them, and sends each reader's packets in order. Neither blocks:
// advance() only tests requests.
#include <sar/comm/halo/mailbox.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace/trace.hpp>

#include <tuple>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// The rows of a round are divided at the boundaries of its reader's stages, and these parts into packets
// of whole rows (or of whole groups of the format, if a row is longer than a packet). Sorting n packets by
// stage, round and position takes O(n log n) time. No message is needed: stage_rows, the range and the
// format are the same at both ends.

Packets::Packets(std::span<const HaloRange> ranges, Index stage_rows, Index row_size, const WireFormat& wire,
                 std::size_t max_bytes) {
  const Index group = wire.group();
  Index most = std::max<Index>(static_cast<Index>(max_bytes) / wire.bytes(group), 1) * group;
  if (row_size > 0 && row_size <= most) most -= most % row_size;
  for (std::size_t round = 0; round < ranges.size(); ++round) {
    const auto [first, rows] = ranges[round];
    for (Index row = 0; row < rows;) {
      const Index stage = (first + row) / stage_rows;
      const Index end_row = std::min(row + stage_rows - (first + row) % stage_rows, rows);
      num_stages_ = std::max(num_stages_, static_cast<std::size_t>(stage) + 1);
      const Index stage_begin =
          (stage * stage_rows - first) * row_size;  // counted from the round's first row
      for (Index begin = row * row_size; begin < end_row * row_size; begin += most)
        packets_.push_back({.round = round,
                            .stage = static_cast<std::size_t>(stage),
                            .begin = begin,
                            .end = std::min(begin + most, end_row * row_size),
                            .offset = begin - stage_begin});
      row = end_row;
    }
  }
  // not std::stable_sort, which allocates
  std::ranges::sort(packets_, {}, [](const Packet& p) { return std::tuple(p.stage, p.round, p.begin); });
}

Index Packets::largest() const noexcept {
  Index most = 0;
  for (const Packet& packet : packets_) most = std::max(most, packet.size());
  return most;
}

namespace {

// Limits of the data in flight. A receive should be posted before its packet is announced; otherwise the
// sender waits for the handshake, behind whatever this rank sends itself. Hence twice as many receives as
// sends. Exception: within a node, the receiver copies. MPI copies all announced packets that have a receive
// before it returns, and this rank would send nothing meanwhile.
constexpr std::size_t most_sends = 32;
constexpr std::size_t most_receives = 2 * most_sends;
constexpr std::size_t send_window_bytes = 8 * packet_bytes;
constexpr std::size_t receive_window_bytes = 2 * send_window_bytes;
constexpr std::size_t node_receive_window_bytes = 2 * packet_bytes;

constexpr std::size_t least_share = 2;  // packets in flight to one reader
constexpr std::size_t farthest =
    1024;  // maximum distance of a started packet from the first one not started

/// Returns the maximum number of packets in flight.
std::size_t send_window(const Traffic& traffic) {
  const Index largest = std::max(traffic.packets.largest(), traffic.wire->group());
  return std::clamp<std::size_t>(send_window_bytes / traffic.wire->bytes(largest), 1, most_sends);
}

template <class PeerOf, class RangeOf>
Traffic traffic(const Communicator& comm, const HaloPlan& plan, Index row_size, const PeerOf& peer_of,
                const RangeOf& range_of) {
  PassVector<int> peers;
  PassVector<HaloRange> ranges;
  for (const HaloRound& round : *plan.rounds) {
    peers.push_back(peer_of(round));
    ranges.push_back(range_of(round));
  }
  return {.peers = std::move(peers),
          .packets = Packets(ranges, plan.stage_rows, row_size, *plan.wire,
                             std::min(packet_bytes, comm.max_collective_size())),
          .wire = plan.wire};
}

}  // namespace

Traffic halo_traffic(const Communicator& comm, const HaloPlan& plan, Index row_size) {
  return traffic(
      comm, plan, row_size, [](const HaloRound& round) { return round.owner; },
      [](const HaloRound& round) {
        return HaloRange{round.first, round.recv_rows};
      });
}

Traffic owned_traffic(const Communicator& comm, const HaloPlan& plan, Index row_size) {
  return traffic(
      comm, plan, row_size, [](const HaloRound& round) { return round.reader; },
      [](const HaloRound& round) {
        return HaloRange{round.reader_first, std::ssize(round.send_rows)};
      });
}

Inbox::Inbox(const Communicator& comm, Traffic traffic)
    : comm_(comm),
      traffic_(std::move(traffic)),
      ring_(std::min(most_receives, traffic_.packets.size())),
      gave_up_(traffic_.peers.size(), 0) {}

bool Inbox::advance(int tag, std::size_t stages, FunctionRef<std::byte*(const Packet&)> memory,
                    FunctionRef<void(const Packet&)> arrived) {
  ring_.test();
  bool moved = false;
  for (; !ring_.empty() && ring_.oldest().complete; ring_.pop(), moved = true) {
    const auto& [packet, complete, bytes, posted, completed] = ring_.oldest();
    const int sender = traffic_.peers[packet.round];
    const Index expected = traffic_.bytes(packet);
    if (gave_up_[packet.round] == 0 && bytes == 0) {
      gave_up_[packet.round] = 1;
      failed_peer_ = sender;
      ring_.cancel_round(packet.round);
    }
    require<CommunicationError>(gave_up_[packet.round] != 0 || static_cast<Index>(bytes) == expected, "rank ",
                                sender, " sent ", bytes, " bytes where ", expected, " were expected");
    if (gave_up_[packet.round] == 0) comm_.add_to_stats({.bytes_received = bytes});
    trace_event(TraceLane::receive, "receive from", posted, completed, sender, 0, bytes);
    posted_bytes_ -= expected;
    arrived(packet);
  }
  for (; !ring_.full() && posted_ < packets().size() && packets()[posted_].stage < stages; ++posted_) {
    const Packet& packet = packets()[posted_];
    const int sender = traffic_.peers[packet.round];
    const Index bytes = traffic_.bytes(packet);
    const std::size_t window = comm_.on_same_node(sender) ? node_receive_window_bytes : receive_window_bytes;
    if (!ring_.empty() && posted_bytes_ + bytes > static_cast<Index>(window)) break;
    std::byte* to = memory(packet);
    if (to == nullptr) break;
    posted_bytes_ += bytes;
    if (gave_up_[packet.round] != 0)
      ring_.start_complete(packet);
    else
      check_mpi(
          MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, sender, tag, comm_.handle(), ring_.start(packet)),
          "MPI_Irecv");
  }
  return moved;
}

Outbox::Outbox(const Communicator& comm, Traffic traffic)
    : comm_(comm),
      traffic_(std::move(traffic)),
      requests_(std::min(send_window(traffic_), packets().size()), MPI_REQUEST_NULL),
      slots_(requests_.size()),
      indices_(requests_.size()),
      started_(packets().size(), 0),
      of_round_(traffic_.peers.size(), 0),
      still_there_(packets().num_stages(), 0) {
  PassVector<char> has_rows(traffic_.peers.size(), 0);
  for (std::size_t i = 0; i < packets().size(); ++i) {
    ++still_there_[packets()[i].stage];
    has_rows[packets()[i].round] = 1;
  }
  const auto readers = static_cast<std::size_t>(std::count(has_rows.begin(), has_rows.end(), 1));
  share_ = std::max(send_window(traffic_) / std::max<std::size_t>(readers, 1), least_share);
  while (left_stages_ < still_there_.size() && still_there_[left_stages_] == 0) ++left_stages_;
}

bool Outbox::test() {
  int completed = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &completed,
                                indices_.data(), MPI_STATUSES_IGNORE);
  check_mpi(code, "MPI_Testsome");
  if (completed == MPI_UNDEFINED) return false;
  for (int i = 0; i < completed; ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(indices_[i])];
    const Packet& packet = packets()[slot.packet];
    trace_event(TraceLane::send, "send to", slot.posted, trace_time(), traffic_.peers[packet.round],
                slot.bytes, 0);
    --of_round_[packet.round];
    count_left(slot.packet);
    slot = {};
  }
  return completed > 0;
}

void Outbox::count_left(std::size_t packet) {
  ++left_;
  --still_there_[packets()[packet].stage];
  while (left_stages_ < still_there_.size() && still_there_[left_stages_] == 0) ++left_stages_;
}

// Looks a little behind the first packet that was not started: the packets between belong to readers that
// have their share in flight.
bool Outbox::assign(std::size_t stages) {
  while (first_ < started_.size() && started_[first_] != 0) ++first_;
  const std::size_t last = std::min(started_.size(), first_ + farthest);
  bool assigned = false;
  std::size_t next = first_;
  for (Slot& slot : slots_) {
    if (slot.packet != none) continue;
    while (next < last && (started_[next] != 0 || of_round_[packets()[next].round] >= share_)) ++next;
    if (next >= last || packets()[next].stage >= stages) break;
    slot = {.packet = next, .posted = trace_time()};
    started_[next] = 1;
    ++of_round_[packets()[next].round];
    assigned = true;
  }
  return assigned;
}

void Outbox::send(Slot& slot, int tag, const std::byte* data, Index bytes) {
  const auto at = static_cast<std::size_t>(&slot - slots_.data());
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, traffic_.peers[packets()[slot.packet].round],
                      tag, comm_.handle(), &requests_[at]),
            "MPI_Isend");
  comm_.add_to_stats({.bytes_sent = static_cast<std::uint64_t>(bytes)});
  slot.sent = true;
  slot.bytes = static_cast<std::size_t>(bytes);
}

bool Outbox::advance(int tag, std::size_t stages,
                     FunctionRef<const std::byte*(const Packet&, std::size_t)> memory) {
  bool moved = test();
  if (giving_up_) return send_nothing(tag) || moved;
  moved |= assign(stages);
  PassVector<std::size_t>& waiting = order_;
  waiting.clear();
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].packet != none && !slots_[i].sent) waiting.push_back(i);
  std::ranges::sort(waiting, {}, [&](std::size_t slot) { return slots_[slot].packet; });
  for (auto at = waiting.begin(); at != waiting.end(); ++at) {
    Slot& slot = slots_[*at];
    const Packet& packet = packets()[slot.packet];
    const auto of_same_reader = [&](std::size_t i) {
      return !slots_[i].sent && packets()[slots_[i].packet].round == packet.round;
    };
    const std::byte* data = memory(packet, *at);
    const bool is_alone = of_round_[packet.round] == 1;
    if (data == nullptr || (!is_alone && std::any_of(waiting.begin(), at, of_same_reader))) continue;
    send(slot, tag, data, traffic_.bytes(packet));
    moved = true;
  }
  return moved;
}

bool Outbox::send_nothing(int tag) {
  for (Slot& slot : slots_) {  // drop what was not passed to MPI
    if (slot.packet == none || slot.sent) continue;
    started_[slot.packet] = 0;
    first_ = std::min(first_, slot.packet);
    --of_round_[packets()[slot.packet].round];
    slot = {};
  }
  bool moved = false;
  for (Slot& slot : slots_) {
    if (slot.packet != none) continue;
    while (first_ < started_.size() && started_[first_] != 0) ++first_;
    if (first_ == started_.size()) break;
    slot = {.packet = first_, .posted = trace_time()};
    ++of_round_[packets()[first_].round];
    for (std::size_t i = first_; i < started_.size(); ++i) {
      if (started_[i] != 0 || packets()[i].round != packets()[first_].round) continue;
      started_[i] = 1;
      if (i != first_) count_left(i);
    }
    send(slot, tag, nullptr, 0);
    moved = true;
  }
  return moved;
}

// A ring buffer: receives are posted at its end and reported from its beginning, in whatever order they
// complete. test() is one MPI_Testsome over all slots.

PacketRing::PacketRing(std::size_t capacity)
    : requests_(std::max<std::size_t>(capacity, 1), MPI_REQUEST_NULL),
      entries_(requests_.size()),
      indices_(requests_.size()),
      statuses_(requests_.size()) {}

MPI_Request* PacketRing::start(const Packet& packet) {
  const std::size_t slot = (first_ + count_) % entries_.size();
  entries_[slot] = {.packet = packet, .posted = trace_time()};
  ++count_;
  return &requests_[slot];
}

void PacketRing::start_complete(const Packet& packet) {
  start(packet);
  entries_[(first_ + count_ - 1) % entries_.size()].complete = true;
}

bool PacketRing::test() {
  if (count_ == 0) return false;
  int completed = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &completed,
                                indices_.data(), statuses_.data());
  if (completed == MPI_UNDEFINED) return false;
  for (int i = 0; i < completed; ++i) {
    const MPI_Status& status = statuses_[i];
    if (code == MPI_ERR_IN_STATUS) check_mpi(status.MPI_ERROR, "a message between two ranks");
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    Entry& entry = entries_[indices_[i]];
    entry.complete = true;
    entry.completed = trace_time();
    entry.bytes = static_cast<std::size_t>(std::max(bytes, 0));
  }
  check_mpi(code, "MPI_Testsome");
  return completed > 0;
}

void PacketRing::pop() {
  first_ = (first_ + 1) % entries_.size();
  --count_;
}

void PacketRing::cancel_round(std::size_t round) {
  for (std::size_t k = 0; k < count_; ++k) {
    const std::size_t slot = (first_ + k) % entries_.size();
    if (entries_[slot].packet.round == round && requests_[slot] != MPI_REQUEST_NULL)
      check_mpi(MPI_Cancel(&requests_[slot]), "MPI_Cancel");
  }
}
}}  // namespace sar

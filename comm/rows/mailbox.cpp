#include <sar/comm/mpi_error.hpp>
#include <sar/comm/rows/mailbox.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace_events.hpp>

#include <algorithm>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

// What is under way at most. The receives of a packet should be posted before it is announced, or its sender
// waits for the answer, and that behind what this rank sends itself: hence twice as many receives as sends.
// Not so on one node, where it is the receiver who copies: MPI copies all that has been announced and has a
// receive before it returns, and this rank would send nothing meanwhile.
constexpr std::size_t most_sends = 32;
constexpr std::size_t most_receives = 2 * most_sends;
constexpr std::size_t send_window_bytes = 8 * packet_bytes;
constexpr std::size_t receive_window_bytes = 2 * send_window_bytes;
constexpr std::size_t node_receive_window_bytes = 2 * packet_bytes;

std::size_t send_window(const Traffic& traffic) {
  const Index largest = std::max<Index>(traffic.packets.largest(), 1);
  return std::clamp<std::size_t>(send_window_bytes / traffic.wire->bytes(largest), 1, most_sends);
}

template <class PeerOf, class RowsOf>
Traffic traffic(const Communicator& comm, const HaloPlan& plan, const std::vector<HaloStage>& stages,
                Index row_size, const PeerOf& peer_of, const RowsOf& rows_of) {
  std::vector<int> peers;
  std::vector<Index> rows;
  for (const HaloRound& round : *plan.rounds) {
    peers.push_back(peer_of(round));
    rows.push_back(rows_of(round));
  }
  return {.peers = std::move(peers),
          .packets =
              Packets(stages, rows, row_size, *plan.wire, std::min(packet_bytes, comm.max_collective_size())),
          .wire = plan.wire};
}

}  // namespace

Traffic halo_traffic(const Communicator& comm, const HaloPlan& plan, Index row_size) {
  return traffic(
      comm, plan, plan.halo, row_size, [](const HaloRound& round) { return round.owner; },
      [](const HaloRound& round) { return round.recv_rows; });
}

Traffic owned_traffic(const Communicator& comm, const HaloPlan& plan, Index row_size) {
  return traffic(
      comm, plan, plan.owned, row_size, [](const HaloRound& round) { return round.reader; },
      [](const HaloRound& round) { return std::ssize(round.send_rows); });
}

Inbox::Inbox(const Communicator& comm, Traffic traffic)
    : comm_(comm), traffic_(std::move(traffic)), ring_(most_receives), gave_up_(traffic_.peers.size(), 0) {}

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
    : comm_(comm), traffic_(std::move(traffic)), ring_(send_window(traffic_)) {}

bool Outbox::advance(int tag, std::size_t stages,
                     FunctionRef<const std::byte*(const Packet&, std::size_t)> memory) {
  ring_.test();
  bool moved = false;
  for (; !ring_.empty() && ring_.oldest().complete; ring_.pop(), moved = true) {
    const PacketRing::Entry& sent = ring_.oldest();
    trace_event(TraceLane::send, "send to", sent.posted, sent.completed, traffic_.peers[sent.packet.round],
                static_cast<std::size_t>(traffic_.bytes(sent.packet)), 0);
    ++left_;
  }
  while (!ring_.full() && started_ < packets().size() && (giving_up_ || packets()[started_].stage < stages)) {
    const Packet& packet = packets()[started_];
    const int reader = traffic_.peers[packet.round];
    const std::byte* data = giving_up_ ? nullptr : memory(packet, ring_.next_slot());
    const Index bytes = giving_up_ ? 0 : traffic_.bytes(packet);
    check_mpi(
        MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, reader, tag, comm_.handle(), ring_.start(packet)),
        "MPI_Isend");
    comm_.add_to_stats({.bytes_sent = static_cast<std::uint64_t>(bytes)});
    ++started_;
    while (giving_up_ && started_ < packets().size() && packets()[started_].round == packet.round) ++started_;
    moved = true;
  }
  return moved;
}

}  // namespace sar

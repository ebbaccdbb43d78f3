// SPDX-License-Identifier: MIT

/// Inbox and Outbox: the receiving and the sending end of one exchange; PacketRing: its receives; Packets:
/// the messages of MPI; Packing: the send buffers. For the sources of comm/ only.
///
/// Packets between two ranks arrive in the order in which they were sent, so they need no header. A rank that
/// gives up sends an empty message instead of the rest of a round, which tells the other end.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/halo/halo_plan.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/threads/side_loop.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace sar { inline namespace SAR_PRECISION {

// The division of stages into packets, the messages of MPI. Both ends of a link compute the same packets
// from the same numbers, so messages contain rows only. For the sources of comm/ only.

/// Values [begin, end) of one round, counted from its first row.
struct Packet {
  std::size_t round = 0;
  std::size_t stage = 0;  ///< stage of the reader
  Index begin = 0;
  Index end = 0;
  Index offset = 0;  ///< position of `begin` in the stage

  [[nodiscard]] Index size() const noexcept { return end - begin; }
  bool operator==(const Packet&) const = default;
};

/// The rows of a round in the halo of their reader.
struct HaloRange {
  Index first = 0;
  Index rows = 0;
};

/// The packets of one direction of an exchange.
class Packets {
 public:
  /// Builds the packets of all stages in order, within a stage in the order of the rounds. A packet has whole
  /// rows of about `max_bytes` bytes, or a part of a longer row. `ranges` has one entry per round.
  Packets(std::span<const HaloRange> ranges, Index stage_rows, Index row_size, const WireFormat& wire,
          std::size_t max_bytes);

  [[nodiscard]] std::size_t size() const noexcept { return packets_.size(); }
  [[nodiscard]] const Packet& operator[](std::size_t i) const noexcept { return packets_[i]; }
  /// Returns the number of stages in which any of these rounds has rows.
  [[nodiscard]] std::size_t num_stages() const noexcept { return num_stages_; }
  /// Returns the number of stages that are complete with the first `count` packets.
  [[nodiscard]] std::size_t complete_stages(std::size_t count) const noexcept {
    return count < packets_.size() ? packets_[count].stage : num_stages_;
  }
  /// Returns the number of values of the largest packet.
  [[nodiscard]] Index largest() const noexcept;

 private:
  PassVector<Packet> packets_;
  std::size_t num_stages_ = 0;
};

/// A ring buffer of receives.
class PacketRing {
 public:
  struct Entry {
    Packet packet;
    bool complete = false;
    std::size_t bytes = 0;                   ///< bytes received, if complete
    std::int64_t posted = 0, completed = 0;  ///< times of trace_time()
  };

  explicit PacketRing(std::size_t capacity);

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] bool full() const noexcept { return count_ == entries_.size(); }
  /// Takes the next slot; the caller passes the request to MPI. Must not be full().
  MPI_Request* start(const Packet& packet);
  /// Takes the next slot for a packet that will not arrive. Must not be full().
  void start_complete(const Packet& packet);
  /// Tests all requests. Returns whether any completed.
  bool test();
  /// Returns the oldest packet. Must not be empty().
  [[nodiscard]] const Entry& oldest() const noexcept { return entries_[first_]; }
  void pop();  ///< removes the oldest packet, which must be complete
  /// Cancels the receives of a round whose sender gave up.
  void cancel_round(std::size_t round);

 private:
  PassVector<MPI_Request> requests_;
  PassVector<Entry> entries_;
  PassVector<int> indices_;  // output of MPI_Testsome
  PassVector<MPI_Status> statuses_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

/// Approximate packet size: small enough to stay in the cache between packing and sending, and between
/// arrival and addition; large enough to amortise the handshake of a large message.
inline constexpr std::size_t packet_bytes = std::size_t{1} << 19;

/// One direction of an exchange: the peers, packets and format.
struct Traffic {
  PassVector<int> peers;  ///< one per round
  Packets packets;
  WireFormatPtr wire;

  [[nodiscard]] Index bytes(const Packet& packet) const { return wire->bytes(packet.size()); }
};

/// Return both directions of a plan, for rows of `row_size` values.
Traffic halo_traffic(const Communicator& comm, const HaloPlan& plan, Index row_size);
Traffic owned_traffic(const Communicator& comm, const HaloPlan& plan, Index row_size);

/// Receives the packets of all rounds in order, a few at a time.
class Inbox {
 public:
  Inbox(const Communicator& comm, Traffic traffic);

  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  [[nodiscard]] const Packets& packets() const noexcept { return traffic_.packets; }
  /// Reports arrived packets in order, and posts receives for further packets of the first `stages` stages.
  /// `memory(packet)` returns where to store a packet (null: not yet). `arrived(packet)` is called when it is
  /// there (or, after a rank gave up, will never be) and must not throw. Returns whether something arrived.
  bool advance(int tag, std::size_t stages, FunctionRef<std::byte*(const Packet& packet)> memory,
               FunctionRef<void(const Packet& packet)> arrived);
  /// Returns whether no receive is in flight.
  [[nodiscard]] bool idle() const noexcept { return ring_.empty(); }
  /// Returns whether all packets were received and reported.
  [[nodiscard]] bool done() const noexcept { return posted_ == packets().size() && ring_.empty(); }
  /// Returns a rank that gave up the exchange, or -1.
  [[nodiscard]] int failed_peer() const noexcept { return failed_peer_; }

 private:
  Communicator comm_;
  Traffic traffic_;
  PacketRing ring_;
  std::size_t posted_ = 0;  // number of packets
  Index posted_bytes_ = 0;
  PassVector<char> gave_up_;  // per round: its sender gave up
  int failed_peer_ = -1;
};

/// Sends the packets of all rounds, a few at a time: in order per reader, and at most a share of them to one
/// reader, so that a late reader does not block the others.
class Outbox {
 public:
  Outbox(const Communicator& comm, Traffic traffic);

  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  [[nodiscard]] const Packets& packets() const noexcept { return traffic_.packets; }
  /// Returns the maximum number of packets in flight; each has its own slot.
  [[nodiscard]] std::size_t window() const noexcept { return slots_.size(); }
  /// Detects completed sends, and sends further packets of the first `stages` stages. `memory(packet, slot)`
  /// returns the bytes of a packet (null: not yet), which must not change until the stage has been sent or
  /// the slot is used again.
  bool advance(int tag, std::size_t stages,
               FunctionRef<const std::byte*(const Packet& packet, std::size_t slot)> memory);
  /// Returns how many stages, counted from the first, have been sent completely.
  [[nodiscard]] std::size_t left() const noexcept { return left_stages_; }
  [[nodiscard]] bool done() const noexcept { return left_ == packets().size(); }
  /// From now on, advance() sends an empty message for the rest of each round.
  void give_up() noexcept { giving_up_ = true; }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Slot {
    std::size_t packet = none;  ///< in flight, or being prepared
    bool sent = false;          ///< passed to MPI
    std::size_t bytes = 0;
    std::int64_t posted = 0;
  };
  bool test();
  /// Assigns free slots to packets.
  bool assign(std::size_t stages);
  void send(Slot& slot, int tag, const std::byte* data, Index bytes);
  /// Sends an empty message for the rest of each round.
  bool send_nothing(int tag);
  void count_left(std::size_t packet);

  Communicator comm_;
  Traffic traffic_;
  PassVector<MPI_Request> requests_;  // one per slot
  PassVector<Slot> slots_;
  PassVector<int> indices_;              // output of MPI_Testsome
  PassVector<std::size_t> order_;        // slots that wait to be sent
  PassVector<char> started_;             // per packet
  PassVector<std::size_t> of_round_;     // packets in flight, per round
  PassVector<std::size_t> still_there_;  // unsent packets, per stage
  std::size_t share_ = 1;                // maximum packets in flight per reader
  std::size_t first_ = 0;                // first packet that was not started
  std::size_t left_ = 0;
  std::size_t left_stages_ = 0;
  bool giving_up_ = false;
};

// Packing: send buffers into which rows are packed, one per slot of an Outbox. While a kernel runs, its
// threads pack between the blocks of their loops (SideLoop). For the sources of comm/ only.

/// Returns how many values a thread packs, unpacks or adds at a time: whole rows, unless rows are longer than
/// a packet.
inline Index values_at_once(const Packet& packet, Index row_size) {
  constexpr Index values = Index{1} << 14;
  if (packet.begin % row_size != 0 || packet.end % row_size != 0) return values;
  return std::max<Index>(values / row_size, 1) * row_size;
}

/// The send buffers of an exchange.
class Packing {
 public:
  /// pack(begin, end, out) writes values [begin, end) of a packet, counted from its first value, to `out`. It
  /// keeps the memory it reads alive, and runs on any thread.
  using Pack = std::function<void(Index begin, Index end, std::byte* out)>;
  Packing(std::size_t slots, const WireFormat& wire, Index row_size, Index largest)
      : wire_(wire), row_size_(row_size), largest_(largest), slots_(slots) {}

  /// Returns the packed values of a packet, in the buffer of its slot; null while they are being packed. If
  /// `waiting`, no kernel runs, and the packet is packed now. `source()` returns the Pack (or a callable that
  /// converts to it); it is called when packing starts.
  template <class Source>
  const std::byte* bytes_of(const Packet& packet, std::size_t slot, bool waiting, const Source& source) {
    Slot& s = slots_[slot];
    if (s.packet != &packet) {
      s.loop.finish();
      s.packet = nullptr;
      if (s.buffer.empty()) s.buffer.resize(wire_.bytes(largest_));
      if (waiting && packet.size() <= values_at_once(packet, row_size_)) {
        source()(0, packet.size(), s.buffer.data());
        s.packet = &packet;
        return s.buffer.data();
      }
      s.loop.start(packet.size(), values_at_once(packet, row_size_),
                   [this, to = s.buffer.data(), pack = source()](Index begin, Index end) {
                     pack(begin, end, to + wire_.bytes(begin));
                   });
      s.packet = &packet;
    }
    if (waiting) s.loop.finish();
    if (!s.loop.done()) return nullptr;
    s.loop.check();
    return s.buffer.data();
  }

 private:
  struct Slot {
    const Packet* packet = nullptr;
    Array<std::byte> buffer;  // allocated at first use
    SideLoop loop;            // destroyed before the buffer
  };
  const WireFormat& wire_;
  Index row_size_, largest_;
  PassVector<Slot> slots_;
};
}}  // namespace sar

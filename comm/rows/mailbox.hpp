/// Inbox and Outbox: the two ends of the links of one exchange. For the sources of comm/ only.
///
/// Packets between two ranks arrive in the order in which they were sent, so that a packet needs no name. A
/// rank that gives up sends an empty message in place of the rest of a round, which is how the other end
/// learns of it.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/packet_ring.hpp>
#include <sar/comm/rows/packets.hpp>
#include <sar/core/workspace.hpp>

#include <cstddef>
#include <cstdint>

namespace sar::inline SAR_PRECISION {

/// A packet is about so large: short enough to stay in the cache between packing and sending, and between
/// arrival and addition; long enough for the handshake of a large message not to count.
inline constexpr std::size_t packet_bytes = std::size_t{1} << 19;

/// One direction of an exchange: whose rows, in which packets.
struct Traffic {
  PassVector<int> peers;  ///< of each round
  Packets packets;
  const WireFormat* wire;

  [[nodiscard]] Index bytes(const Packet& packet) const { return wire->bytes(packet.size()); }
  bool operator==(const Traffic&) const = default;
};

/// Both directions of a plan, for rows of `row_size` values.
Traffic halo_traffic(const Communicator& comm, const HaloPlan& plan, Index row_size);
Traffic owned_traffic(const Communicator& comm, const HaloPlan& plan, Index row_size);

/// Receives the packets of all rounds in order, a few at a time.
class Inbox {
 public:
  Inbox(const Communicator& comm, Traffic traffic);

  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  [[nodiscard]] const Packets& packets() const noexcept { return traffic_.packets; }
  /// Hands over what has arrived, in order, and posts receives for further packets of the first `stages`
  /// stages. `memory(packet)` says where a packet shall lie (null: not yet), `arrived(packet)`, which does
  /// not throw, that it is there (after a rank gave up: that it never will be). True when something arrived.
  bool advance(int tag, std::size_t stages, FunctionRef<std::byte*(const Packet& packet)> memory,
               FunctionRef<void(const Packet& packet)> arrived);
  /// No receive is under way.
  [[nodiscard]] bool idle() const noexcept { return ring_.empty(); }
  /// Everything was handed over.
  [[nodiscard]] bool done() const noexcept { return posted_ == packets().size() && ring_.empty(); }
  /// A rank that gave up the exchange, or -1.
  [[nodiscard]] int failed_peer() const noexcept { return failed_peer_; }

 private:
  Communicator comm_;
  Traffic traffic_;
  PacketRing ring_;
  std::size_t posted_ = 0;  // packets
  Index posted_bytes_ = 0;
  PassVector<char> gave_up_;  // of each round: no more will come
  int failed_peer_ = -1;
};

/// Sends the packets of all rounds, a few at a time: those of a reader in order, and no more than a share of
/// them to one reader, so that one who is late does not keep the others waiting.
class Outbox {
 public:
  Outbox(const Communicator& comm, Traffic traffic);

  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  [[nodiscard]] const Packets& packets() const noexcept { return traffic_.packets; }
  /// So many packets are under way at most, each in a slot of its own.
  [[nodiscard]] std::size_t window() const noexcept { return slots_.size(); }
  /// Takes note of what has left and sends further packets of the first `stages` stages. `memory(packet,
  /// slot)` says where a packet lies (null: not yet); that memory stays as it is until the stage has left or
  /// the slot is named again.
  bool advance(int tag, std::size_t stages,
               FunctionRef<const std::byte*(const Packet& packet, std::size_t slot)> memory);
  /// So many stages, from the first on, have left.
  [[nodiscard]] std::size_t left() const noexcept { return left_stages_; }
  [[nodiscard]] bool done() const noexcept { return left_ == packets().size(); }
  /// From now on, advance() sends an empty message for what is left of each round.
  void give_up() noexcept { giving_up_ = true; }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct Slot {
    std::size_t packet = none;  ///< under way, or being prepared
    bool sent = false;          ///< given to MPI
    std::size_t bytes = 0;
    std::int64_t posted = 0;
  };
  bool test();
  /// Gives free slots to packets.
  bool assign(std::size_t stages);
  void send(Slot& slot, int tag, const std::byte* data, Index bytes);
  /// An empty message for the rest of each round.
  bool send_nothing(int tag);
  void count_left(std::size_t packet);

  Communicator comm_;
  Traffic traffic_;
  PassVector<MPI_Request> requests_;  // of the slots
  PassVector<Slot> slots_;
  PassVector<int> indices_;              // what MPI_Testsome reports
  PassVector<std::size_t> order_;        // slots that wait to be sent
  PassVector<char> started_;             // of each packet
  PassVector<std::size_t> of_round_;     // packets under way
  PassVector<std::size_t> still_there_;  // packets of each stage that have not left
  std::size_t share_ = 1;                 // of a reader
  std::size_t first_ = 0;                 // packet that was not started
  std::size_t left_ = 0;
  std::size_t left_stages_ = 0;
  bool giving_up_ = false;
};

}  // namespace sar

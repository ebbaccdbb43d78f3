/// Packing: buffers in which rows are packed before they are sent, a buffer for each slot of an Outbox. While
/// a kernel runs, its threads pack between the blocks of their loops. For the sources of comm/ only.
#pragma once

#include <sar/comm/rows/packets.hpp>
#include <sar/core/parallel.hpp>
#include <sar/core/side_loop.hpp>
#include <sar/core/workspace.hpp>

#include <algorithm>
#include <functional>

namespace sar::inline SAR_PRECISION {

/// What a thread packs, unpacks or adds at once: whole rows, unless they are longer than a packet.
inline Index values_at_once(const Packet& packet, Index row_size) {
  constexpr Index values = Index{1} << 14;
  if (packet.begin % row_size != 0 || packet.end % row_size != 0) return values;
  return std::max<Index>(values / row_size, 1) * row_size;
}

class Packing {
 public:
  /// pack(begin, end, out): out = the values [begin, end) of a packet, counted from its first. It keeps alive
  /// what it reads, and runs on any thread.
  using Pack = std::function<void(Index begin, Index end, std::byte* out)>;
  Packing(std::size_t slots, const WireFormat& wire, Index row_size, Index largest)
      : wire_(wire), row_size_(row_size), largest_(largest), slots_(slots) {}

  /// The packed values of a packet, in the buffer of its slot; null while they are being packed. When
  /// `waiting`, no kernel runs, and they are packed now. `source()`, a Pack or what becomes one, says how,
  /// when they are not yet.
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
    Array<std::byte> buffer;  // made when first needed
    SideLoop loop;            // ends before the buffer does
  };
  const WireFormat& wire_;
  Index row_size_, largest_;
  PassVector<Slot> slots_;
};

}  // namespace sar

// SPDX-License-Identifier: MIT

/// Packing: send buffers into which rows are packed, one per slot of an Outbox. While a kernel runs, its
/// threads pack between the blocks of their loops (SideLoop). For the sources of comm/ only.
#pragma once

#include <sar/comm/halo/packets.hpp>
#include <sar/core/memory/workspace.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/threads/side_loop.hpp>

#include <algorithm>
#include <functional>

namespace sar { inline namespace SAR_PRECISION {

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

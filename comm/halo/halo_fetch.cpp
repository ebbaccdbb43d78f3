// SPDX-License-Identifier: MIT

// Forward halo exchange. Owners pack (or send in place, if the rows are contiguous and the format is exact)
// the rows of all readers, as fast as slots become free. A reader posts receives for at most depth + 1
// stages; packets in the exact format arrive in the stage's tensor, others in buffers from which they are
// unpacked by the threads of the loops. Bytes moved per sent row: the row read and the packed row written;
// per received row in another format, the reverse.
#include <sar/comm/exchange.hpp>
#include <sar/comm/halo/halo_fetch.hpp>
#include <sar/comm/halo/halo_push.hpp>
#include <sar/comm/halo/mailbox.hpp>
#include <sar/comm/halo/packing.hpp>
#include <sar/comm/recorded_pass.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/workspace.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/core/trace/trace_events.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// Takes the part of a fetch of a recorded pass, for a rank that failed before the fetch began.
class RecordedFetch final : public RecordedExchange {
 public:
  RecordedFetch(const Communicator& comm, const HaloPlan& plan, const TypedRows& rows, const Traffic& halo,
                const Traffic& owned)
      : comm_(comm), key_(plan, rows.row_size(), rows.type()), inbox_(comm, halo), outbox_(comm, owned) {}

  /// Compares what all ranks have in common, so that all get the same answer: this rank's own packets may be
  /// the same in another exchange.
  [[nodiscard]] bool is_of(const HaloPlan& plan, const TypedRows& rows) const {
    return key_ == Key(plan, rows.row_size(), rows.type());
  }
  [[nodiscard]] std::size_t largest_message() const noexcept override {
    return static_cast<std::size_t>(inbox_.traffic().wire->bytes(inbox_.packets().largest()));
  }
  void take_part_without_rows(std::byte* sink) noexcept override {
    const int tag = comm_.new_tag();
    const auto to_sink = [&](const Packet&) { return inbox_.idle() ? sink : nullptr; };
    outbox_.give_up();
    try {
      while (!inbox_.done() || !outbox_.done()) {
        inbox_.advance(tag, inbox_.packets().num_stages(), to_sink, [](const Packet&) {});
        outbox_.advance(tag, 0, [](const Packet&, std::size_t) -> const std::byte* { return nullptr; });
        std::this_thread::yield();
      }
    } catch (const CommunicationError&) {  // of MPI: nothing more can be done
    }
  }

 private:
  /// Determines the packets of all ranks.
  struct Key {
    Key(const HaloPlan& plan, Index columns, NumberType type)
        : halo(plan.rounds->empty() ? 0 : plan.rounds->front().halo),
          stage_rows(plan.stage_rows),
          row_size(columns),
          group(plan.wire->group()),
          group_bytes(plan.wire->bytes(group)),
          as_stored(plan.wire->as_stored(type)) {}
    bool operator==(const Key&) const = default;

    Index halo, stage_rows, row_size, group, group_bytes;
    bool as_stored;
  };

  Communicator comm_;
  Key key_;
  Inbox inbox_;
  Outbox outbox_;
};

}  // namespace

struct HaloFetch::Impl final : Exchange {
  Impl(const Communicator& comm, const TypedRows& owned_rows, HaloPlan halo_plan)
      : Exchange(comm),
        owned(owned_rows),
        plan(std::move(halo_plan)),
        as_stored(plan.wire->as_stored(owned.type())),
        inbox(comm, halo_traffic(comm, plan, owned.row_size())),
        outbox(comm, owned_traffic(comm, plan, owned.row_size())),
        packing(outbox.window(), *plan.wire, owned.row_size(), outbox.packets().largest()),
        sink(plan.wire->bytes(inbox.packets().largest())) {
    check_rounds(*plan.rounds, owned.shape());
  }
  static void* operator new(std::size_t bytes) { return allocate_object(bytes); }
  static void operator delete(void* impl, std::size_t bytes) noexcept { deallocate_object(impl, bytes); }
  ~Impl() override {
    trace_event(TraceLane::exchange, "fetch", start, trace_time());
    drain();
  }

  bool advance(bool waiting) override {
    const auto packet_arrived = [&](const Packet&) {
      if (!given_up()) ++(as_stored ? arrived : to_unpack);
    };
    const auto incoming = [&](const Packet& packet) -> std::byte* {
      if (given_up()) return inbox.idle() ? sink.data() : nullptr;
      if (as_stored) return static_cast<std::byte*>(tensor(packet.stage).at(packet.offset));
      real* const values = tensor(packet.stage).reals().data() + packet.offset;
      packed.push_back({packet, values, Array<std::byte>(plan.wire->bytes(packet.size())), {}});
      return packed.back().bytes.data();
    };
    const auto outgoing = [&](const Packet& packet, std::size_t slot) {
      return rows_of(packet, slot, waiting);
    };
    const std::size_t wanted = given_up() ? plan.halo.size() : handed_out + plan.depth + (in_use ? 0 : 1);
    bool moved = inbox.advance(tag(), wanted, incoming, packet_arrived);
    unpack(waiting);
    moved |= outbox.advance(tag(), std::numeric_limits<std::size_t>::max(), outgoing);
    return moved;
  }
  [[nodiscard]] bool done() const noexcept override { return outbox.done() && inbox.done(); }
  [[nodiscard]] int failed_peer() const noexcept override { return inbox.failed_peer(); }
  void give_up() noexcept override { outbox.give_up(); }

  /// Synchronizes before the exchange, unless all ranks are known to arrive.
  void synchronize_unless_recorded() {
    RecordedPass* const pass = RecordedPass::of(comm_);
    const auto* next = pass != nullptr ? static_cast<const RecordedFetch*>(pass->next()) : nullptr;
    if (pass != nullptr && pass->records())
      pass->begin(std::make_unique<RecordedFetch>(comm_, plan, owned, inbox.traffic(), outbox.traffic()));
    else if (next != nullptr && next->is_of(plan, owned))
      pass->begin_next();
    else
      synchronize();
  }

  /// Returns the rows of a stage.
  TypedRows& tensor(std::size_t stage) {
    while (handed_out + tensors.size() <= stage)
      tensors.push_back(owned.other(plan.halo[handed_out + tensors.size()].size()));
    return tensors[stage - handed_out];
  }
  TypedRows take_oldest() {
    TypedRows rows = std::move(tensor(handed_out));
    tensors.pop_front();
    ++handed_out;
    return rows;
  }
  /// Starts unpacking packets that have arrived in another format than exact, and counts the finished ones.
  void unpack(bool waiting) {
    for (; to_unpack > unpacking; ++unpacking) {
      Packed& next = packed[unpacking];
      if (inbox.failed_peer() >= 0 || given_up()) continue;  // its bytes may be missing
      next.loop.start(next.packet.size(), values_at_once(next.packet, owned.row_size()),
                      [this, &next](Index begin, Index end) {
                        plan.wire->unpack(next.bytes.data() + plan.wire->bytes(begin), end - begin,
                                          next.values + begin);
                      });
    }
    for (std::size_t i = 0; waiting && i < unpacking; ++i) work(waiting, [&] { packed[i].loop.finish(); });
    for (; unpacking > 0 && packed.front().loop.done(); --unpacking, --to_unpack, ++arrived) {
      packed.front().loop.check();
      packed.pop_front();
    }
  }

  /// Returns a Packing::Pack.
  [[nodiscard]] auto pack_of(const Packet& packet) const {
    return [this, &rows = (*plan.rounds)[packet.round].send_rows, first = packet.begin](
               Index begin, Index end, std::byte* out) {
      const TraceScope scope("pack rows", TraceKind::communication);
      plan.wire->pack(owned, rows, first + begin, first + end, out);
    };
  }

  /// Returns the contiguous bytes of a packet, in `owned` or packed. Null: not yet.
  const std::byte* rows_of(const Packet& packet, std::size_t slot, bool waiting) {
    const Array<std::int32_t>& rows = (*plan.rounds)[packet.round].send_rows;
    const Index row_size = owned.row_size();
    const Index first = packet.begin / row_size;
    const Index last = (packet.end - 1) / row_size;
    if (as_stored && rows[last] - rows[first] == last - first)
      return static_cast<const std::byte*>(owned.at(rows[first] * row_size + packet.begin % row_size));
    const std::byte* bytes = nullptr;
    work(waiting, [&] { bytes = packing.bytes_of(packet, slot, waiting, [&] { return pack_of(packet); }); });
    return bytes;
  }

  /// A packet in another format than exact.
  struct Packed {
    Packet packet;
    real* values;  // destination
    Array<std::byte> bytes;
    SideLoop loop;
  };

  const std::int64_t start = trace_time();
  const TypedRows owned;
  const HaloPlan plan;
  const bool as_stored;  // values are sent and received as they are in memory
  Inbox inbox;
  std::size_t arrived = 0;                                 // number of packets whose rows are in place
  std::deque<TypedRows, WorkspaceAllocator<TypedRows>> tensors;  // stages handed_out, handed_out + 1, ...
  std::size_t handed_out = 0;
  bool in_use = false;  // the caller still uses the stage returned last
  // In order: packets being unpacked, packets that have arrived, receives in flight.
  std::deque<Packed, WorkspaceAllocator<Packed>> packed;
  std::size_t unpacking = 0, to_unpack = 0;  // packets being unpacked; packets that have arrived
  Outbox outbox;
  Packing packing;
  Array<std::byte> sink;  // receives packets that are discarded
};

HaloFetch::HaloFetch(const Communicator& comm, const TypedRows& owned, HaloPlan plan, HaloStart when)
    : impl_(std::make_unique<Impl>(comm, owned, std::move(plan))) {
  if (when == HaloStart::now) start();
}

HaloFetch::~HaloFetch() = default;

void HaloFetch::start(HaloPush* push) {
  if (push == nullptr)
    impl_->synchronize_unless_recorded();
  else
    impl_->synchronize();
  impl_->begin();
  if (push != nullptr) push->begin();
  try {
    impl_->start_more();
    if (push != nullptr) push->progress();
  } catch (...) {
    impl_->fail();
  }
}

std::optional<HaloRows> HaloFetch::next() {
  Impl& fetch = *impl_;
  const std::size_t k = fetch.handed_out;
  fetch.in_use = false;
  if (k == fetch.plan.halo.size()) return std::nullopt;
  fetch.wait_until([&] { return fetch.inbox.packets().complete_stages(fetch.arrived) > k; });
  HaloRows rows{fetch.plan.halo[k], fetch.take_oldest()};
  fetch.in_use = true;
  fetch.start_more();
  return rows;
}

void HaloFetch::release() {
  impl_->in_use = false;
  impl_->start_more();
}

void HaloFetch::progress() {
  impl_->progress();
}

void HaloFetch::finish() {
  impl_->wait_until([&] { return impl_->outbox.done(); });
  if (impl_->handed_out == impl_->plan.halo.size()) impl_->end();
}

// Rows take a HaloFetch of one stage. Integers take one all_to_all_v, of 8 bytes per halo row; they arrive by
// owner and are copied into rotation order. O(halo rows + P).

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

// SPDX-License-Identifier: MIT

// Backward halo exchange. Outgoing stages are packed by the threads of the loops (Packing) and sent as they
// were given. Incoming packets are queued in the order of (stage, round) and added only in send() and
// finish(), while the caller does not use `sum`. Parallel additions split the rows of `sum` among the
// threads, so that the order of the additions to a row is fixed. Bytes moved per added row: packet and `sum`
// read, `sum` written.
#include <sar/comm/exchange.hpp>
#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/comm/halo/mailbox.hpp>
#include <sar/comm/recorded_pass.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <thread>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

constexpr Index add_values = Index{1} << 14;  // approximate number of values a thread adds at a time

}  // namespace

struct HaloPush::Impl final : Exchange {
  Impl(const Communicator& comm, const Shape& rows_of_sum, HaloPlan halo_plan, ReduceOp reduce_op)
      : Exchange(comm),
        shape(rows_of_sum),
        row_size(shape.row_size()),
        plan(std::move(halo_plan)),
        op(reduce_op),
        inbox(comm, owned_traffic(comm, plan, row_size)),
        outbox(comm, halo_traffic(comm, plan, row_size)),
        packing(outbox.window(), *plan.wire, row_size, outbox.packets().largest()) {
    check_rounds(*plan.rounds, shape);
    sink.resize(plan.wire->bytes(inbox.packets().largest()));
    const Index rows = std::min(plan.stage_rows, shape[0] * std::ssize(*plan.rounds));
    most_held_bytes = plan.depth * plan.wire->bytes(rows * row_size) - std::ssize(sink);
  }
  ~Impl() override {
    trace_event(TraceLane::exchange, "push", start, trace_time());
    drain();
  }

  using Buffer = Array<std::byte>;
  /// A packet that was not added yet.
  struct Incoming {
    Packet packet;
    Buffer buffer;
  };

  bool advance(bool waiting) override {
    const auto receive = [&](const Packet& packet) -> std::byte* {
      if (given_up()) return inbox.idle() ? sink.data() : nullptr;
      const bool fits = held_bytes + plan.wire->bytes(packet.size()) <= most_held_bytes;
      if (!fits && packet.stage != to_add && !incoming.empty()) return nullptr;
      incoming.push_back({packet, Buffer(plan.wire->bytes(packet.size()))});
      held_bytes += plan.wire->bytes(packet.size());
      return incoming.back().buffer.data();
    };
    const auto packet_arrived = [&](const Packet&) { ++arrived; };
    const auto outgoing_rows = [&](const Packet& packet, std::size_t slot) -> const std::byte* {
      const NumberType type = rows_of(packet).type();
      if (plan.wire->as_stored(type)) return static_cast<const std::byte*>(rows_of(packet).at(packet.offset));
      const std::byte* bytes = nullptr;
      work(waiting,
           [&] { bytes = packing.bytes_of(packet, slot, waiting, [&] { return pack_of(packet); }); });
      return bytes;
    };
    const std::size_t wanted = given_up() ? inbox.packets().num_stages() : to_add + plan.depth;
    bool moved = inbox.advance(tag(), wanted, receive, packet_arrived);
    moved |= outbox.advance(tag(), given, outgoing_rows);
    for (; dropped < std::min(outbox.left(), given); ++dropped) outgoing.pop_front();
    if (waiting && inbox.failed_peer() < 0 && !given_up()) moved |= add_arrived();
    return moved;
  }
  [[nodiscard]] bool done() const noexcept override { return outbox.done() && inbox.done(); }
  [[nodiscard]] int failed_peer() const noexcept override { return inbox.failed_peer(); }
  void give_up() noexcept override { outbox.give_up(); }

  /// Returns the stage of an outgoing packet.
  [[nodiscard]] const TypedRows& rows_of(const Packet& packet) const {
    return outgoing[packet.stage - dropped];
  }

  /// Waits for the first `stages` incoming stages and adds them to `to`. Between the calls there is nothing
  /// that may be added.
  void add_stages(std::size_t stages, TypedRows to) {
    sum = std::move(to);
    to_add = std::min(stages, inbox.packets().num_stages());
    wait_until([&] { return inbox.packets().complete_stages(added) >= to_add; });
    sum = {};
  }
  [[nodiscard]] Packing::Pack pack_of(const Packet& packet) const {
    const Index first = (*plan.rounds)[packet.round].first * row_size + packet.begin;
    const auto* values = static_cast<const real*>(rows_of(packet).at(packet.offset));
    return [wire = plan.wire.get(), stage = rows_of(packet), values, first](Index begin, Index end,
                                                                            std::byte* out) {
      wire->pack(values + begin, first + begin, first + end, out);
    };
  }

  /// Adds the packets that have arrived and are due. Returns whether there were any.
  bool add_arrived() {
    std::size_t count = 0;
    while (count < arrived && incoming[count].packet.stage < to_add) ++count;
    if (count == 0) return false;
    work(true, [&] { add(count); });
    for (; count > 0; --count, --arrived, ++added) {
      held_bytes -= std::ssize(incoming.front().buffer);
      incoming.pop_front();
    }
    return true;
  }

  /// Adds the first `count` packets. Each thread takes a range of rows of `sum` and adds one packet after
  /// another to it, so that the order of additions to a row does not depend on the threads.
  void add(std::size_t count) {
    const TraceScope scope("add rows", TraceKind::communication);
    Index values = 0, first = shape[0], last = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Packet& packet = incoming[i].packet;
      const Array<std::int32_t>& rows = (*plan.rounds)[packet.round].send_rows;
      values += packet.size();
      first = std::min<Index>(first, rows[packet.begin / row_size]);
      last = std::max<Index>(last, rows[(packet.end - 1) / row_size] + 1);
    }
    const Index parts = std::clamp<Index>(values / add_values, 1, last - first);
    const Index rows_of_part = (last - first + parts - 1) / parts;
    parallel_for(last - first, rows_of_part, [&](Index begin, Index end) {
      for (std::size_t i = 0; i < count; ++i) add(incoming[i], first + begin, first + end);
    });
  }
  /// Adds the part of a packet that belongs to rows [first, last) of `sum`.
  void add(const Incoming& next, Index first, Index last) {
    const Packet& packet = next.packet;
    const Array<std::int32_t>& rows = (*plan.rounds)[packet.round].send_rows;
    const auto in_packet = [&](Index row) {
      const auto at = std::lower_bound(rows.begin() + packet.begin / row_size,
                                       rows.begin() + (packet.end - 1) / row_size + 1, row);
      return std::clamp<Index>((at - rows.begin()) * row_size, packet.begin, packet.end);
    };
    const Index begin = in_packet(first), end = in_packet(last);
    if (begin == end) return;
    const std::byte* packed = next.buffer.data() + plan.wire->bytes(begin - packet.begin);
    if (sum.exact_sums() != nullptr)
      add_exact_sums(sum.exact_sums(), row_size, rows, begin, end, packed);
    else
      plan.wire->combine(sum.reals(), rows, begin, end, packed, op);
  }

  const std::int64_t start = trace_time();
  const Shape shape;  // of the sum
  const Index row_size;
  TypedRows sum;  // in add_stages()
  const HaloPlan plan;
  const ReduceOp op;
  Inbox inbox;
  Buffer sink;                    // receives packets that are discarded
  Index held_bytes = 0;           // of `incoming`
  Index most_held_bytes = 0;      // may be exceeded by stage to_add, since peers wait for its receipt
  std::deque<Incoming> incoming;  // in order: packets that have arrived, then receives in flight
  std::size_t arrived = 0;        // number of arrived packets in `incoming`
  std::size_t added = 0;          // number of added packets
  Outbox outbox;
  std::deque<TypedRows> outgoing;  // stages dropped to given - 1
  std::size_t dropped = 0;
  std::size_t given = 0;
  std::size_t to_add = 0;  // number of incoming stages that may be added now
  Packing packing;
};

HaloPush::HaloPush(const Communicator& comm, const Shape& rows, HaloPlan plan, HaloStart when, ReduceOp op)
    : impl_(std::make_unique<Impl>(comm, rows, std::move(plan), op)) {
  if (when == HaloStart::now) start();
}

HaloPush::~HaloPush() = default;

void HaloPush::start() {
  impl_->synchronize();
  begin();
  try {
    impl_->progress();  // posts receives
  } catch (...) {
    impl_->fail();
  }
}

void HaloPush::begin() noexcept {
  impl_->begin();
}

void HaloPush::send(TypedRows rows, TypedRows sum) {
  Impl& push = *impl_;
  require<CommunicationError>(push.given < push.plan.halo.size(), "all ", push.given,
                              " stages of gradients were sent already");
  const Index count = push.plan.halo[push.given].size();
  require<ShapeError>(rows.shape() == push.shape.with_rows(count) && sum.shape() == push.shape, "a stage of ",
                      count, " rows is sent as a tensor of shape ", rows.shape(),
                      " to be added to one of shape ", sum.shape(), ", expected ", push.shape);
  push.wait_until([&] { return push.given - push.dropped < static_cast<std::size_t>(push.plan.depth); });
  push.outgoing.push_back(std::move(rows));
  ++push.given;
  push.start_more();
  const auto depth = static_cast<std::size_t>(push.plan.depth);
  if (push.given > depth) push.add_stages(push.given - depth, std::move(sum));
}

void HaloPush::progress() {
  impl_->progress();
}

void HaloPush::finish(TypedRows sum) {
  Impl& push = *impl_;
  require<CommunicationError>(push.given == push.plan.halo.size(), "only ", push.given, " of ",
                              push.plan.halo.size(), " stages were sent");
  push.add_stages(push.inbox.packets().num_stages(), std::move(sum));
  push.wait_until([&] { return push.outbox.done(); });
  push.end();
}

// Forward halo exchange. Owners pack (or send in place, if the rows are contiguous and the format is exact)
// the rows of all readers, as fast as slots become free. A reader posts receives for at most depth + 1
// stages; packets in the exact format arrive in the stage's tensor, others in buffers from which they are
// unpacked by the threads of the loops. Bytes moved per sent row: the row read and the packed row written;
// per received row in another format, the reverse.

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
  std::size_t arrived = 0;                                       // number of packets whose rows are in place
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

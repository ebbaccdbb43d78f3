// SPDX-License-Identifier: MIT

// Backward halo exchange. Outgoing stages are packed by the threads of the loops (Packing) and sent as they
// were given. Incoming packets are queued in the order of (stage, round) and added only in send() and
// finish(), while the caller does not use `sum`. Parallel additions split the rows of `sum` among the
// threads, so that the order of the additions to a row is fixed. Bytes moved per added row: packet and `sum`
// read, `sum` written.
#include <sar/comm/exchange.hpp>
#include <sar/comm/halo/halo_push.hpp>
#include <sar/comm/halo/mailbox.hpp>
#include <sar/comm/halo/packing.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/core/trace/trace_events.hpp>

#include <algorithm>
#include <deque>
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
}}  // namespace sar

#include <sar/comm/exchange.hpp>
#include <sar/comm/rows/halo.hpp>
#include <sar/comm/rows/mailbox.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace.hpp>
#include <sar/core/trace_events.hpp>

#include <algorithm>
#include <deque>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index add_grain_values = Index{1} << 14;  // what a thread adds at once

}  // namespace

struct HaloPush::Impl final : Exchange {
  Impl(const Communicator& comm, const Tensor& sum_rows, HaloPlan halo_plan, ReduceOp reduce_op)
      : Exchange(comm),
        sum(sum_rows),
        plan(std::move(halo_plan)),
        op(reduce_op),
        inbox(comm, owned_traffic(comm, plan, sum.row_size())),
        outbox(comm, halo_traffic(comm, plan, sum.row_size())) {
    check_rounds(*plan.rounds, sum);
    early_stages = plan.owned.size();
    const auto is_of_last_round = [&](const HaloStage& stage) {
      return stage.round + stage.num_rounds == plan.rounds->size();
    };
    while (early_stages > 0 && is_of_last_round(plan.owned[early_stages - 1]) &&
           plan.owned.size() - early_stages < static_cast<std::size_t>(plan.depth))
      --early_stages;
    to_add = early_stages;
    if (!plan.owned.empty()) free.push_back(buffer());
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
      if (given_up()) return inbox.idle() ? incoming_or_free().data() : nullptr;
      if (free.empty()) free.push_back(buffer());
      incoming.push_back({packet, {}});
      incoming.back().buffer = std::move(free.back());
      free.pop_back();
      return incoming.back().buffer.data();
    };
    const auto packet_arrived = [&](const Packet&) { ++arrived; };
    const auto outgoing_rows = [&](const Packet& packet, std::size_t slot) { return rows_of(packet, slot); };
    const std::size_t wanted = given_up() ? plan.owned.size() : added_stages() + plan.depth;
    bool moved = inbox.advance(tag(), wanted, receive, packet_arrived);
    moved |= outbox.advance(tag(), given, outgoing_rows);
    for (; dropped < std::min(outbox.left(), given); ++dropped) outgoing.pop_front();
    if (waiting && inbox.failed_peer() < 0 && !given_up()) {
      for (; arrived > 0 && incoming.front().packet.stage < to_add; moved = true) {
        work(waiting, [&] { add(incoming.front()); });
        forget_oldest();
      }
    }
    return moved;
  }
  [[nodiscard]] bool done() const noexcept override { return outbox.done() && inbox.done(); }
  [[nodiscard]] int failed_peer() const noexcept override { return inbox.failed_peer(); }
  void give_up() noexcept override { outbox.give_up(); }

  [[nodiscard]] std::size_t added_stages() const { return inbox.packets().complete_stages(added); }
  [[nodiscard]] Buffer buffer() const { return Buffer(plan.wire->bytes(inbox.packets().largest())); }
  /// A buffer that may be overwritten when no receive is under way and nothing will be added any more.
  Buffer& incoming_or_free() { return free.empty() ? incoming.front().buffer : free.front(); }

  /// Where the rows of a packet lie as they travel.
  const std::byte* rows_of(const Packet& packet, std::size_t slot) {
    const real* values = std::as_const(outgoing[packet.stage - dropped]).data() + packet.offset;
    if (plan.wire->as_stored()) return reinterpret_cast<const std::byte*>(values);
    packed.resize(outbox.window());
    packed[slot].resize(plan.wire->bytes(packet.size()));
    plan.wire->pack(values, packet.size(), packed[slot].data());
    return packed[slot].data();
  }

  void add(const Incoming& next) {
    const TraceScope scope("add rows", TraceKind::communication);
    const Packet& packet = next.packet;
    parallel_for(packet.size(), add_grain_values, [&](Index begin, Index end) {
      plan.wire->combine(sum, (*plan.rounds)[packet.round].send_rows, packet.begin + begin,
                         packet.begin + end, next.buffer.data() + plan.wire->bytes(begin), op);
    });
  }
  /// The buffer used last is used again first: it is still in the cache.
  void forget_oldest() {
    free.push_back(std::move(incoming.front().buffer));
    ++added;
    incoming.pop_front();
    --arrived;
  }

  const std::int64_t start = trace_time();
  Tensor sum;
  const HaloPlan plan;
  const ReduceOp op;
  Inbox inbox;
  std::vector<Buffer> free;       // buffers of one packet each
  std::deque<Incoming> incoming;  // in order: packets that have arrived, then receives under way
  std::size_t arrived = 0;        // packets of `incoming`
  std::size_t added = 0;          // packets
  Outbox outbox;
  std::vector<Buffer> packed;   // of the slots of the outbox, for another format than the stored one
  std::deque<Tensor> outgoing;  // stages dropped, dropped + 1, ..., given - 1
  std::size_t dropped = 0;
  std::size_t given = 0;
  std::size_t early_stages = 0;  // so many incoming stages are added before finish()
  std::size_t to_add = 0;        // so many may be added now
};

HaloPush::HaloPush(const Communicator& comm, Tensor& sum, HaloPlan plan, HaloStart when, ReduceOp op)
    : impl_(std::make_unique<Impl>(comm, sum, std::move(plan), op)) {
  if (when == HaloStart::now) start();
}

HaloPush::~HaloPush() = default;

void HaloPush::start() {
  impl_->synchronize();
  begin();
  impl_->progress();  // posts receives, and leaves `sum` alone: the caller may still have to set it
}

void HaloPush::begin() noexcept {
  impl_->begin();
}

bool HaloPush::adds_before_finish() const noexcept {
  return impl_->early_stages > 0;
}

void HaloPush::send(Tensor rows) {
  Impl& push = *impl_;
  require<CommunicationError>(push.given < push.plan.halo.size(), "all ", push.given,
                              " stages of gradients were sent already");
  const Index count = push.plan.halo[push.given].size();
  require<ShapeError>(rows.defined() && rows.shape() == push.sum.shape().with_rows(count), "a stage of ",
                      count, " rows is sent as a tensor of shape ", rows.shape(),
                      " to be added to one of shape ", push.sum.shape());
  push.wait_until([&] { return push.given - push.dropped < static_cast<std::size_t>(push.plan.depth); });
  push.outgoing.push_back(std::move(rows));
  ++push.given;
  push.start_more();
}

void HaloPush::receive_all_but_last() {
  impl_->wait_until([&] { return impl_->added_stages() >= impl_->early_stages; });
}

void HaloPush::progress() {
  impl_->progress();
}

void HaloPush::finish() {
  Impl& push = *impl_;
  require<CommunicationError>(push.given == push.plan.halo.size(), "only ", push.given, " of ",
                              push.plan.halo.size(), " stages were sent");
  push.to_add = push.plan.owned.size();
  push.wait_until([&] { return push.added_stages() == push.to_add && push.outbox.done(); });
  push.end();
}

}  // namespace sar

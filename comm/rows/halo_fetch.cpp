#include <sar/comm/exchange.hpp>
#include <sar/comm/rows/halo.hpp>
#include <sar/comm/rows/mailbox.hpp>
#include <sar/core/trace.hpp>
#include <sar/core/trace_events.hpp>

#include <deque>
#include <limits>
#include <utility>

namespace sar::inline SAR_PRECISION {
namespace {

constexpr Index pack_grain_values = Index{1} << 14;  // what a thread packs at once

}  // namespace

struct HaloFetch::Impl final : Exchange {
  Impl(const Communicator& comm, const Tensor& owned_rows, HaloPlan halo_plan)
      : Exchange(comm),
        owned(owned_rows),
        plan(std::move(halo_plan)),
        inbox(comm, halo_traffic(comm, plan, owned.row_size())),
        outbox(comm, owned_traffic(comm, plan, owned.row_size())),
        buffers(outbox.window()),
        sink(plan.wire->bytes(inbox.packets().largest())) {
    check_rounds(*plan.rounds, owned);
  }
  ~Impl() override {
    trace_event(TraceLane::exchange, "fetch", start, trace_time());
    drain();
  }

  bool advance(bool waiting) override {
    const auto packet_arrived = [&](const Packet& packet) {
      if (!plan.wire->as_stored()) unpack(packet);
      ++arrived;
    };
    const auto incoming = [&](const Packet& packet) -> std::byte* {
      if (given_up()) return inbox.idle() ? sink.data() : nullptr;
      real* values = values_of(packet);
      if (plan.wire->as_stored()) return reinterpret_cast<std::byte*>(values);
      return packed.emplace_back(plan.wire->bytes(packet.size())).data();
    };
    const auto outgoing = [&](const Packet& packet, std::size_t slot) {
      return rows_of(packet, slot, waiting);
    };
    const std::size_t wanted = given_up() ? plan.halo.size() : handed_out + plan.depth;
    const bool moved = inbox.advance(tag(), wanted, incoming, packet_arrived);
    return outbox.advance(tag(), std::numeric_limits<std::size_t>::max(), outgoing) || moved;
  }
  [[nodiscard]] bool done() const noexcept override { return outbox.done() && inbox.done(); }
  [[nodiscard]] int failed_peer() const noexcept override { return inbox.failed_peer(); }
  void give_up() noexcept override { outbox.give_up(); }

  [[nodiscard]] std::size_t complete_stages() const { return inbox.packets().complete_stages(arrived); }
  Tensor& tensor(std::size_t stage) {
    while (handed_out + tensors.size() <= stage)
      tensors.push_back(Tensor(owned.shape().with_rows(plan.halo[handed_out + tensors.size()].size())));
    return tensors[stage - handed_out];
  }
  /// Where the values of a packet belong.
  real* values_of(const Packet& packet) { return tensor(packet.stage).data() + packet.offset; }
  Tensor take_oldest() {
    Tensor rows = std::move(tensor(handed_out));
    tensors.pop_front();
    ++handed_out;
    return rows;
  }
  void unpack(const Packet& packet) {
    if (packed.empty()) return;  // given up
    if (inbox.failed_peer() < 0 && !given_up())
      plan.wire->unpack(packed.front().data(), packet.size(), values_of(packet));
    packed.pop_front();
  }

  /// Where the rows of a packet lie one after the other: in `owned`, or packed in the buffer of the slot.
  const std::byte* rows_of(const Packet& packet, std::size_t slot, bool waiting) {
    const Array<std::int32_t>& rows = (*plan.rounds)[packet.round].send_rows;
    const Index row_size = owned.row_size();
    const Index first = packet.begin / row_size;
    const Index last = (packet.end - 1) / row_size;
    if (plan.wire->as_stored() && rows[last] - rows[first] == last - first)
      return reinterpret_cast<const std::byte*>(owned.row(rows[first]) + packet.begin % row_size);
    Array<std::byte>& buffer = buffers[slot];
    if (buffer.empty()) buffer.resize(plan.wire->bytes(outbox.packets().largest()));
    const TraceScope scope("pack rows", TraceKind::communication);
    const auto pack = [&](Index begin, Index end) {
      plan.wire->pack(owned, rows, packet.begin + begin, packet.begin + end,
                      buffer.data() + plan.wire->bytes(begin));
    };
    work(waiting, [&] {
      if (waiting)
        parallel_for(packet.size(), pack_grain_values, pack);
      else  // a kernel runs: its threads are busy
        pack(0, packet.size());
    });
    return buffer.data();
  }

  const std::int64_t start = trace_time();
  const Tensor owned;
  const HaloPlan plan;
  Inbox inbox;
  std::size_t arrived = 0;              // packets
  std::deque<Array<std::byte>> packed;  // packets under way in another format than the stored one
  std::deque<Tensor> tensors;           // stages handed_out, handed_out + 1, ...
  std::size_t handed_out = 0;
  Outbox outbox;
  std::vector<Array<std::byte>> buffers;  // of the slots of the outbox, made when first needed
  Array<std::byte> sink;                  // for packets that nobody wants any more
};

HaloFetch::HaloFetch(const Communicator& comm, const Tensor& owned, HaloPlan plan, HaloStart when)
    : impl_(std::make_unique<Impl>(comm, owned, std::move(plan))) {
  if (when == HaloStart::now) start();
}

HaloFetch::~HaloFetch() = default;

void HaloFetch::start(HaloPush* push) {
  impl_->synchronize();
  impl_->begin();
  if (push != nullptr) push->begin();
  impl_->start_more();
  if (push != nullptr) push->progress();
}

std::optional<HaloRows> HaloFetch::next() {
  Impl& fetch = *impl_;
  const std::size_t k = fetch.handed_out;
  if (k == fetch.plan.halo.size()) return std::nullopt;
  fetch.wait_until([&] { return fetch.complete_stages() > k; });
  HaloRows rows{fetch.plan.halo[k], fetch.take_oldest()};
  fetch.start_more();
  return rows;
}

void HaloFetch::progress() {
  impl_->progress();
}

void HaloFetch::finish() {
  impl_->wait_until([&] { return impl_->outbox.done(); });
  if (impl_->handed_out == impl_->plan.halo.size()) impl_->end();
}

}  // namespace sar

#include <sar/comm/exchange.hpp>
#include <sar/comm/rows/halo_rows.hpp>
#include <sar/comm/rows/mailbox.hpp>
#include <sar/core/trace_events.hpp>

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

namespace sar {
namespace {

constexpr Index pack_grain_elements = Index{1} << 14;  // what a thread packs at once

}  // namespace

struct HaloFetch::Impl final : Exchange {
  Impl(const Communicator& comm, const Tensor& owned_rows, const std::vector<HaloRound>& halo_rounds,
       const HaloOptions& options)
      : Exchange(comm),
        owned(owned_rows),
        rounds(halo_rounds),
        depth(static_cast<std::size_t>(std::max(options.depth, 1))),
        cut(message_cut(owned.row_size(), options.piece_rows, options.merge,
                        std::min(message_bytes, comm.max_collective_size()))),
        in_rows(per_round(rounds, [](const HaloRound& round) { return round.recv_rows; })),
        pieces(piece_ranges(in_rows, cut)),
        arrived(pieces, cut.row_size),
        inbox(comm, per_round(rounds, [](const HaloRound& round) { return round.owner; }), in_rows, cut),
        sent_rows(per_round(rounds, [](const HaloRound& round) { return std::ssize(round.send_rows); })),
        outbox(comm, per_round(rounds, [](const HaloRound& round) { return round.reader; }), sent_rows, cut),
        message_shape{MessageStream(sent_rows, cut).largest()},
        buffers(outbox.window()),
        sink({MessageStream(in_rows, cut).largest()}) {
    check_rounds(rounds, owned);
  }
  ~Impl() override {
    trace_event(TraceLane::exchange, "fetch", start, trace_time());
    drain();
  }

  bool advance(bool waiting) override {
    const auto message_arrived = [&](const HaloMessage& message) { arrived.add(message.size()); };
    const auto incoming = [&](const HaloMessage& message) -> real* {
      if (given_up()) return inbox.idle() ? sink.data() : nullptr;
      return tensor(message.piece).data() + message.offset;
    };
    const auto outgoing = [&](const HaloMessage& message, std::size_t slot) {
      return rows_of(message, slot, waiting);
    };
    const std::size_t wanted = given_up() ? pieces.size() : handed_out + depth;
    const bool moved = inbox.advance(tag(), wanted, incoming, message_arrived);
    return outbox.advance(tag(), std::numeric_limits<std::size_t>::max(), outgoing) || moved;
  }
  [[nodiscard]] bool done() const noexcept override { return outbox.done() && inbox.done(); }
  [[nodiscard]] int failed_peer() const noexcept override { return inbox.failed_peer(); }
  void give_up() noexcept override { outbox.give_up(); }

  Tensor& tensor(std::size_t piece) {
    while (handed_out + tensors.size() <= piece) {
      const PieceRange& range = pieces[handed_out + tensors.size()];
      tensors.push_back(Tensor(owned.shape().with_rows(range.end - range.begin)));
    }
    return tensors[piece - handed_out];
  }
  Tensor take_oldest() {
    Tensor piece = std::move(tensor(handed_out));
    tensors.pop_front();
    ++handed_out;
    return piece;
  }

  /// Where the rows of a message lie one after the other: in `owned`, or packed in the buffer of the slot.
  const real* rows_of(const HaloMessage& message, std::size_t slot, bool waiting) {
    const Array<std::int32_t>& rows = rounds[message.round].send_rows;
    const Index row_size = cut.row_size;
    const auto first = static_cast<std::size_t>(message.begin / row_size);
    const auto last = static_cast<std::size_t>((message.end - 1) / row_size);
    if (rows[last] - rows[first] == static_cast<std::int32_t>(last - first))
      return owned.row(rows[first]) + message.begin % row_size;
    Tensor& buffer = buffers[slot];
    if (!buffer.defined()) buffer = Tensor(message_shape);
    const TraceScope scope("pack rows", TraceKind::communication);
    work(waiting, [&] {
      if (!waiting) {  // a kernel runs: its threads are busy
        pack_elements(owned, rows, message.begin, message.end, buffer.data());
        return;
      }
      parallel_for(message.size(), pack_grain_elements, [&](Index begin, Index end) {
        pack_elements(owned, rows, message.begin + begin, message.begin + end, buffer.data() + begin);
      });
    });
    return buffer.data();
  }

  const std::int64_t start = trace_time();
  const Tensor owned;
  const std::vector<HaloRound>& rounds;
  std::size_t depth;
  MessageCut cut;
  std::vector<Index> in_rows;
  std::vector<PieceRange> pieces;
  PieceCounter arrived;
  Inbox inbox;
  std::deque<Tensor> tensors;  // pieces handed_out, handed_out + 1, ...
  std::size_t handed_out = 0;
  std::vector<Index> sent_rows;
  Outbox outbox;
  Shape message_shape;
  std::vector<Tensor> buffers;  // of the slots of the outbox, made when first needed
  Tensor sink;                  // for messages that nobody wants any more
};

HaloFetch::HaloFetch(const Communicator& comm, const Tensor& owned, const std::vector<HaloRound>& rounds,
                     const HaloOptions& options)
    : impl_(std::make_unique<Impl>(comm, owned, rounds, options)) {
  if (!options.wait_for_start) start();
}

HaloFetch::~HaloFetch() = default;

void HaloFetch::start(HaloPush* push) {
  impl_->synchronize();
  impl_->begin();
  if (push != nullptr) push->begin();
  impl_->start_more();
  if (push != nullptr) push->progress();
}

std::optional<HaloFetch::Piece> HaloFetch::next() {
  Impl& fetch = *impl_;
  const std::size_t k = fetch.handed_out;
  if (k == fetch.pieces.size()) return std::nullopt;
  fetch.wait_until([&] { return fetch.arrived.whole() > k; });
  const PieceRange& range = fetch.pieces[k];
  Piece piece{range.round, range.begin, range.end, fetch.take_oldest()};
  fetch.start_more();
  return piece;
}

void HaloFetch::progress() {
  impl_->progress();
}

void HaloFetch::finish() {
  impl_->wait_until([&] { return impl_->outbox.done(); });
  if (impl_->handed_out == impl_->pieces.size()) impl_->end();
}

}  // namespace sar

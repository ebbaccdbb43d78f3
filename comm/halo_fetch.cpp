#include <sar/comm/exchange.hpp>
#include <sar/comm/halo.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace sar {
namespace {

constexpr std::size_t send_window = 8;              // messages packed and not yet taken by their readers
constexpr index pack_grain_bytes = index{1} << 16;  // what a thread packs at once

/// out = elements [begin, end) of the matrix whose rows are the given rows of `owned`
void pack(const Tensor& owned, const Array<std::int32_t>& rows, index begin, index end, real* out) {
  const index row_size = owned.row_size();
  while (begin < end) {
    const index row = begin / row_size;
    const index column = begin % row_size;
    const index length = std::min(row_size - column, end - begin);
    out = std::copy_n(owned.row(rows[static_cast<std::size_t>(row)]) + column, length, out);
    begin += length;
  }
}

}  // namespace

struct HaloFetch::Impl final : Exchange {
  Impl(const Communicator& comm, const Tensor& owned_rows, const std::vector<HaloRound>& halo_rounds,
       const HaloOptions& options, int tag)
      : Exchange(comm),
        owned(owned_rows),
        rounds(halo_rounds),
        depth(static_cast<std::size_t>(std::max(options.depth, 1))),
        cut(message_cut(owned.row_size(), options.piece_rows, options.merge,
                        std::min(message_bytes, comm.max_collective_size()))),
        inbox(comm, tag, per_round(rounds, [](const HaloRound& round) { return round.owner; }),
              per_round(rounds, [](const HaloRound& round) { return round.recv_rows; }), owned.shape(), cut),
        sent_rows(per_round(rounds, [](const HaloRound& round) { return std::ssize(round.send_rows); })),
        outbox(comm, tag, per_round(rounds, [](const HaloRound& round) { return round.reader; }), sent_rows,
               cut, send_window),
        message_shape{MessageStream(sent_rows, cut).largest()},
        buffers(send_window) {
    check_rounds(rounds, owned);
  }
  ~Impl() override {
    if (outbox.done() && handed_out == inbox.pieces().size()) return;
    outbox.give_up();
    drain_until([&] {
      for (; handed_out < inbox.whole(); ++handed_out) inbox.take_oldest();
      inbox.allow(handed_out + 1);
      return outbox.done() && inbox.idle() && handed_out == inbox.pieces().size();
    });
  }

  bool advance(bool waiting) override {
    const bool arrived = inbox.advance();
    const auto message_memory = [&](const Message& message, std::size_t slot) {
      return memory(message, slot, waiting);
    };
    return outbox.advance(std::numeric_limits<std::size_t>::max(), message_memory) || arrived;
  }
  [[nodiscard]] int quitter() const noexcept override { return inbox.quitter(); }

  /// Where the rows of a message lie one after the other: in `owned`, or packed in the buffer of the slot.
  const real* memory(const Message& message, std::size_t slot, bool waiting) {
    const Array<std::int32_t>& rows = rounds[message.round].send_rows;
    const index row_size = cut.row_size;
    const auto first = static_cast<std::size_t>(message.begin / row_size);
    const auto last = static_cast<std::size_t>((message.end - 1) / row_size);
    if (rows[last] - rows[first] == static_cast<std::int32_t>(last - first))
      return owned.row(rows[first]) + message.begin % row_size;
    Tensor& buffer = buffers[slot];
    if (!buffer.defined()) buffer = Tensor(message_shape);
    work(waiting, [&] {
      if (!waiting) {
        pack(owned, rows, message.begin, message.end, buffer.data());
        return;
      }
      const index grain = std::max<index>(pack_grain_bytes / static_cast<index>(sizeof(real)), 1);
      parallel_for(message.size(), grain, [&](index begin, index end) {
        pack(owned, rows, message.begin + begin, message.begin + end, buffer.data() + begin);
      });
    });
    return buffer.data();
  }

  const Tensor owned;
  const std::vector<HaloRound>& rounds;
  std::size_t depth;
  MessageCut cut;
  Inbox inbox;
  std::vector<index> sent_rows;
  Outbox outbox;
  Shape message_shape;
  std::vector<Tensor> buffers;  // of the slots of the outbox, made when first needed
  std::size_t handed_out = 0;
};

HaloFetch::HaloFetch(const Communicator& comm, const Tensor& owned, const std::vector<HaloRound>& rounds,
                     const HaloOptions& options)
    : impl_(std::make_unique<Impl>(comm, owned, rounds, options, comm.new_tag())) {
  impl_->inbox.allow(impl_->depth);
  impl_->start_more();
}

HaloFetch::~HaloFetch() = default;

std::optional<HaloFetch::Piece> HaloFetch::next() {
  Impl& exchange = *impl_;
  const std::size_t k = exchange.handed_out;
  if (k == exchange.inbox.pieces().size()) return std::nullopt;
  exchange.wait_until([&] { return exchange.inbox.whole() > k; });
  const PieceRange range = exchange.inbox.pieces()[k];
  Piece piece{range.round, range.begin, range.end, exchange.inbox.take_oldest()};
  ++exchange.handed_out;
  exchange.inbox.allow(k + 1 + exchange.depth);
  exchange.start_more();
  return piece;
}

void HaloFetch::progress() {
  impl_->progress();
}

void HaloFetch::finish() {
  impl_->wait_until([&] { return impl_->outbox.done(); });
}

}  // namespace sar

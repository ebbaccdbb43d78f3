#include <sar/comm/exchange.hpp>
#include <sar/comm/rows/halo_rows.hpp>
#include <sar/comm/rows/mailbox.hpp>
#include <sar/core/error.hpp>
#include <sar/core/trace_events.hpp>

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

namespace sar {
namespace {

constexpr Index add_grain_elements = Index{1} << 14;  // what a thread adds at once

}  // namespace

struct HaloPush::Impl final : Exchange {
  Impl(const Communicator& comm, const Tensor& sum_rows, const std::vector<HaloRound>& halo_rounds,
       const HaloOptions& options)
      : Exchange(comm),
        sum(sum_rows),
        rounds(halo_rounds),
        depth(static_cast<std::size_t>(std::max(options.depth, 1))),
        cut(message_cut(sum.row_size(), options.piece_rows, false,
                        std::min(message_bytes, comm.max_collective_size()))),
        in_rows(per_round(rounds, [](const HaloRound& round) { return std::ssize(round.send_rows); })),
        in_pieces(piece_ranges(in_rows, cut)),
        added(in_pieces, cut.row_size),
        inbox(comm, per_round(rounds, [](const HaloRound& round) { return round.reader; }), in_rows, cut),
        buffer_shape{MessageStream(in_rows, cut).largest()},
        out_rows(per_round(rounds, [](const HaloRound& round) { return round.recv_rows; })),
        out_pieces(piece_ranges(out_rows, cut)),
        outbox(comm, per_round(rounds, [](const HaloRound& round) { return round.owner; }), out_rows, cut) {
    check_rounds(rounds, sum);
    early_pieces = in_pieces.size();
    while (early_pieces > 0 && in_pieces[early_pieces - 1].round + 1 == rounds.size() &&
           in_pieces.size() - early_pieces < depth)
      --early_pieces;
    to_add = early_pieces;
    if (!in_pieces.empty()) free.push_back(Tensor(buffer_shape));
  }
  ~Impl() override {
    trace_event(TraceLane::exchange, "push", start, trace_time());
    drain();
  }

  /// A message that was not added yet.
  struct Incoming {
    HaloMessage message;
    Tensor buffer;
  };

  bool advance(bool waiting) override {
    const auto receive = [&](const HaloMessage& message) -> real* {
      if (given_up()) return inbox.idle() ? incoming_or_free().data() : nullptr;
      if (free.empty()) free.push_back(Tensor(buffer_shape));
      incoming.push_back({message, Tensor()});
      incoming.back().buffer = std::move(free.back());
      free.pop_back();
      return incoming.back().buffer.data();
    };
    const auto message_arrived = [&](const HaloMessage&) { ++arrived; };
    const auto outgoing_rows = [&](const HaloMessage& message, std::size_t) {
      return std::as_const(outgoing[message.piece - dropped]).data() + message.offset;
    };
    bool moved =
        inbox.advance(tag(), given_up() ? in_pieces.size() : added.whole() + depth, receive, message_arrived);
    moved |= outbox.advance(tag(), given, outgoing_rows);
    for (; dropped < std::min(outbox.left(), given); ++dropped) outgoing.pop_front();
    if (waiting && inbox.failed_peer() < 0 && !given_up()) {
      for (; arrived > 0 && incoming.front().message.piece < to_add; moved = true) {
        work(waiting, [&] { add(incoming.front()); });
        forget_oldest();
      }
    }
    return moved;
  }
  [[nodiscard]] bool done() const noexcept override { return outbox.done() && inbox.done(); }
  [[nodiscard]] int failed_peer() const noexcept override { return inbox.failed_peer(); }
  void give_up() noexcept override { outbox.give_up(); }
  /// A buffer that may be overwritten when no receive is under way and nothing will be added any more.
  Tensor& incoming_or_free() { return free.empty() ? incoming.front().buffer : free.front(); }

  void add(const Incoming& next) {
    const TraceScope scope("add rows", TraceKind::communication);
    const HaloMessage& message = next.message;
    parallel_for(message.size(), add_grain_elements, [&](Index begin, Index end) {
      add_elements(sum, rounds[message.round].send_rows, message.begin + begin, message.begin + end,
                   next.buffer.data() + begin);
    });
  }
  /// The buffer used last is used again first: it is still in the cache.
  void forget_oldest() {
    free.push_back(std::move(incoming.front().buffer));
    added.add(incoming.front().message.size());
    incoming.pop_front();
    --arrived;
  }

  const std::int64_t start = trace_time();
  Tensor sum;
  const std::vector<HaloRound>& rounds;
  std::size_t depth;
  MessageCut cut;
  std::vector<Index> in_rows;
  std::vector<PieceRange> in_pieces;
  PieceCounter added;
  Inbox inbox;
  Shape buffer_shape;
  std::vector<Tensor> free;       // buffers of one message each
  std::deque<Incoming> incoming;  // in order: messages that have arrived, then receives under way
  std::size_t arrived = 0;
  std::vector<Index> out_rows;
  std::vector<PieceRange> out_pieces;
  Outbox outbox;
  std::deque<Tensor> outgoing;  // pieces dropped, dropped + 1, ..., given - 1
  std::size_t dropped = 0;
  std::size_t given = 0;
  std::size_t early_pieces = 0;  // so many incoming pieces are added before finish()
  std::size_t to_add = 0;        // so many may be added now
};

HaloPush::HaloPush(const Communicator& comm, Tensor& sum, const std::vector<HaloRound>& rounds,
                   const HaloOptions& options)
    : impl_(std::make_unique<Impl>(comm, sum, rounds, options)) {
  if (!options.wait_for_start) start();
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
  return impl_->early_pieces > 0;
}

void HaloPush::send(std::size_t round, Index begin, Index end, Tensor rows) {
  Impl& push = *impl_;
  if (begin == end) return;
  const bool any = push.given < push.out_pieces.size();
  const PieceRange next = any ? push.out_pieces[push.given] : PieceRange{};
  require<CommunicationError>(
      any && next.round == round && next.begin == begin && next.end == end, "rows ", begin, " to ", end,
      " of round ", round, " are not the next to be sent; ",
      any ? concat("these are rows ", next.begin, " to ", next.end, " of round ", next.round)
          : std::string("all rows were sent already"));
  require<ShapeError>(rows.defined() && rows.shape() == push.sum.shape().with_rows(end - begin), "rows ",
                      begin, " to ", end, " are sent as a tensor of shape ", rows.shape(),
                      " to be added to one of shape ", push.sum.shape());
  push.wait_until([&] { return push.given - push.dropped < push.depth; });
  push.outgoing.push_back(std::move(rows));
  ++push.given;
  push.start_more();
}

void HaloPush::receive_all_but_last() {
  impl_->wait_until([&] { return impl_->added.whole() >= impl_->early_pieces; });
}

void HaloPush::progress() {
  impl_->progress();
}

void HaloPush::finish() {
  Impl& push = *impl_;
  require<CommunicationError>(push.given == push.out_pieces.size(), "only ", push.given, " of ",
                              push.out_pieces.size(), " pieces were sent");
  push.to_add = push.in_pieces.size();
  push.wait_until([&] { return push.added.all() && push.outbox.done(); });
  push.end();
}

}  // namespace sar

#include <sar/comm/exchange.hpp>
#include <sar/comm/halo.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

namespace sar {
namespace {

constexpr std::size_t send_window = 16;               // messages under way
constexpr index add_grain_elements = index{1} << 14;  // what a thread adds at once

/// sum[rows[i]] += values[i] for i in [begin, end); the rows are different ones.
void add_rows(Tensor& sum, const std::int32_t* rows, const Tensor& values, index begin, index end) {
  const index row_size = sum.row_size();
  if (row_size == 0) return;
  parallel_for(end - begin, std::max<index>(add_grain_elements / row_size, 1), [&](index first, index last) {
    for (index i = begin + first; i < begin + last; ++i) {
      real* __restrict to = sum.row(rows[i]);
      const real* __restrict from = values.row(i);
      for (index j = 0; j < row_size; ++j) to[j] += from[j];
    }
  });
}

}  // namespace

struct HaloPush::Impl final : Exchange {
  Impl(const Communicator& comm, const Tensor& sum_rows, const std::vector<HaloRound>& halo_rounds,
       const HaloOptions& options, int tag)
      : Exchange(comm),
        sum(sum_rows),
        rounds(halo_rounds),
        depth(static_cast<std::size_t>(std::max(options.depth, 1))),
        cut(message_cut(sum.row_size(), options.piece_rows, false,
                        std::min(message_bytes, comm.max_collective_size()))),
        inbox(comm, tag, per_round(rounds, [](const HaloRound& round) { return round.reader; }),
              per_round(rounds, [](const HaloRound& round) { return std::ssize(round.send_rows); }),
              sum.shape(), cut),
        out_rows(per_round(rounds, [](const HaloRound& round) { return round.recv_rows; })),
        out_pieces(piece_ranges(out_rows, cut)),
        outbox(comm, tag, per_round(rounds, [](const HaloRound& round) { return round.owner; }), out_rows,
               cut, send_window) {
    check_rounds(rounds, sum);
    const std::vector<PieceRange>& pieces = inbox.pieces();
    early_pieces = pieces.size();
    while (early_pieces > 0 && pieces[early_pieces - 1].round + 1 == rounds.size() &&
           pieces.size() - early_pieces < depth)
      --early_pieces;
    to_add = early_pieces;
  }
  ~Impl() override {
    if (outbox.done() && added == inbox.pieces().size()) return;
    giving_up = true;
    outbox.give_up();
    drain_until([&] { return outbox.done() && inbox.idle() && inbox.whole() == inbox.pieces().size(); });
  }

  bool advance(bool waiting) override {
    const bool arrived = inbox.advance();
    const auto memory = [&](const Message& message, std::size_t) {
      return outgoing[message.piece - dropped].data() + message.offset;
    };
    const bool sent = outbox.advance(given, memory);
    for (; dropped < std::min(outbox.left(), given); ++dropped) outgoing.pop_front();
    if (waiting) {
      if (giving_up)
        forget();
      else
        work(waiting, [&] { add(); });
    }
    return arrived || sent;
  }
  [[nodiscard]] int quitter() const noexcept override { return inbox.quitter(); }

  /// Adds what has arrived, in order.
  void add() {
    while (added < to_add && inbox.quitter() < 0) {
      const PieceRange& piece = inbox.pieces()[added];
      const index rows = piece.end - piece.begin;
      const index there = inbox.whole() > added ? rows : inbox.rest_rows();
      if (there > added_rows) {
        add_rows(sum, rounds[piece.round].send_rows.data() + piece.begin, inbox.oldest(), added_rows, there);
        added_rows = there;
      }
      if (there < rows) return;
      next_incoming();
    }
  }
  void forget() {
    while (added < inbox.whole()) next_incoming();
  }
  void next_incoming() {
    inbox.take_oldest();
    added_rows = 0;
    ++added;
    inbox.allow(added + depth);
  }

  Tensor sum;
  const std::vector<HaloRound>& rounds;
  std::size_t depth;
  MessageCut cut;
  Inbox inbox;
  std::vector<index> out_rows;
  std::vector<PieceRange> out_pieces;
  Outbox outbox;
  std::deque<Tensor> outgoing;  // pieces dropped, dropped + 1, ..., given - 1
  std::size_t dropped = 0;
  std::size_t given = 0;
  std::size_t early_pieces = 0;  // so many incoming pieces are added before finish()
  std::size_t to_add = 0;        // so many may be added now
  std::size_t added = 0;
  index added_rows = 0;  // of the piece after these
  bool giving_up = false;
};

HaloPush::HaloPush(const Communicator& comm, Tensor& sum, const std::vector<HaloRound>& rounds,
                   const HaloOptions& options)
    : impl_(std::make_unique<Impl>(comm, sum, rounds, options, comm.new_tag())) {
  impl_->inbox.allow(impl_->depth);
  impl_->start_more();
}

HaloPush::~HaloPush() = default;

bool HaloPush::adds_before_finish() const noexcept {
  return impl_->early_pieces > 0;
}

void HaloPush::send(std::size_t round, index begin, index end, Tensor rows) {
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
  impl_->wait_until([&] { return impl_->added >= impl_->early_pieces; });
}

void HaloPush::progress() {
  impl_->progress();
}

void HaloPush::finish() {
  Impl& push = *impl_;
  require<CommunicationError>(push.given == push.out_pieces.size(), "only ", push.given, " of ",
                              push.out_pieces.size(), " pieces were sent");
  push.to_add = push.inbox.pieces().size();
  push.wait_until([&] { return push.added == push.to_add && push.outbox.done(); });
}

}  // namespace sar

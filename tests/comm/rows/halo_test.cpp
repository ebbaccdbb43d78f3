/// Halo exchanges against a naive one in which every rank knows everything: the pattern of who reads what and
/// the values of all rows are functions of numbers that all ranks share.
#include <doctest/doctest.h>

#include <sar/comm/rows/halo.hpp>
#include <sar/core/error.hpp>

#include "support/thrown.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sar {
namespace {

/// Who reads which rows of whom, on all ranks.
struct Pattern {
  std::vector<Index> num_rows;                                // of each rank
  std::vector<std::vector<std::vector<std::int32_t>>> reads;  // [owner][reader]

  Pattern(int size, unsigned seed, Index most_rows) : reads(static_cast<std::size_t>(size)) {
    std::mt19937 random(seed);
    const auto below = [&](Index n) { return static_cast<Index>(random() % static_cast<unsigned>(n)); };
    for (auto& readers : reads) {
      num_rows.push_back(below(4) == 0 ? 0 : 1 + below(most_rows));
      const unsigned density = 1 + static_cast<unsigned>(below(100));
      for (int reader = 0; reader < size; ++reader) {
        const bool none = below(5) == 0;
        const bool all = below(5) == 0;
        auto& rows = readers.emplace_back();
        for (Index row = 0; row < num_rows.back(); ++row)
          if (!none && (random() % 100 < density || all)) rows.push_back(static_cast<std::int32_t>(row));
      }
    }
  }

  [[nodiscard]] const std::vector<std::int32_t>& rows(int owner, int reader) const {
    return reads[static_cast<std::size_t>(owner)][static_cast<std::size_t>(reader)];
  }

  [[nodiscard]] std::vector<HaloRound> rounds(const Communicator& comm) const {
    std::vector<HaloRound> result;
    for (int r = 1; r < comm.size(); ++r) {
      HaloRound round;
      round.reader = (comm.rank() + r) % comm.size();
      round.owner = (comm.rank() - r + comm.size()) % comm.size();
      const auto& sent = rows(comm.rank(), round.reader);
      round.send_rows.assign(sent.begin(), sent.end());
      round.recv_rows = std::ssize(rows(round.owner, comm.rank()));
      result.push_back(std::move(round));
    }
    return result;
  }
};

/// The value of an element of a rank's own rows.
real owned_value(int rank, Index row, Index column) {
  return static_cast<real>(std::sin(0.1 + static_cast<double>(rank * 7919 + row * 131 + column)));
}

Tensor owned_rows(const Pattern& pattern, int rank, const Shape& shape) {
  Tensor owned(shape.with_rows(pattern.num_rows[static_cast<std::size_t>(rank)]));
  for (Index i = 0; i < owned.size(); ++i)
    owned.data()[i] = owned_value(rank, i / owned.row_size(), i % owned.row_size());
  return owned;
}

/// The gradient that `reader` has for the i-th row that it reads of `owner`. A quotient, which the compiler
/// cannot fuse with the addition that follows.
real gradient_value(int reader, int owner, Index i, Index column) {
  const double angle = 0.3 + static_cast<double>(reader * 7919 + owner * 131 + i * 257 + column);
  return static_cast<real>(std::cos(angle) / std::pow(10.0, static_cast<double>((reader + i) % 7) - 3));
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && (a.size() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

/// Lets ranks drift apart, the same way for a seed.
class Jitter {
 public:
  Jitter(const Communicator& comm, unsigned seed) : random_(seed + 97 * static_cast<unsigned>(comm.rank())) {}
  template <class Exchange>
  void operator()(Exchange& exchange) {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 200));
    for (unsigned i = random_() % 3; i > 0; --i) exchange.progress();
  }

 private:
  std::mt19937 random_;
};

struct Case {
  unsigned seed;
  Index width;
  HaloOptions options;
  std::size_t max_message;
};

/// Widths, pieces, depths and message sizes, each with another pattern.
std::vector<Case> cases() {
  std::vector<Case> result;
  unsigned seed = 1;
  for (const Index width : {1, 2, 17, 64, 300})
    for (const Index piece_rows : {0, 1, 7})
      for (const int depth : {1, 2, 3})
        for (const bool merge : {false, true})
          for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{1000}, std::size_t{64}})
            if (++seed % 3 == 0 || width == 17)
              result.push_back({seed, width, {piece_rows, depth, merge}, bytes});
  return result;
}

/// Takes all pieces of a fetch and compares them with what their owners hold.
void check_fetch(HaloFetch& fetch, const Pattern& pattern, const Communicator& comm,
                 const std::vector<HaloRound>& rounds, const Shape& shape, const HaloOptions& options,
                 Jitter& jitter) {
  std::vector<std::vector<Index>> bounds;
  Index total = 0;
  for (const HaloRound& round : rounds) {
    bounds.push_back(piece_bounds(round.recv_rows, options.piece_rows));
    total += round.recv_rows;
  }
  const auto check_rows = [&](const HaloRound& round, Index begin, Index end, const real* values) {
    bool same = true;
    for (Index i = begin; i < end; ++i)
      for (Index j = 0; j < shape.row_size(); ++j)
        same =
            same &&
            *values++ == owned_value(round.owner,
                                     pattern.rows(round.owner, comm.rank())[static_cast<std::size_t>(i)], j);
    CHECK(same);
  };

  jitter(fetch);
  if (options.merge) {
    if (total > 0) {
      auto piece = fetch.next();
      REQUIRE(piece);
      CHECK(piece->round == 0);
      CHECK(piece->begin == 0);
      CHECK(piece->end == total);
      CHECK(piece->rows.shape() == shape.with_rows(total));
      Index offset = 0;
      for (const HaloRound& round : rounds) {
        check_rows(round, 0, round.recv_rows, piece->rows.row(offset));
        offset += round.recv_rows;
      }
    }
  } else {
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      for (std::size_t k = 1; k < bounds[r].size(); ++k) {
        auto piece = fetch.next();
        REQUIRE(piece);
        CHECK(piece->round == r);
        CHECK(piece->begin == bounds[r][k - 1]);
        CHECK(piece->end == bounds[r][k]);
        CHECK(piece->rows.shape() == shape.with_rows(piece->end - piece->begin));
        check_rows(rounds[r], piece->begin, piece->end, piece->rows.data());
        piece.reset();
        jitter(fetch);
      }
    }
  }
  CHECK(!fetch.next());
  fetch.finish();
  CHECK(!fetch.next());
}

/// What HaloPush promises, one addition after the other: all pieces in order, this rank's own rows before the
/// last `depth` pieces of the last round.
Tensor naive_push(const Pattern& pattern, const Communicator& comm, const std::vector<HaloRound>& rounds,
                  const Tensor& start, const Tensor& own, const HaloOptions& options) {
  Tensor sum = start.clone();
  const auto add_own = [&] {
    for (Index i = 0; i < sum.size(); ++i) sum.data()[i] += own.data()[i];
  };
  if (rounds.empty()) add_own();
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const int reader = rounds[r].reader;
    const auto& rows = pattern.rows(comm.rank(), reader);
    const std::vector<Index> bounds = piece_bounds(std::ssize(rows), options.piece_rows);
    const auto pieces = static_cast<int>(bounds.size()) - 1;
    const bool last = r + 1 == rounds.size();
    const int early = last ? std::max(0, pieces - options.depth) : pieces;
    for (int k = 0; k < pieces; ++k) {
      if (last && k == early) add_own();
      for (Index i = bounds[static_cast<std::size_t>(k)]; i < bounds[static_cast<std::size_t>(k) + 1]; ++i)
        for (Index j = 0; j < sum.row_size(); ++j)
          sum.row(rows[static_cast<std::size_t>(i)])[j] += gradient_value(reader, comm.rank(), i, j);
    }
    if (last && pieces == 0) add_own();
  }
  return sum;
}

Tensor gradient_piece(const Communicator& comm, const HaloRound& round, Index begin, Index end,
                      const Shape& shape) {
  Tensor rows(shape.with_rows(end - begin));
  for (Index i = begin; i < end; ++i)
    for (Index j = 0; j < shape.row_size(); ++j)
      rows.row(i - begin)[j] = gradient_value(comm.rank(), round.owner, i, j);
  return rows;
}

Tensor push_all(const Communicator& comm, const std::vector<HaloRound>& rounds, const Tensor& start,
                const Tensor& own, const HaloOptions& options, Jitter& jitter) {
  Tensor sum = start.clone();
  HaloPush push(comm, sum, rounds, options);
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const std::vector<Index> bounds = piece_bounds(rounds[r].recv_rows, options.piece_rows);
    for (std::size_t k = 1; k < bounds.size(); ++k) {
      jitter(push);
      push.send(r, bounds[k - 1], bounds[k],
                gradient_piece(comm, rounds[r], bounds[k - 1], bounds[k], start.shape()));
    }
  }
  if (!push.adds_before_finish()) CHECK(same_bits(sum, start));
  push.receive_all_but_last();
  for (Index i = 0; i < sum.size(); ++i) {
    sum.data()[i] += own.data()[i];
    if (i % 64 == 0) push.progress();
  }
  push.finish();
  return sum;
}

}  // namespace

TEST_CASE("piece_bounds") {
  CHECK(piece_bounds(0, 0) == std::vector<Index>{0});
  CHECK(piece_bounds(0, 3) == std::vector<Index>{0});
  CHECK(piece_bounds(7, 0) == std::vector<Index>{0, 7});
  CHECK(piece_bounds(7, 3) == std::vector<Index>{0, 3, 6, 7});
  CHECK(piece_bounds(6, 3) == std::vector<Index>{0, 3, 6});
  CHECK(piece_bounds(2, 3) == std::vector<Index>{0, 2});
}

TEST_CASE("a fetch brings every row that is read, in order") {
  const Communicator comm = Communicator::world();
  for (const Case& c : cases()) {
    CAPTURE(c.seed);
    comm.set_max_collective_size(c.max_message);
    const Pattern pattern(comm.size(), c.seed, 40);
    const std::vector<HaloRound> rounds = pattern.rounds(comm);
    const Shape shape = c.seed % 2 == 0 ? Shape{1, c.width} : Shape{1, 1, c.width};
    const Tensor owned = owned_rows(pattern, comm.rank(), shape);
    Jitter jitter(comm, c.seed);
    HaloFetch fetch(comm, owned, rounds, c.options);
    check_fetch(fetch, pattern, comm, rounds, shape, c.options, jitter);
  }
}

TEST_CASE("a push adds every gradient, in the promised order, with the same bits again") {
  const Communicator comm = Communicator::world();
  for (const Case& c : cases()) {
    CAPTURE(c.seed);
    comm.set_max_collective_size(c.max_message);
    const Pattern pattern(comm.size(), c.seed, 40);
    const std::vector<HaloRound> rounds = pattern.rounds(comm);
    const Shape shape{1, c.width};
    const Tensor start = owned_rows(pattern, comm.rank(), shape);
    Tensor own = start.clone();
    for (real& value : own.values()) value *= real(1.7);
    Jitter jitter(comm, c.seed);
    Jitter other_jitter(comm, c.seed + 1000);
    const Tensor expected = naive_push(pattern, comm, rounds, start, own, c.options);
    CHECK(same_bits(push_all(comm, rounds, start, own, c.options, jitter), expected));
    CHECK(same_bits(push_all(comm, rounds, start, own, c.options, other_jitter), expected));
  }
}

TEST_CASE("messages larger than the window: many rows") {
  const Communicator comm = Communicator::world();
  for (const Index piece_rows : {0, 1000}) {
    const HaloOptions options{piece_rows, 1, false};
    const Pattern pattern(comm.size(), 5, 40'000);
    const std::vector<HaloRound> rounds = pattern.rounds(comm);
    const Shape shape{1, 70};
    const Tensor owned = owned_rows(pattern, comm.rank(), shape);
    Jitter jitter(comm, 5);
    HaloFetch fetch(comm, owned, rounds, options);
    check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
    CHECK(same_bits(push_all(comm, rounds, owned, owned, options, jitter),
                    naive_push(pattern, comm, rounds, owned, owned, options)));
  }
}

TEST_CASE("rows of zero elements") {
  const Communicator comm = Communicator::world();
  const Pattern pattern(comm.size(), 11, 20);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  const Shape shape{1, 0};
  const Tensor owned = owned_rows(pattern, comm.rank(), shape);
  Jitter jitter(comm, 1);
  const HaloOptions options{3, 1, false};
  HaloFetch fetch(comm, owned, rounds, options);
  check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
  CHECK(push_all(comm, rounds, owned, owned, options, jitter).shape() == owned.shape());
}

TEST_CASE("exchanges under way together, on one communicator and on two") {
  const Communicator comm = Communicator::world();
  const Communicator other = Communicator::world();
  const Pattern pattern(comm.size(), 23, 60);
  const Pattern other_pattern(comm.size(), 24, 60);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  const std::vector<HaloRound> other_rounds = other_pattern.rounds(comm);
  const Shape shape{1, 33};
  const Shape other_shape{1, 5};
  const Tensor owned = owned_rows(pattern, comm.rank(), shape);
  const Tensor other_owned = owned_rows(other_pattern, comm.rank(), other_shape);
  const HaloOptions options{4, 1, false};
  for (const Communicator& second : {comm, other}) {
    Jitter jitter(comm, 3);
    HaloFetch fetch(comm, owned, rounds, options);
    HaloFetch second_fetch(second, other_owned, other_rounds, {5, 2, false});
    check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
    check_fetch(second_fetch, other_pattern, comm, other_rounds, other_shape, {5, 2, false}, jitter);
  }
}

// A rank that waits for rows must go on adding gradients, and one that waits to send gradients must go on
// packing rows.
TEST_CASE("a fetch and a push in alternation") {
  const Communicator comm = Communicator::world();
  for (unsigned seed = 40; seed < 60; ++seed) {
    CAPTURE(seed);
    comm.set_max_collective_size(seed % 2 == 0 ? std::size_t{1} << 30 : 256);
    const Pattern pattern(comm.size(), seed, 50);
    const std::vector<HaloRound> rounds = pattern.rounds(comm);
    const Shape shape{1, 50};
    const HaloOptions fetch_options{6, 1, false};
    const HaloOptions push_options{2, 1, false};
    const Tensor owned = owned_rows(pattern, comm.rank(), shape);
    Tensor sum = owned.clone();
    Jitter jitter(comm, seed);
    HaloFetch fetch(comm, owned, rounds, fetch_options);
    HaloPush push(comm, sum, rounds, push_options);
    for (auto piece = fetch.next(); piece; piece.reset(), piece = fetch.next()) {
      for (Index begin = piece->begin; begin < piece->end; begin += 2) {
        const Index end = std::min(begin + 2, piece->end);
        jitter(push);
        jitter(fetch);
        push.send(piece->round, begin, end, gradient_piece(comm, rounds[piece->round], begin, end, shape));
      }
    }
    fetch.finish();
    push.receive_all_but_last();
    push.finish();
    const Tensor zero = Tensor::zeros(owned.shape());
    CHECK(same_bits(sum, naive_push(pattern, comm, rounds, owned, zero, push_options)));
  }
}

TEST_CASE("memory: depth + 1 pieces of a fetch, and no send buffer of the size of a round") {
  const Communicator comm = Communicator::world();
  const Index rows = 40'000;
  const Shape shape{rows, 64};
  const Tensor owned = Tensor::zeros(shape);
  std::vector<HaloRound> rounds;
  for (int r = 1; r < comm.size(); ++r) {
    HaloRound round{
        (comm.rank() + r) % comm.size(), (comm.rank() - r + comm.size()) % comm.size(), {}, rows / 2};
    for (Index row = 0; row < rows; row += 2) round.send_rows.push_back(static_cast<std::int32_t>(row));
    rounds.push_back(std::move(round));
  }
  const auto row_bytes = static_cast<std::size_t>(shape.row_size()) * sizeof(real);
  const std::size_t window_bytes = 5 << 20;
  for (const int depth : {1, 2}) {
    const Index piece_rows = 4000;
    const std::size_t pieces_bytes =
        static_cast<std::size_t>(piece_rows) * row_bytes * static_cast<std::size_t>(depth + 1);
    reset_peak_bytes();
    const std::size_t before = live_bytes();
    {
      HaloFetch fetch(comm, owned, rounds, {piece_rows, depth, false});
      for (auto piece = fetch.next(); piece; piece.reset(), piece = fetch.next()) std::this_thread::yield();
      fetch.finish();
    }
    CHECK(peak_bytes() - before <= pieces_bytes + window_bytes);
    CHECK(live_bytes() == before);

    reset_peak_bytes();
    Tensor sum = Tensor::zeros(shape);
    {
      HaloPush push(comm, sum, rounds, {piece_rows, depth, false});
      for (std::size_t r = 0; r < rounds.size(); ++r)
        for (Index begin = 0; begin < rows / 2; begin += piece_rows)
          push.send(r, begin, begin + piece_rows, Tensor::zeros(shape.with_rows(piece_rows)));
      push.receive_all_but_last();
      push.finish();
    }
    CHECK(peak_bytes() - before - sum.bytes() <= 2 * pieces_bytes);
    CHECK(live_bytes() == before + sum.bytes());
  }
}

TEST_CASE("statistics count the rows") {
  const Communicator comm = Communicator::world();
  const Pattern pattern(comm.size(), 31, 60);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (const HaloRound& round : rounds) {
    sent += round.send_rows.size() * 9 * sizeof(real);
    received += static_cast<std::uint64_t>(round.recv_rows) * 9 * sizeof(real);
  }
  const Tensor owned = owned_rows(pattern, comm.rank(), {1, 9});
  const HaloOptions options{};
  const CommStats before = comm.stats();
  Jitter jitter(comm, 1);
  {
    HaloFetch fetch(comm, owned, rounds, options);
    check_fetch(fetch, pattern, comm, rounds, {1, 9}, options, jitter);
  }
  const CommStats between = comm.stats();
  CHECK(between.bytes_sent - before.bytes_sent == sent);
  CHECK(between.bytes_received - before.bytes_received == received);
  CHECK(between.wait_seconds >= before.wait_seconds);
  (void)push_all(comm, rounds, owned, owned, options, jitter);
  CHECK(comm.stats().bytes_sent - between.bytes_sent == received);
  CHECK(comm.stats().bytes_received - between.bytes_received == sent);
}

// One rank fails in the middle: nobody hangs, nobody takes the failed exchange's messages for the next one's.
TEST_CASE("an exchange that is given up stops its peers and leaves the communicator usable") {
  const Communicator comm = Communicator::world();
  for (int failing = 0; failing < comm.size(); ++failing) {
    for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{128}}) {
      CAPTURE(failing);
      CAPTURE(bytes);
      comm.set_max_collective_size(bytes);
      Pattern pattern(comm.size(), 70, 1);
      for (std::size_t q = 0; q < pattern.num_rows.size(); ++q) {  // everyone reads everything
        pattern.num_rows[q] = 3000;
        for (auto& rows : pattern.reads[q]) {
          rows.clear();
          for (std::int32_t row = 0; row < 3000; row += 1 + row % 2) rows.push_back(row);
        }
      }
      const std::vector<HaloRound> rounds = pattern.rounds(comm);
      const Shape shape{1, bytes < 1000 ? 3 : 100};
      const Tensor owned = owned_rows(pattern, comm.rank(), shape);
      const HaloOptions options{20, 1, false};  // more pieces than messages are sent ahead
      Jitter jitter(comm, 9);
      struct Stop : std::runtime_error {
        using std::runtime_error::runtime_error;
      };

      const auto broken_fetch = [&](int stop_at) {
        HaloFetch fetch(comm, owned, rounds, options);
        if (comm.rank() == failing && stop_at == 0) throw Stop("enough");
        for (int k = 1; auto piece = fetch.next(); ++k)
          if (comm.rank() == failing && k == stop_at) throw Stop("enough");
        fetch.finish();
      };
      Tensor sum = owned.clone();
      const auto broken_push = [&] {
        HaloPush push(comm, sum, rounds, options);
        for (std::size_t r = 0; r < rounds.size(); ++r) {
          const std::vector<Index> bounds = piece_bounds(rounds[r].recv_rows, options.piece_rows);
          for (std::size_t k = 1; k < bounds.size(); ++k) {
            if (comm.rank() == failing && k == 3) throw Stop("enough");
            push.send(r, bounds[k - 1], bounds[k],
                      gradient_piece(comm, rounds[r], bounds[k - 1], bounds[k], shape));
          }
        }
        push.receive_all_but_last();
        push.finish();
      };
      if (comm.size() == 1) {
        CHECK_THROWS_AS(broken_fetch(0), Stop);
        CHECK_NOTHROW(broken_push());
      } else if (comm.rank() == failing) {
        CHECK_THROWS_AS(broken_fetch(0), Stop);
        CHECK_THROWS_AS(broken_fetch(2), Stop);
        CHECK_THROWS_AS(broken_push(), Stop);
      } else {
        CHECK_THROWS_AS(broken_fetch(0), CommunicationError);
        try {  // small messages may all have left before the rank failed
          broken_fetch(2);
        } catch (const CommunicationError&) {
        }
        CHECK_THROWS_AS(broken_push(), CommunicationError);
      }
      HaloFetch fetch(comm, owned, rounds, options);
      check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
      CHECK(same_bits(push_all(comm, rounds, owned, owned, options, jitter),
                      naive_push(pattern, comm, rounds, owned, owned, options)));
    }
  }
}

// The rank that fails takes no more rows of the exchange that the others wait for, and they none of the one
// that it destroys first.
TEST_CASE("a rank that fails with two exchanges under way stops both") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const Index rows = 4000;
  std::vector<HaloRound> rounds;
  for (int r = 1; r < comm.size(); ++r) {
    HaloRound round{(comm.rank() + r) % comm.size(), (comm.rank() - r + comm.size()) % comm.size(), {}, rows};
    for (std::int32_t row = 0; row < rows; ++row) round.send_rows.push_back(row);
    rounds.push_back(std::move(round));
  }
  const Tensor owned = Tensor::full({rows, 100}, 1);
  Tensor sum = Tensor::zeros(owned.shape());
  const HaloOptions options{20, 1, false};
  const auto take_all = [](HaloFetch& fetch) {
    while (fetch.next()) continue;
    fetch.finish();
  };
  const auto push_ones = [&](HaloPush& push) {
    for (std::size_t r = 0; r < rounds.size(); ++r)
      for (Index begin = 0; begin < rows; begin += 20)
        push.send(r, begin, begin + 20, Tensor::full({20, 100}, 1));
    push.receive_all_but_last();
    push.finish();
  };
  for (int failing = 0; failing < comm.size(); ++failing) {
    CAPTURE(failing);
    ::alarm(60);  // ends a program that hangs
    const auto fail = [&](int when, int now) {
      require<InputError>(comm.rank() != failing || when != now, "enough");
    };
    for (const int when : {0, 1}) {
      CAPTURE(when);
      const auto two_fetches = [&] {
        HaloFetch first(comm, owned, rounds, options);
        HaloFetch second(comm, owned, rounds, options);
        fail(when, 0);
        take_all(first);
        fail(when, 1);
        take_all(second);
      };
      const auto fetch_and_push = [&] {
        HaloOptions later = options;
        later.wait_for_start = true;
        HaloFetch fetch(comm, owned, rounds, later);
        HaloPush push(comm, sum, rounds, later);
        fetch.start(&push);
        fail(when, 0);
        take_all(fetch);
        fail(when, 1);
        push_ones(push);
      };
      for (const auto& body : {std::function<void()>(two_fetches), std::function<void()>(fetch_and_push)})
        try {  // what has left already arrives
          body();
          CHECK(comm.rank() != failing);
        } catch (const InputError&) {
          CHECK(comm.rank() == failing);
        } catch (const CommunicationError&) {
          CHECK(comm.rank() != failing);
        }
      CHECK(test::thrown_by_all<InputError>(comm, [&] { comm.agree(fetch_and_push); }) == "enough");
      std::optional<HaloFetch> outlives;  // the rank that fails gives it up before it meets the others
      const auto started_inside = [&] {
        outlives.emplace(comm, owned, rounds, options);
        fail(when, 0);
        (void)outlives->next();
        fail(when, 1);
        take_all(*outlives);
      };
      CHECK(test::thrown_by_all<InputError>(comm, [&] { comm.agree(started_inside); }) == "enough");
    }
  }
  ::alarm(0);
}

TEST_CASE("in agree, an exchange is finished before the next collective call") {
  const Communicator comm = Communicator::world();
  Pattern pattern(comm.size(), 80, 50);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  const Tensor owned = owned_rows(pattern, comm.rank(), {1, 7});
  const HaloOptions options{10, 1, false};
  const auto with_a_fetch = [&](const std::function<void()>& call) {
    comm.agree([&] {
      HaloFetch fetch(comm, owned, rounds, options);
      call();
    });
  };
  for (const std::function<void()>& call :
       {std::function<void()>([&] { comm.barrier(); }), std::function<void()>([&] { comm.agree([] {}); }),
        std::function<void()>([&] { (void)comm.all_equal(1); }),
        std::function<void()>([&] { const HaloFetch another(comm, owned, rounds, options); })})
    CHECK(test::thrown_by_all<CommunicationError>(comm, [&] {
            with_a_fetch(call);
          }).find("between start() and finish()") != std::string::npos);
  comm.agree([&] {
    for (int i = 0; i < 2; ++i) {
      HaloFetch fetch(comm, owned, rounds, options);
      while (fetch.next()) continue;
      fetch.finish();
      comm.barrier();
    }
  });
  HaloFetch fetch(comm, owned, rounds, options);  // started outside, it may overlap what it likes
  comm.agree([&] { comm.barrier(); });
  while (fetch.next()) continue;
  fetch.finish();
}

TEST_CASE("wrong use is refused") {
  const Communicator comm = Communicator::self();
  Tensor sum = Tensor::zeros({4, 2});
  const std::vector<HaloRound> none;
  HaloPush push(comm, sum, none, {});
  CHECK_THROWS_AS(push.send(0, 0, 4, Tensor::zeros({4, 2})), CommunicationError);
  push.receive_all_but_last();
  push.finish();
  CHECK_THROWS_AS(HaloFetch(comm, Tensor(), none, {}), ShapeError);
  HaloFetch fetch(comm, sum, none, {});
  CHECK(!fetch.next());
  fetch.progress();
  fetch.finish();
}

}  // namespace sar

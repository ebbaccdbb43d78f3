// SPDX-License-Identifier: MIT

/// Halo exchanges against a naive one in which every rank knows everything: the pattern of who reads what and
/// the values of all rows are functions of numbers that all ranks share.
#include <doctest/doctest.h>

#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/core/error.hpp>

#include "support/rows.hpp"
#include "support/thrown.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace sar;
using test::same_bits;

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
    number_halo_rows(comm, result);
    return result;
  }
};

/// Where a row of the halo comes from.
struct Source {
  int owner;
  Index i;  ///< of the rows that are read of it
};
/// Of all rows, in rotation order.
std::vector<Source> sources_of(const std::vector<HaloRound>& rounds) {
  std::vector<Source> sources;
  for (const HaloRound& round : rounds)
    for (Index i = 0; i < round.recv_rows; ++i) sources.push_back({round.owner, i});
  return sources;
}

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

HaloRounds share(const std::vector<HaloRound>& rounds) {
  return std::make_shared<const std::vector<HaloRound>>(rounds);
}

/// How a plan is built.
struct HaloOptions {
  Index stage_rows = 0;
  int depth = 1;

  [[nodiscard]] HaloPlan plan(const std::vector<HaloRound>& rounds) const {
    return plan_halo(share(rounds), stage_rows, depth);
  }
};

struct Case {
  unsigned seed;
  Index width;
  HaloOptions options;
  std::size_t max_message;
};

/// Widths, stages, depths and packet sizes, each with another pattern.
std::vector<Case> cases() {
  std::vector<Case> result;
  unsigned seed = 1;
  for (const Index width : {1, 2, 17, 64, 300})
    for (const Index stage_rows : {0, 1, 7, 50})
      for (const int depth : {1, 2, 3})
        for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{1000}, std::size_t{64}})
          if (++seed % 3 == 0 || width == 17) result.push_back({seed, width, {stage_rows, depth}, bytes});
  return result;
}

/// Takes all stages of a fetch and compares them with what their owners hold.
void check_fetch(HaloFetch& fetch, const Pattern& pattern, const Communicator& comm,
                 const std::vector<HaloRound>& rounds, const Shape& shape, const HaloOptions& options,
                 Jitter& jitter) {
  const HaloPlan plan = options.plan(rounds);
  const std::vector<Source> sources = sources_of(rounds);
  std::size_t row = 0;
  for (const HaloStage& stage : plan.halo) {
    jitter(fetch);
    auto held = fetch.next();
    REQUIRE(held);
    CHECK(held->stage.begin == stage.begin);
    CHECK(held->stage.end == stage.end);
    CHECK(held->rows.shape() == shape.with_rows(stage.size()));
    bool same = true;
    for (Index k = 0; k < stage.size(); ++k, ++row) {
      const auto [owner, i] = sources[row];
      for (Index j = 0; j < shape.row_size(); ++j)
        same = same &&
               held->rows.reals().row(k)[j] == owned_value(owner, pattern.rows(owner, comm.rank())[i], j);
    }
    CHECK(same);
  }
  CHECK(row == sources.size());
  CHECK(!fetch.next());
  fetch.finish();
  CHECK(!fetch.next());
}

/// What HaloPush promises, one addition after the other: stages in order, rounds in order, this rank's own
/// rows after the stages that it adds while it sends.
Tensor naive_push(const Pattern& pattern, const Communicator& comm, const std::vector<HaloRound>& rounds,
                  const Tensor& start, const Tensor& own, const HaloOptions& options) {
  Tensor sum = start.clone();
  const Index early = std::max<Index>(std::ssize(options.plan(rounds).halo) - options.depth, 0);
  const auto stage_of = [&](const HaloRound& round, Index i) {
    return options.stage_rows > 0 ? (round.reader_first + i) / options.stage_rows : 0;
  };
  Index stages = 0;
  for (const HaloRound& round : rounds)
    if (!round.send_rows.empty())
      stages = std::max(stages, stage_of(round, std::ssize(round.send_rows) - 1) + 1);
  for (Index stage = 0; stage <= stages; ++stage) {
    if (stage == std::min(early, stages))
      for (Index i = 0; i < sum.size(); ++i) sum.data()[i] += own.data()[i];
    for (const HaloRound& round : rounds)
      for (Index i = 0; i < std::ssize(round.send_rows); ++i)
        for (Index j = 0; stage_of(round, i) == stage && j < sum.row_size(); ++j)
          sum.row(pattern.rows(comm.rank(), round.reader)[i])[j] +=
              gradient_value(round.reader, comm.rank(), i, j);
  }
  return sum;
}

/// This rank's gradients for the rows of a stage.
Tensor stage_gradients(const Communicator& comm, const std::vector<HaloRound>& rounds, const HaloStage& stage,
                       const Shape& shape) {
  Tensor gradients(shape.with_rows(stage.size()));
  const std::vector<Source> sources = sources_of(rounds);
  for (Index k = 0; k < stage.size(); ++k) {
    const auto [owner, i] = sources[stage.begin + k];
    for (Index j = 0; j < shape.row_size(); ++j)
      gradients.row(k)[j] = gradient_value(comm.rank(), owner, i, j);
  }
  return gradients;
}

/// Sends all stages, then adds own rows.
Tensor push_all(const Communicator& comm, const std::vector<HaloRound>& rounds, const Tensor& start,
                const Tensor& own, const HaloOptions& options, Jitter& jitter) {
  Tensor sum = start.clone();
  const HaloPlan plan = options.plan(rounds);
  HaloPush push(comm, sum.shape(), plan);
  for (const HaloStage& stage : plan.halo) {
    jitter(push);
    push.send(stage_gradients(comm, rounds, stage, start.shape()), sum);
  }
  if (std::ssize(plan.halo) <= options.depth) CHECK(same_bits(sum, start));
  for (Index i = 0; i < sum.size(); ++i) {
    sum.data()[i] += own.data()[i];
    if (i % 64 == 0) push.progress();
  }
  push.finish(sum);
  return sum;
}

}  // namespace

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
    HaloFetch fetch(comm, owned, c.options.plan(rounds));
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
  for (const Index stage_rows : {0, 1000}) {
    const HaloOptions options{stage_rows};
    const Pattern pattern(comm.size(), 5, 40'000);
    const std::vector<HaloRound> rounds = pattern.rounds(comm);
    const Shape shape{1, 70};
    const Tensor owned = owned_rows(pattern, comm.rank(), shape);
    Jitter jitter(comm, 5);
    HaloFetch fetch(comm, owned, options.plan(rounds));
    check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
    CHECK(same_bits(push_all(comm, rounds, owned, owned, options, jitter),
                    naive_push(pattern, comm, rounds, owned, owned, options)));
  }
}

TEST_CASE("rows travel in the format of the plan") {
  const Communicator comm = Communicator::world();
  const Pattern pattern(comm.size(), 3, 50);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  Tensor owned(Shape{pattern.num_rows[comm.rank()], 9});
  for (Index i = 0; i < owned.size(); ++i) owned.data()[i] = static_cast<real>(i % 128);  // exact in bf16
  const auto there_and_back = [&](const WireFormatPtr& wire) {
    const HaloPlan plan = plan_halo(share(rounds), 7, 1, wire);
    Tensor sum = owned.clone();
    const std::uint64_t before = comm.stats().bytes_sent;
    HaloFetch fetch(comm, owned, plan);
    HaloPush push(comm, sum.shape(), plan);
    while (auto held = fetch.next()) push.send(std::move(held->rows), sum);
    fetch.finish();
    push.finish(sum);
    return std::pair(sum, (comm.stats().bytes_sent - before) / wire->bytes(wire->group()));
  };
  const auto [sum, values] = there_and_back(stored_format(NumberType::reals));
  const auto [rounded_sum, rounded_values] = there_and_back(stored_format(NumberType::bfloat16));
  CHECK(same_bits(sum, rounded_sum));
  CHECK(values == rounded_values);
  for (Index i = 0; i < owned.num_rows(); ++i) owned.row(i)[i % 9] = 127;  // whole multiples of 1
  Array<Index> ids(owned.num_rows());
  const auto int8 = make_int8_format(9, {.owned_ids = {ids.data(), ids.size()}});
  CHECK(same_bits(there_and_back(stored_format(NumberType::reals)).first, there_and_back(int8).first));
}

TEST_CASE("exact sums keep what doubles lose") {
  const Communicator comm = Communicator::world();
  const Pattern pattern(comm.size(), 3, 50);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  const Shape shape{pattern.num_rows[comm.rank()], 9};
  const double small = 0x1p-80;
  TypedRows sum = TypedRows(shape, NumberType::exact_sums);
  std::fill_n(sum.exact_sums(), sum.size(), ExactSum{1, 0});
  Tensor readers = Tensor::zeros(shape);
  const HaloPlan plan = plan_halo(share(rounds), 7, 1, stored_format(NumberType::exact_sums));
  HaloPush push(comm, shape, plan), count(comm, shape, plan_halo(share(rounds), 7));
  for (const HaloStage& stage : plan.halo) {
    TypedRows rows = sum.other(stage.size());
    std::fill_n(rows.exact_sums(), rows.size(), ExactSum{1, small});
    push.send(std::move(rows), sum);
    count.send(Tensor::full(shape.with_rows(stage.size()), 1), readers);
  }
  push.finish(sum);
  count.finish(readers);
  bool equal = true;
  for (Index i = 0; i < readers.size(); ++i) {
    const double n = static_cast<double>(readers.data()[i]);
    equal &= sum.exact_sums()[i].high == 1 + n && sum.exact_sums()[i].low == n * small;
  }
  CHECK(equal);
}

// Rank 0 owns rows that all others read. The last rank takes none of its rows until rank 1 has all of its
// own: it has posted receives for two stages only, so that messages to it wait at rank 0, between those to
// rank 1.
TEST_CASE("a reader who is late does not keep the others waiting") {
  const Communicator comm = Communicator::world();
  if (comm.size() < 3) return;
  const Index rows = 40'000, width = 64;
  const bool owner = comm.rank() == 0;
  std::vector<HaloRound> rounds;
  for (int r = 1; r < comm.size(); ++r) {
    HaloRound round{.reader = (comm.rank() + r) % comm.size(),
                    .owner = (comm.rank() - r + comm.size()) % comm.size(),
                    .send_rows = {}};
    round.recv_rows = round.owner == 0 ? rows : 0;
    for (std::int32_t row = 0; owner && row < rows; ++row) round.send_rows.push_back(row);
    rounds.push_back(std::move(round));
  }
  number_halo_rows(comm, rounds);
  const Tensor owned = Tensor::full({owner ? rows : 0, width}, 1);
  ::alarm(60);  // ends a program that hangs
  HaloFetch fetch(comm, owned, plan_halo(share(rounds), rows / 40));
  const int last = comm.size() - 1;
  char told = 0;
  if (comm.rank() == last) MPI_Recv(&told, 1, MPI_CHAR, 1, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  Index taken = 0;
  for (auto held = fetch.next(); held; held.reset(), held = fetch.next()) taken += held->stage.size();
  CHECK(taken == (owner ? 0 : rows));
  if (comm.rank() == 1) MPI_Send(&told, 1, MPI_CHAR, last, 77, MPI_COMM_WORLD);
  fetch.finish();
  ::alarm(0);
}

TEST_CASE("a push can take the maximum") {
  const Communicator comm = Communicator::world();
  const Pattern pattern(comm.size(), 29, 40);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  const HaloPlan plan = plan_halo(share(rounds), 5);
  const Tensor start = owned_rows(pattern, comm.rank(), {1, 3});
  Tensor sum = start.clone();
  HaloPush push(comm, sum.shape(), plan, HaloStart::now, ReduceOp::max);
  for (const HaloStage& stage : plan.halo)
    push.send(stage_gradients(comm, rounds, stage, start.shape()), sum);
  push.finish(sum);
  Tensor expected = start.clone();
  for (const HaloRound& round : rounds) {
    const auto& rows = pattern.rows(comm.rank(), round.reader);
    for (Index i = 0; i < std::ssize(rows); ++i)
      for (Index j = 0; j < 3; ++j) {
        real& value = expected.row(rows[i])[j];
        value = std::max(value, gradient_value(round.reader, comm.rank(), i, j));
      }
  }
  CHECK(same_bits(sum, expected));
}

TEST_CASE("rows of zero elements") {
  const Communicator comm = Communicator::world();
  const Pattern pattern(comm.size(), 11, 20);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  const Shape shape{1, 0};
  const Tensor owned = owned_rows(pattern, comm.rank(), shape);
  Jitter jitter(comm, 1);
  const HaloOptions options{3};
  HaloFetch fetch(comm, owned, options.plan(rounds));
  check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
  CHECK(push_all(comm, rounds, owned, owned, options, jitter).shape() == owned.shape());
}

TEST_CASE("exchanges in flight together, on one communicator and on two") {
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
  const HaloOptions options{4};
  for (const Communicator& second : {comm, other}) {
    Jitter jitter(comm, 3);
    HaloFetch fetch(comm, owned, options.plan(rounds));
    HaloFetch second_fetch(second, other_owned, plan_halo(share(other_rounds), 5, 2));
    check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
    check_fetch(second_fetch, other_pattern, comm, other_rounds, other_shape, {5, 2}, jitter);
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
    const HaloOptions fetch_options{6};
    const HaloOptions push_options{2};
    const Tensor owned = owned_rows(pattern, comm.rank(), shape);
    Tensor sum = owned.clone();
    Jitter jitter(comm, seed);
    HaloFetch fetch(comm, owned, fetch_options.plan(rounds));
    HaloPush push(comm, sum.shape(), push_options.plan(rounds));
    for (auto held = fetch.next(); held; held.reset(), held = fetch.next()) {
      HaloStage part = held->stage;
      for (; part.begin < held->stage.end; part.begin += 2) {
        part.end = std::min(part.begin + 2, held->stage.end);
        jitter(push);
        jitter(fetch);
        push.send(stage_gradients(comm, rounds, part, shape), sum);
      }
    }
    push.finish(sum);
    fetch.finish();
    const Tensor zero = Tensor::zeros(owned.shape());
    CHECK(same_bits(sum, naive_push(pattern, comm, rounds, owned, zero, push_options)));
  }
}

TEST_CASE("memory: depth + 1 stages of a fetch, and no send buffer of the size of a round") {
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
  number_halo_rows(comm, rounds);
  const HaloRounds shared = share(rounds);  // their lists of rows are not memory of an exchange
  const auto row_bytes = static_cast<std::size_t>(shape.row_size()) * sizeof(real);
  const std::size_t window_bytes = 5 << 20;
  for (const int depth : {1, 2}) {
    const Index stage_rows = 4000;
    const std::size_t stages_bytes = stage_rows * row_bytes * (depth + 1);
    reset_peak_bytes();
    const std::size_t before = live_bytes();
    {
      HaloFetch fetch(comm, owned, plan_halo(shared, stage_rows, depth));
      for (auto held = fetch.next(); held; held.reset(), held = fetch.next()) std::this_thread::yield();
      fetch.finish();
    }
    CHECK(peak_bytes() - before <= stages_bytes + window_bytes);
    CHECK(live_bytes() == before);

    reset_peak_bytes();
    Tensor sum = Tensor::zeros(shape);
    {
      const HaloPlan plan = plan_halo(shared, stage_rows, depth);
      HaloPush push(comm, sum.shape(), plan);
      for (const HaloStage& stage : plan.halo) push.send(Tensor::zeros(shape.with_rows(stage.size())), sum);
      push.finish(sum);
    }
    CHECK(peak_bytes() - before - sum.bytes() <= 2 * stages_bytes);
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
    HaloFetch fetch(comm, owned, options.plan(rounds));
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
      const HaloOptions options{20};  // more stages than packets are sent ahead
      Jitter jitter(comm, 9);
      struct Stop : std::runtime_error {
        using std::runtime_error::runtime_error;
      };

      const auto broken_fetch = [&](int stop_at) {
        HaloFetch fetch(comm, owned, options.plan(rounds));
        if (comm.rank() == failing && stop_at == 0) throw Stop("enough");
        for (int k = 1; auto piece = fetch.next(); ++k)
          if (comm.rank() == failing && k == stop_at) throw Stop("enough");
        fetch.finish();
      };
      Tensor sum = owned.clone();
      const auto broken_push = [&] {
        const HaloPlan plan = options.plan(rounds);
        HaloPush push(comm, sum.shape(), plan);
        for (const HaloStage& stage : plan.halo) {
          if (comm.rank() == failing && stage.begin == 2 * options.stage_rows) throw Stop("enough");
          push.send(stage_gradients(comm, rounds, stage, shape), sum);
        }
        push.finish(sum);
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
      HaloFetch fetch(comm, owned, options.plan(rounds));
      check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
      CHECK(same_bits(push_all(comm, rounds, owned, owned, options, jitter),
                      naive_push(pattern, comm, rounds, owned, owned, options)));
    }
  }
}

// The rank that fails takes no more rows of the exchange that the others wait for, and they none of the one
// that it destroys first.
TEST_CASE("a rank that fails with two exchanges in flight stops both") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;
  const Index rows = 4000;
  std::vector<HaloRound> rounds;
  for (int r = 1; r < comm.size(); ++r) {
    HaloRound round{(comm.rank() + r) % comm.size(), (comm.rank() - r + comm.size()) % comm.size(), {}, rows};
    for (std::int32_t row = 0; row < rows; ++row) round.send_rows.push_back(row);
    rounds.push_back(std::move(round));
  }
  number_halo_rows(comm, rounds);
  const Tensor owned = Tensor::full({rows, 100}, 1);
  Tensor sum = Tensor::zeros(owned.shape());
  const HaloOptions options{20};
  const auto take_all = [](HaloFetch& fetch) {
    while (fetch.next()) continue;
    fetch.finish();
  };
  const auto push_ones = [&](HaloPush& push) {
    for (std::size_t stages = rounds.size() * rows / 20; stages > 0; --stages)
      push.send(Tensor::full({20, 100}, 1), sum);
    push.finish(sum);
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
        HaloFetch first(comm, owned, options.plan(rounds));
        HaloFetch second(comm, owned, options.plan(rounds));
        fail(when, 0);
        take_all(first);
        fail(when, 1);
        take_all(second);
      };
      const auto fetch_and_push = [&] {
        HaloFetch fetch(comm, owned, options.plan(rounds), HaloStart::later);
        HaloPush push(comm, sum.shape(), options.plan(rounds), HaloStart::later);
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
        outlives.emplace(comm, owned, options.plan(rounds));
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

TEST_CASE("other collective calls may be made while an exchange is in flight, and ranks may fail there") {
  const Communicator comm = Communicator::world();
  const Pattern pattern(comm.size(), 80, 50);
  const std::vector<HaloRound> rounds = pattern.rounds(comm);
  const Shape shape{1, 7};
  const Tensor owned = owned_rows(pattern, comm.rank(), shape);
  const HaloOptions options{10};
  Jitter jitter(comm, 3);
  const auto fetch_all = [&](HaloFetch& fetch) {
    check_fetch(fetch, pattern, comm, rounds, shape, options, jitter);
  };
  const std::vector<std::function<void()>> calls{
      [&] { comm.barrier(); }, [&] { comm.agree([] {}); }, [&] { CHECK(comm.all_equal(1)); },
      [&] { CHECK(comm.all_gather(comm.rank()).size() == static_cast<std::size_t>(comm.size())); },
      [&] {
        HaloFetch another(comm, owned, options.plan(rounds));
        fetch_all(another);
      }};
  ::alarm(60);  // ends a program that hangs
  for (const auto& call : calls) {
    const auto around = [&](int failing, int when) {
      const auto fail = [&](int now) {
        require<InputError>(comm.rank() != failing || when != now, "enough");
      };
      HaloFetch fetch(comm, owned, options.plan(rounds));
      fail(0);
      call();
      fail(1);
      fetch_all(fetch);
    };
    around(-1, 0);
    comm.agree([&] { around(-1, 0); });
    for (int failing = 0; failing < comm.size(); ++failing)
      for (const int when : {0, 1})
        CHECK(test::thrown_by_all<InputError>(comm, [&] {
                comm.agree([&] { around(failing, when); });
              }).find("enough") != std::string::npos);
  }
  ::alarm(0);
}

TEST_CASE("wrong use is refused") {
  const Communicator comm = Communicator::self();
  Tensor sum = Tensor::zeros({4, 2});
  const std::vector<HaloRound> none;
  HaloPush push(comm, sum.shape(), plan_halo(share(none)));
  CHECK_THROWS_AS(push.send(Tensor::zeros({4, 2}), sum), CommunicationError);
  push.finish(sum);
  CHECK_THROWS_AS(HaloFetch(comm, Tensor(), plan_halo(share(none))), ShapeError);
  HaloFetch fetch(comm, sum, plan_halo(share(none)));
  CHECK(!fetch.next());
  fetch.progress();
  fetch.finish();
}

// SPDX-License-Identifier: MIT

/// Collectives against what every rank can compute alone; messages cut to a few bytes.
#include <doctest/doctest.h>

#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/core/error.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace sar;

namespace {

/// All collectives run with the usual largest message and with tiny ones.
template <class Body>
void for_message_sizes(const Body& body) {
  for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{64}, std::size_t{1}}) {
    CAPTURE(bytes);
    const Communicator comm = Communicator::world();
    comm.set_max_collective_size(bytes);
    body(comm);
  }
}

/// What rank q gives to rank p as element i.
std::int64_t value(int q, int p, Index i) {
  return 1'000'000 * q + 1000 * p + i;
}

/// How many elements; some ranks give none.
Index count(int q, int p) {
  return (q + p) % 3 == 0 ? 0 : (5 * q + 3 * p + 1) % 97;
}

}  // namespace

TEST_CASE_TEMPLATE("all_reduce", T, float, double, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t) {
  for_message_sizes([](const Communicator& comm) {
    const auto ranks = static_cast<T>(comm.size());
    for (const int n : {0, 1, 7, 100}) {
      std::vector<T> sum, max, min;
      for (int i = 0; i < n; ++i) {
        const T mine = static_cast<T>((comm.rank() + i) % comm.size());
        sum.push_back(static_cast<T>(mine + static_cast<T>(i)));
        max.push_back(mine);
        min.push_back(mine);
      }
      comm.all_reduce(std::span<T>(sum));
      comm.all_reduce(std::span<T>(max), ReduceOp::max);
      comm.all_reduce(std::span<T>(min), ReduceOp::min);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        CHECK(sum[i] == ranks * (ranks - 1) / 2 + ranks * static_cast<T>(i));
        CHECK(max[i] == ranks - 1);
        CHECK(min[i] == 0);
      }
    }
    CHECK(comm.all_reduce(T{2}) == 2 * ranks);
  });
}

TEST_CASE("all_reduce gives every rank the same bits, and the same ones again") {
  const Communicator comm = Communicator::world();
  for (const int n : {1, 5, 1000, 100'000}) {
    std::vector<float> values, again;
    for (int i = 0; i < n; ++i)
      values.push_back(static_cast<float>(std::sin(1.0 + i + 31.0 * comm.rank()) *
                                          std::pow(10.0, (i + comm.rank()) % 9 - 4)));
    again = values;
    comm.all_reduce(std::span(values));
    comm.all_reduce(std::span(again));
    CHECK(std::memcmp(values.data(), again.data(), values.size() * sizeof(float)) == 0);
    const std::vector<float> all = comm.all_gather(std::span<const float>(values));
    for (int q = 0; q < comm.size(); ++q)
      CHECK(std::memcmp(values.data(), all.data() + static_cast<std::size_t>(q * n),
                        values.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("all_gather of different numbers of values") {
  for_message_sizes([](const Communicator& comm) {
    std::vector<std::int64_t> mine;
    for (Index i = 0; i < count(comm.rank(), 0); ++i) mine.push_back(value(comm.rank(), 0, i));
    const std::vector<std::int64_t> all = comm.all_gather(std::span<const std::int64_t>(mine));
    std::vector<std::int64_t> expected;
    for (int q = 0; q < comm.size(); ++q)
      for (Index i = 0; i < count(q, 0); ++i) expected.push_back(value(q, 0, i));
    CHECK(all == expected);
    CHECK(comm.all_gather(std::span<const double>()).empty());

    const std::vector<int> ranks = comm.all_gather(comm.rank());
    for (int q = 0; q < comm.size(); ++q) CHECK(ranks[static_cast<std::size_t>(q)] == q);
  });
}

TEST_CASE("broadcast") {
  for_message_sizes([](const Communicator& comm) {
    for (int root = 0; root < comm.size(); ++root) {
      std::vector<std::int64_t> values(40, comm.rank());
      if (comm.rank() == root) std::iota(values.begin(), values.end(), 7 * root);
      comm.broadcast(std::span(values), root);
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(values[i] == 7 * root + static_cast<std::int64_t>(i));
      const std::string text = comm.broadcast(comm.rank() == root ? std::string(100, 'a') + "z" : "", root);
      CHECK(text == std::string(100, 'a') + "z");
      CHECK(comm.broadcast(comm.rank() == root ? "" : "not this", root).empty());
    }
  });
  const Communicator comm = Communicator::world();
  std::vector<int> values(1);
  CHECK_THROWS_AS(comm.broadcast(std::span(values), comm.size()), CommunicationError);
}

TEST_CASE("all_to_all_v") {
  for_message_sizes([](const Communicator& comm) {
    std::vector<std::int64_t> values;
    std::vector<Index> counts;
    for (int p = 0; p < comm.size(); ++p) {
      counts.push_back(count(comm.rank(), p));
      for (Index i = 0; i < counts.back(); ++i) values.push_back(value(comm.rank(), p, i));
    }
    const auto received = comm.all_to_all_v(std::span<const std::int64_t>(values), counts);
    std::vector<std::int64_t> expected;
    for (int q = 0; q < comm.size(); ++q) {
      CHECK(received.counts[static_cast<std::size_t>(q)] == count(q, comm.rank()));
      for (Index i = 0; i < count(q, comm.rank()); ++i) expected.push_back(value(q, comm.rank(), i));
    }
    CHECK(received.values == expected);

    const std::vector<Index> none(static_cast<std::size_t>(comm.size()), 0);
    CHECK(comm.all_to_all_v(std::span<const double>(), none).values.empty());
  });
  const Communicator comm = Communicator::world();
  const std::vector<Index> too_many(static_cast<std::size_t>(comm.size()) + 1, 0);
  CHECK_THROWS_AS((void)comm.all_to_all_v(std::span<const double>(), too_many), CommunicationError);
  const std::vector<Index> wrong(static_cast<std::size_t>(comm.size()), 2);
  CHECK_THROWS_AS((void)comm.all_to_all_v(std::span<const double>(), wrong), CommunicationError);
}

TEST_CASE("all_to_all of counts, most of which are 0") {
  const Communicator comm = Communicator::world();
  const int size = comm.size(), me = comm.rank();
  // Counts of consecutive calls differ, and some ranks are late: none may receive a count of the next call.
  for (int call = 0; call < 200; ++call) {
    const auto sent = [&](int q, int p) {
      return call % 4 == 0 || (q * 7 + p * 3 + call) % 5 == 0 ? Index{1} + q + 100 * p + 10'000 * call : 0;
    };
    std::vector<Index> counts, expected;
    for (int q = 0; q < size; ++q) {
      counts.push_back(sent(me, q));
      expected.push_back(sent(q, me));
    }
    if (call % size == me) std::this_thread::sleep_for(std::chrono::microseconds(200));
    CHECK(comm.all_to_all(counts) == expected);
  }
  CHECK(comm.all_to_all(std::vector<Index>(static_cast<std::size_t>(size), 0)) ==
        std::vector<Index>(static_cast<std::size_t>(size), 0));
  const std::vector<Index> too_many(static_cast<std::size_t>(size) + 1, 0);
  const std::vector<Index> negative(static_cast<std::size_t>(size), -1);
  CHECK_THROWS_AS((void)comm.all_to_all(too_many), CommunicationError);
  CHECK_THROWS_AS((void)comm.all_to_all(negative), CommunicationError);
}

TEST_CASE("all_to_all_v of ranks that know what arrives") {
  for_message_sizes([](const Communicator& comm) {
    std::vector<std::int64_t> values, expected;
    std::vector<Index> counts, arriving;
    for (int p = 0; p < comm.size(); ++p) {
      counts.push_back(count(comm.rank(), p));
      arriving.push_back(count(p, comm.rank()));
      for (Index i = 0; i < counts.back(); ++i) values.push_back(value(comm.rank(), p, i));
      for (Index i = 0; i < arriving.back(); ++i) expected.push_back(value(p, comm.rank(), i));
    }
    for (int again = 0; again < 3; ++again)
      CHECK(comm.all_to_all_v(std::span<const std::int64_t>(values), counts, arriving) == expected);
    counts.back() += 1;
    CHECK_THROWS_AS((void)comm.all_to_all_v(std::span<const std::int64_t>(values), counts, arriving),
                    CommunicationError);
  });
}

TEST_CASE("agree: the failure of one rank is the failure of all") {
  const Communicator comm = Communicator::world();
  CHECK_NOTHROW(comm.agree([] {}));
  for (int failing = 0; failing < comm.size(); ++failing) {
    const auto on_failing_rank = [&](auto&& raise) {
      return [&comm, failing, raise] {
        if (comm.rank() == failing) raise();
      };
    };
    const std::string name = comm.size() == 1 ? "" : "rank " + std::to_string(failing) + ": ";
    const std::string text = std::string(700, '-') + std::to_string(comm.rank());
    const std::string expected = name + std::string(700, '-') + std::to_string(failing);
    CHECK_THROWS_WITH_AS(comm.agree(on_failing_rank([&] { throw InputError(text); })), expected.c_str(),
                         InputError);
    CHECK_THROWS_WITH_AS(comm.agree(on_failing_rank([&] { throw ShapeError(text); })), expected.c_str(),
                         ShapeError);
    CHECK_THROWS_WITH_AS(comm.agree(on_failing_rank([&] { throw std::runtime_error(text); })),
                         expected.c_str(), Error);
    CHECK_THROWS_WITH_AS(comm.agree(on_failing_rank([] { throw std::bad_alloc(); })),
                         (name + "no memory left").c_str(), MemoryError);
    CHECK_THROWS_AS(comm.agree(on_failing_rank([] { throw 1; })), Error);
    CHECK(comm.all_reduce(1) == comm.size());
  }
  const auto all_fail = [&] {
    if (comm.rank() % 2 == 0) throw InputError("even");
    throw ShapeError("odd");
  };
  CHECK_THROWS_WITH_AS(comm.agree(all_fail), comm.size() == 1 ? "even" : "rank 0: even", InputError);
  CHECK_THROWS_WITH_AS(comm.agree([] { throw InputError("all alike"); }), "all alike", InputError);
  CHECK(comm.all_reduce(1) == comm.size());
}

TEST_CASE("agree: a rank may fail between any two collective calls") {
  const Communicator comm = Communicator::world();
  const std::vector<Index> one_each(static_cast<std::size_t>(comm.size()), 1);
  constexpr int places = 9;
  for (int failing = 0; failing < comm.size(); ++failing) {
    for (int place = 0; place < places; ++place) {
      CAPTURE(place);
      int reached = 0;
      const auto here = [&] {
        if (reached++ == place && comm.rank() == failing) throw InputError("stop");
      };
      const std::string expected = comm.size() == 1 ? "stop" : "rank " + std::to_string(failing) + ": stop";
      const auto body = [&] {
        here();
        comm.barrier();
        here();
        (void)comm.all_reduce(1);
        here();
        (void)comm.all_gather(std::span<const Index>(one_each));
        here();
        comm.agree([&] {
          here();
          (void)comm.broadcast(std::string("text"), 0);
          here();
        });
        here();
        (void)comm.all_to_all_v(std::span<const Index>(one_each), one_each);
        here();
        (void)comm.all_equal(3);
        here();
      };
      CHECK_THROWS_WITH_AS(comm.agree(body), expected.c_str(), InputError);
      CHECK(comm.all_reduce(1) == comm.size());
    }
  }
}

TEST_CASE("agree: nested calls, values, and failures that are caught") {
  const Communicator comm = Communicator::world();
  CHECK(comm.agree([&] { return comm.all_reduce(1); }) == comm.size());
  const std::string name = comm.size() == 1 ? "" : "rank 0: ";
  const auto fail_on_rank_0 = [&] {
    if (comm.rank() == 0) throw InputError("first");
    comm.barrier();
  };
  comm.agree([&] {  // caught by all
    CHECK_THROWS_WITH_AS(comm.agree(fail_on_rank_0), (name + "first").c_str(), InputError);
    CHECK(comm.all_reduce(1) == comm.size());
  });
  // Swallowed by those that were in an inner call when a rank left the outer one: all leave it.
  CHECK_THROWS_WITH_AS(comm.agree([&] {
    if (comm.rank() == 0) throw InputError("first");
    try {
      comm.agree([&] { comm.barrier(); });
    } catch (const InputError&) {
    }
    comm.barrier();
  }),
                       (name + "first").c_str(), InputError);
  CHECK(comm.all_equal(comm.size()));
  CHECK(comm.all_equal(comm.rank()) == (comm.size() == 1));
  // What is wrong with the arguments of a call is told like everything else.
  const std::vector<Index> none;
  CHECK_THROWS_AS(comm.agree([&] {
    if (comm.rank() == 0)
      (void)comm.all_to_all_v(std::span<const double>(), none);
    else
      (void)comm.all_to_all_v(std::span<const double>(),
                              std::vector<Index>(static_cast<std::size_t>(comm.size()), 0));
  }),
                  CommunicationError);
  CHECK(comm.all_reduce(1) == comm.size());
}

TEST_CASE("handles share a duplicate of the caller's communicator") {
  const Communicator world = Communicator::world();
  const Communicator copy = world;  // NOLINT: a second handle is the point
  CHECK(copy.handle() == world.handle());
  const Communicator other(world.handle());
  CHECK(other.handle() != world.handle());
  CHECK(other.rank() == world.rank());
  int same = 0;
  MPI_Comm_compare(other.handle(), MPI_COMM_WORLD, &same);
  CHECK(same == MPI_CONGRUENT);

  const Communicator self = Communicator::self();
  CHECK(self.size() == 1);
  CHECK(self.all_reduce(5) == 5);
  CHECK(self.all_gather(world.rank()) == std::vector<int>{world.rank()});
  CHECK_THROWS_AS(Communicator(MPI_COMM_NULL), CommunicationError);
  CHECK_THROWS_AS(world.set_max_collective_size(0), CommunicationError);
}

TEST_CASE("errors of MPI are exceptions that carry its text") {
  const Communicator comm = Communicator::world();
  const int value = 0;
  try {
    check_mpi(MPI_Send(&value, 1, MPI_INT, comm.size() + 5, 0, comm.handle()), "MPI_Send");
    FAIL("MPI_Send to a rank that does not exist succeeded");
  } catch (const CommunicationError& error) {
    const std::string text = error.what();
    CHECK(text.find("MPI_Send failed") == 0);
    CHECK(text.find("rank") != std::string::npos);
  }
}

TEST_CASE("statistics count what goes to other ranks") {
  const Communicator comm = Communicator::world();
  std::vector<double> values(10, 1.0);
  const bool alone = comm.size() == 1;
  comm.all_reduce(std::span(values));
  CHECK(comm.stats().bytes_sent == (alone ? 0 : 80));
  CHECK(comm.stats().bytes_received == (alone ? 0 : 80));
  const CommStats before = comm.stats();
  std::vector<double> one_each(static_cast<std::size_t>(comm.size()), 1.0);
  (void)comm.all_to_all_v(std::span<const double>(one_each), std::vector<Index>(one_each.size(), 1));
  CHECK(comm.stats().bytes_sent - before.bytes_sent == 8 * static_cast<std::uint64_t>(comm.size() - 1));
  CHECK(comm.stats().wait_seconds >= before.wait_seconds);
  comm.add_to_stats({.bytes_sent = 1, .bytes_received = 2, .wait_seconds = 3});
  CHECK(comm.stats().wait_seconds >= 3);
}

TEST_CASE("an Environment leaves MPI to a host that initialized it") {
  {
    const Environment second;
    int initialized = 0;
    MPI_Initialized(&initialized);
    CHECK(initialized == 1);
  }
  int finalized = 0;
  MPI_Finalized(&finalized);
  CHECK(finalized == 0);
  CHECK(Communicator::world().all_reduce(1) == Communicator::world().size());
}

TEST_CASE("the ranks of a node share its processors") {
  const Communicator comm = Communicator::world();
  const int threads = default_num_threads(comm);
  CHECK(threads >= 1);
  CHECK(default_num_threads(Communicator::self()) >= threads);
}

TEST_CASE("a fork cannot communicate, and leaves the communicators of its parent as they are") {
  const Communicator comm = Communicator::world();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto is_refused = [](const auto& call) {
      try {
        call();
      } catch (const CommunicationError& error) {
        return std::string(error.what()).find("in a fork of the process that uses MPI") != std::string::npos;
      }
      return false;
    };
    const bool refused = is_refused([&] { (void)comm.all_reduce(1); }) &&
                         is_refused([&] { comm.agree([] {}); }) &&
                         is_refused([] { (void)Communicator::world(); });
    { const Communicator last = std::move(const_cast<Communicator&>(comm)); }  // frees nothing
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(comm.all_reduce(1) == comm.size());
}

// SPDX-License-Identifier: MIT

/// A failure on each rank at any place of each collective call is the same error on all ranks. Afterwards the
/// same objects give the bits that they give without the failure.
#include "failures/calls.hpp"
#include "failures/collective_names.hpp"
#include "failures/injection.hpp"
#include "graph/data/dataset_files.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/core/memory/arena.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>

namespace sar::test {
namespace {

/// Ends the program when a call does not come back.
class Watchdog {
 public:
  Watchdog(const std::string& name, int failing, std::int64_t number) {
    std::snprintf(text_.data(), text_.size(),
                  "%s does not come back: rank %d fails at allocation %lld (0: wrong call)\n", name.c_str(),
                  failing, static_cast<long long>(number));
    std::signal(SIGALRM, [](int) {
      [[maybe_unused]] const auto written =
          ::write(2, text_.data(), std::char_traits<char>::length(text_.data()));
      ::_exit(3);
    });
    ::alarm(60);
  }
  ~Watchdog() { ::alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static inline std::array<char, 300> text_{};
};

struct Outcome {
  std::string error;             ///< empty: none
  bool of_library = true;        ///< a sar::Error, or nothing
  std::int64_t allocations = 0;  ///< of this rank, up to the end or the error
  std::vector<double> result = {};  ///< of the call, or of the right call after the failure, if there is one
  bool has_result = false;
};

/// Makes the call once; allocation `number` of rank `failing` fails, or with number 0 its call is wrong.
std::int64_t tried = 0, thrown = 0;  // calls with an allocation that shall fail, and those that threw

Outcome make(const Communicator& comm, const Call& call, int failing, std::int64_t number) {
  const Watchdog watchdog(call.name, failing, number);
  const bool mine = comm.rank() == failing;
  const std::size_t live = live_bytes();
  Outcome outcome;
  {
    const Attempt attempt = call.prepare(mine && number == 0);
    const auto state = [&] { return attempt.state ? attempt.state() : std::vector<double>(); };
    const std::vector<double> before = state();
    std::exception_ptr failure;
    {
      const FailingAllocation injected(mine ? number : 0);
      try {
        attempt.call();
      } catch (...) {
        failure = std::current_exception();
      }
      outcome.allocations = injected.count();
    }
    if (failure) CHECK(state() == before);
    outcome.has_result = !failure;
    if (failure && comm.all_reduce(attempt.again ? 1 : 0, ReduceOp::min) == 1) {
      outcome.has_result = true;
      try {
        attempt.again();
      } catch (const std::exception& error) {
        FAIL_CHECK("the call after the failure throws: ", std::string(error.what()));
      }
    }
    if (outcome.has_result) outcome.result = attempt.result();
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const Error& error) {
      outcome.error = error.what();
    } catch (const std::exception& error) {
      outcome.error = error.what();
      outcome.of_library = false;
    }
  }
  CHECK(live_bytes() == live);
  CHECK(comm.all_reduce(1) == comm.size());
  return outcome;
}

/// All ranks have thrown the same error of the library; it names `failing`.
void check_error(const Communicator& comm, const Outcome& outcome, int failing, bool of_memory) {
  CAPTURE(outcome.error);
  CHECK(outcome.of_library);
  CHECK(!outcome.error.empty());
  CHECK(comm.broadcast(outcome.error, 0) == outcome.error);
  if (comm.size() > 1) CHECK(outcome.error.find("rank " + std::to_string(failing) + ": ") == 0);
  if (of_memory) CHECK(outcome.error.find("no memory") != std::string::npos);
}

/// Numbers of allocations to fail: the first ones, some in between, the last.
std::vector<std::int64_t> places(std::int64_t allocations) {
  std::vector<std::int64_t> numbers;
  const std::int64_t step = std::max<std::int64_t>(1, (allocations - 6) / 10);
  for (std::int64_t k = 1; k <= allocations; k += k < 6 ? 1 : step) numbers.push_back(k);
  if (allocations > 0 && numbers.back() != allocations) numbers.push_back(allocations);
  return numbers;
}

void check_call(const Communicator& comm, const Call& call) {
  CAPTURE(call.name);
  const Outcome right = make(comm, call, -1, 0);
  CHECK(right.error.empty());
  for (int failing = 0; failing < comm.size(); ++failing) {
    CAPTURE(failing);
    if (call.has_wrong && (failing > 0 || !call.compares)) {
      const Outcome outcome = make(comm, call, failing, 0);
      check_error(comm, outcome, failing, false);
      if (outcome.has_result) CHECK(outcome.result == right.result);
    }
    std::int64_t allocations = right.allocations;
    comm.broadcast(std::span(&allocations, 1), failing);
    for (const std::int64_t number : places(allocations)) {
      CAPTURE(number);
      const Outcome outcome = make(comm, call, failing, number);
      // Messages arrive sooner or later, so that there may be fewer allocations this time; and the standard
      // library does without some of what it asks for.
      const bool nothing_thrown = comm.all_reduce(outcome.error.empty() ? 1 : 0, ReduceOp::min) == 1;
      if (!nothing_thrown) check_error(comm, outcome, failing, true);
      ++tried;
      thrown += nothing_thrown ? 0 : 1;
      if (outcome.has_result) CHECK(outcome.result == right.result);
    }
    const Outcome again = make(comm, call, -1, 0);
    CHECK(again.error.empty());
    CHECK(again.result == right.result);
  }
}

std::vector<Call> all_calls(const Communicator& comm, const std::string& directory) {
  std::vector<Call> calls = communication_calls(comm, directory);
  for (auto&& more : {graph_calls(comm), file_calls(comm, directory), layer_calls(comm, directory),
                      training_calls(comm)})
    calls.insert(calls.end(), more.begin(), more.end());
  return calls;
}

}  // namespace

TEST_CASE("a failure of one rank inside a collective call is the same error on all, and all goes on") {
  const Communicator comm = Communicator::world();
  const ThreadLimit one_thread(1);  // the same allocations each time
  const TemporaryDirectory directory(comm);
  for (const Call& call : all_calls(comm, directory.path())) check_call(comm, call);
  CAPTURE(tried);
  CHECK(thrown > tried / 2);  // the injected failures were some
}

TEST_CASE("a block goes back to the arena without memory for it, which a destructor could not do without") {
  Arena arena(std::size_t{256} << 20);
  const auto bytes = [](std::size_t k) { return (k % 7 + 1) * Arena::granularity; };
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t k = 0; k < 200; ++k) blocks.push_back(arena.allocate(bytes(k)));
    const FailingAllocation any(1);
    for (const std::size_t odd : {1u, 0u})  // every second one first: no neighbors to merge with
      for (std::size_t k = odd; k < 200; k += 2) arena.deallocate(blocks[k], bytes(k));
    CHECK(any.count() == 0);
    blocks.clear();
  }
}

TEST_CASE("each collective function of the public headers is among the calls") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  std::set<std::string> covered;
  for (const Call& call : all_calls(comm, directory.path())) {
    std::istringstream names(call.name);
    for (std::string name; std::getline(names >> std::ws, name, ',');) covered.insert(name);
  }
  const auto reasons = internal_names();
  for (const std::string& name : collective_names(SAR_SOURCE_DIRECTORY)) {
    CAPTURE(name);
    CHECK((covered.contains(name) || reasons.contains(name)));
  }
}

}  // namespace sar::test

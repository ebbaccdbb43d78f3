// SPDX-License-Identifier: MIT

/// A trace read back from its file: every rank's events, nested and complete, with the bytes of the
/// statistics.
#include <doctest/doctest.h>

#include <sar/comm/halo/halo_exchange.hpp>
#include <sar/comm/trace.hpp>
#include <sar/comm/trace_file.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/trace/trace.hpp>

#include "support/thrown.hpp"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace sar;
using nlohmann::json;

namespace {

std::atomic<std::size_t> allocations{0};

/// A directory of this test that all ranks know, removed at the end.
class Directory {
 public:
  explicit Directory(const Communicator& comm) : comm_(comm) {
    path_ = comm.broadcast("/tmp/sar_trace_test." + std::to_string(::getpid()), 0);
    if (comm.rank() == 0) std::filesystem::create_directory(path_);
    comm.barrier();
  }
  ~Directory() {
    comm_.barrier();
    if (comm_.rank() == 0) std::filesystem::remove_all(path_);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] std::size_t num_files() const {
    const std::filesystem::directory_iterator files(path_);
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }

 private:
  Communicator comm_;
  std::string path_;
};

std::vector<json> events_of(const std::string& file, const std::string& phase = "X") {
  std::vector<json> found;
  const json trace = json::parse(read_text(file, "a trace"));
  for (const json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) found.push_back(event);
  return found;
}

std::size_t number(const std::vector<json>& events, int rank, const std::string& name) {
  return static_cast<std::size_t>(std::count_if(events.begin(), events.end(), [&](const json& event) {
    return event.at("pid") == rank && event.at("name").get<std::string>().starts_with(name);
  }));
}

std::uint64_t sum(const std::vector<json>& events, int rank, const char* what) {
  std::uint64_t total = 0;
  for (const json& event : events)
    if (event.at("pid") == rank) total += event.at("args").value(what, std::uint64_t{0});
  return total;
}

std::int64_t nanoseconds(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e3);
}

/// Rows there and gradients back, around the ring of ranks, and a few collectives.
void communicate(const Communicator& comm) {
  const TraceScope scope("solver \"step\"");
  std::vector<HaloRound> rounds;
  for (int r = 1; r < comm.size(); ++r) {
    rounds.push_back({.reader = (comm.rank() + r) % comm.size(),
                      .owner = (comm.rank() - r + comm.size()) % comm.size(),
                      .send_rows = {},
                      .recv_rows = 1000});
    for (std::int32_t i = 0; i < 1000; ++i) rounds.back().send_rows.push_back(2 * i);
  }
  number_halo_rows(comm, rounds);
  const Tensor owned = Tensor::full({2000, 300}, 1);
  const auto shared = std::make_shared<const std::vector<HaloRound>>(rounds);
  HaloFetch fetch(comm, owned, plan_halo(shared, 400));
  while (fetch.next()) {
  }
  fetch.finish();
  Tensor total = Tensor::zeros(owned.shape());
  HaloPush push(comm, total.shape(), plan_halo(shared, 500));
  for (std::size_t stage = 0; stage < 2 * rounds.size(); ++stage)
    push.send(Tensor::full({500, 300}, 1), total);
  push.finish(total);
  std::vector<double> values(100, 1);
  comm.all_reduce(std::span(values));
  (void)comm.all_gather(comm.rank());
  (void)comm.broadcast(std::string("a text"), 0);
  std::vector<Index> counts(static_cast<std::size_t>(comm.size()), 1);
  counts.front() = 101 - comm.size();
  (void)comm.all_to_all_v(std::span<const double>(values), counts);
}

}  // namespace

// Not inlined: GCC takes malloc and delete, or new and free, side by side for a mistake.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* block = std::malloc(bytes > 0 ? bytes : 1)) return block;
  throw std::bad_alloc();
}
// The form of stable_sort's buffer. AddressSanitizer's own would not fit the operator delete below.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}

TEST_CASE("without a trace, a scope allocates nothing") {
  CHECK(!tracing());
  const std::size_t before = allocations;
  {
    TraceScope scope("nothing");
    scope.detail("some", 1, "thing");
    TraceScope::add_bytes(1, 2);
    trace_event(TraceLane::send, "nothing", trace_time(), trace_time());
  }
  CHECK(allocations == before);
}

TEST_CASE("a trace has the events of all ranks, in lanes") {
  const Communicator comm = Communicator::world();
  const Directory directory(comm);
  const std::string file = directory.file("trace.json");
  communicate(comm);  // is not in it
  CommStats sent;
  {
    Trace trace(comm, file);
    const CommStats before = comm.stats();
    communicate(comm);
    std::thread([] { const TraceScope scope("another thread", TraceKind::compute); }).join();
    sent = comm.stats();
    sent.bytes_sent -= before.bytes_sent;
    sent.bytes_received -= before.bytes_received;
    stop_trace();  // what the statistics do not count any more
    trace.write();
    CHECK(test::thrown_by_all<InputError>(comm, [&] { trace.write(); }) ==
          file + ": this trace was written already");
  }
  communicate(comm);
  CHECK(directory.num_files() == 1);

  const std::vector<json> events = events_of(file);
  const bool alone = comm.size() == 1;
  for (int rank = 0; rank < comm.size(); ++rank) {
    CAPTURE(rank);
    CHECK(number(events, rank, "solver \"step\"") == 1);
    CHECK(number(events, rank, "another thread") == 1);
    CHECK(number(events, rank, "fetch") == 1);
    CHECK(number(events, rank, "push") == 1);
    CHECK((number(events, rank, "all_reduce") > 0) == !alone);
    CHECK((number(events, rank, "pack rows") > 0) == !alone);
    CHECK((number(events, rank, "add rows") > 0) == !alone);
    for (int peer = 0; peer < comm.size(); ++peer) {
      if (peer == rank) continue;
      CHECK(number(events, rank, "send to " + std::to_string(peer)) > 1);
      CHECK(number(events, rank, "receive from " + std::to_string(peer)) > 1);
    }
  }
  CHECK(sum(events, comm.rank(), "bytes_sent") == sent.bytes_sent);
  CHECK(sum(events, comm.rank(), "bytes_received") == sent.bytes_received);
  CHECK(!events_of(file, "C").empty());
  CHECK(!events_of(file, "M").empty());

  // In a lane, an event lies within the one before or begins after its end.
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> lanes;
  for (const json& event : events) {
    const std::int64_t begin = nanoseconds(event.at("ts"));
    CHECK(begin >= 0);
    lanes[{event.at("pid"), event.at("tid")}].emplace_back(begin, -(begin + nanoseconds(event.at("dur"))));
  }
  for (auto& [lane, spans] : lanes) {
    std::sort(spans.begin(), spans.end());
    std::vector<std::int64_t> ends;
    for (const auto& [begin, minus_end] : spans) {
      while (!ends.empty() && ends.back() <= begin) ends.pop_back();
      CHECK((ends.empty() || -minus_end <= ends.back()));
      ends.push_back(-minus_end);
    }
  }
}

TEST_CASE("a rank that does not come is not waited for, and those that find nobody write alone") {
  const Communicator comm = Communicator::world();
  const Directory directory(comm);
  const TracePatience patience{std::chrono::milliseconds(200), std::chrono::milliseconds(300)};
  const int last = comm.size() - 1;
  (void)start_trace(steady_nanoseconds());
  { const TraceScope scope("work"); }
  stop_trace();
  const auto all_but = [&](int missing, const std::string& name) {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(comm.handle(), &copy);
    if (comm.rank() != missing)
      CHECK(!write_trace(copy, comm.rank(), comm.size(), directory.file(name), patience));
    comm.barrier();
    // MPICH gives the context of a freed communicator to a later one, in which what nobody has received would
    // arrive.
    for (int q = 1; comm.rank() == 0 && missing == 0 && q <= last; ++q) {
      MPI_Status status;
      int bytes = 0;
      MPI_Probe(q, MPI_ANY_TAG, copy, &status);
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      std::vector<char> unwanted(static_cast<std::size_t>(bytes));
      MPI_Recv(unwanted.data(), bytes, MPI_BYTE, q, MPI_ANY_TAG, copy, MPI_STATUS_IGNORE);
    }
    comm.barrier();
    MPI_Comm_free(&copy);
  };
  if (last > 0) {
    all_but(last, "without_last");
    const std::vector<json> events = events_of(directory.file("without_last"));
    for (int rank = 0; rank <= last; ++rank) CHECK(number(events, rank, "work") == (rank == last ? 0 : 1));
    all_but(0, "without_0");
    CHECK(!std::filesystem::exists(directory.file("without_0")));
    for (int rank = 1; rank <= last; ++rank)
      CHECK(number(events_of(directory.file("without_0.rank" + std::to_string(rank))), rank, "work") == 1);
  }
  comm.barrier();
  CHECK(!write_trace(MPI_COMM_NULL, comm.rank(), comm.size(), directory.file("alone"), patience));
  CHECK(number(events_of(directory.file("alone.rank" + std::to_string(comm.rank()))), comm.rank(), "work") ==
        1);
}

TEST_CASE("SAR_TRACE makes a trace from the first communicator to its end") {
  const Communicator comm = Communicator::world();
  const Directory directory(comm);
  const std::string file = directory.file("environment.json");
  setenv("SAR_TRACE", file.c_str(), 1);
  {
    std::optional<Communicator> first = Communicator::world();
    CHECK(tracing());
    { const TraceScope scope("work"); }
    const Communicator second = Communicator::world();  // has nothing to write
    const std::string running =
        test::thrown_by_all<InputError>(comm, [&] { const Trace trace(comm, file + "2"); });
    CHECK(running == file + "2: another trace is running, expected one at a time (SAR_TRACE is set)");
    CHECK(!std::filesystem::exists(file));
    first.reset();
    comm.barrier();
    for (int rank = 0; rank < comm.size(); ++rank) CHECK(number(events_of(file), rank, "work") == 1);
    comm.barrier();
    std::filesystem::remove(file);
    comm.barrier();
  }
  CHECK(!std::filesystem::exists(file));
  { const Communicator third = Communicator::world(); }
  comm.barrier();
  for (int rank = 0; rank < comm.size(); ++rank) CHECK(number(events_of(file), rank, "work") == 1);
  if (comm.size() > 1) {
    comm.barrier();
    std::filesystem::remove(file);
    comm.barrier();
    { const Communicator self = Communicator::self(); }
    CHECK(!std::filesystem::exists(file));
  }

  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(directory.file("."));
  setenv("SAR_TRACE", "relative.json", 1);
  {
    const Communicator fourth = Communicator::world();
    std::filesystem::current_path(here);
  }
  comm.barrier();
  CHECK(std::filesystem::exists(directory.file("relative.json")));
  CHECK(!std::filesystem::exists("relative.json"));

  // the directory goes away meanwhile
  CHECK(!environment_trace_is_lost());
  const std::string lost = directory.file("lost");
  if (comm.rank() == 0) std::filesystem::create_directory(lost);
  comm.barrier();
  setenv("SAR_TRACE", (lost + "/trace.json").c_str(), 1);
  {
    const Communicator fifth = Communicator::world();
    if (comm.rank() == 0) std::filesystem::remove_all(lost);
  }
  CHECK(environment_trace_is_lost() == (comm.rank() == 0));

  setenv("SAR_TRACE", directory.file("no/such/directory").c_str(), 1);
  const std::string text = test::thrown_by_all<InputError>(comm, [] { (void)Communicator::world(); });
  CHECK(text.find("SAR_TRACE: ") == 0);
  CHECK(text.find("no/such/directory: cannot write") != std::string::npos);
  unsetenv("SAR_TRACE");
  stop_trace();
}

TEST_CASE("a relative path is one of the directory in which the trace began") {
  const Communicator comm = Communicator::world();
  const Directory directory(comm);
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(directory.file("."));
  Trace trace(comm, "relative.json");
  std::filesystem::current_path(here);
  trace.write();
  CHECK(std::filesystem::exists(directory.file("relative.json")));
}

TEST_CASE("a trace that cannot be written is told on all ranks") {
  const Communicator comm = Communicator::world();
  const Directory directory(comm);
  const std::string missing = directory.file("missing/trace.json");
  const auto construct = [&] { const Trace trace(comm, missing); };
  CHECK(test::thrown_by_all<InputError>(comm, construct).find(missing + ": cannot write") == 0);
  CHECK(!tracing());
  std::filesystem::create_directory(directory.file("goes"));
  comm.barrier();
  Trace trace(comm, directory.file("goes/trace.json"));
  comm.barrier();
  if (comm.rank() == 0) std::filesystem::remove(directory.file("goes"));
  comm.barrier();
  CHECK(test::thrown_by_all<InputError>(comm, [&] { trace.write(); }).find("goes/trace.json: cannot write") !=
        std::string::npos);
  CHECK(!tracing());
}

TEST_CASE("a trace is JSON whatever the host's texts and locale are") {
  struct Grouped : std::numpunct<char> {
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] char do_thousands_sep() const override { return '.'; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouped));
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed
  (void)start_trace(steady_nanoseconds());
  {
    TraceScope scope("\xc3\xa9tape \t\xff \\");
    scope.detail(std::string(36, 'x'), "\xc3\xa9");  // cut inside of its last character
    TraceScope::add_bytes(1234567, 0);
  }
  stop_trace();
  const std::string text = "[" + trace_text(1234) + "]";
  std::setlocale(LC_ALL, "C");
  std::locale::global(before);

  json scope;
  for (const json& event : json::parse(text))
    if (event.at("ph") == "X") scope = event;
  CHECK(scope.at("pid") == 1234);
  CHECK(scope.at("name") == "\xc3\xa9tape   \\");
  CHECK(scope.at("args").at("detail") == std::string(36, 'x'));
  CHECK(scope.at("args").at("bytes_sent") == 1234567);
  CHECK(scope.at("ts").is_number());
}

TEST_CASE("a lane is named once, memory is told in the order of time, and of this trace only") {
  std::optional<TraceScope> of_earlier_trace;
  (void)start_trace(steady_nanoseconds());
  of_earlier_trace.emplace("earlier");
  stop_trace();
  (void)start_trace(steady_nanoseconds());
  of_earlier_trace.reset();
  {
    const TraceScope outer("outer");
    const Tensor held = Tensor::zeros({1000, 10});
    const TraceScope inner("inner");
  }
  for (std::int64_t i = 0; i < 10; ++i) {
    const std::int64_t now = trace_time();
    trace_event(TraceLane::send, "send to", now, now + 1'000'000'000, 0, 1);
  }
  std::thread([] { const TraceScope scope("another thread"); }).join();
  stop_trace();

  std::map<int, int> names;
  std::vector<double> times;
  std::size_t scopes = 0;
  for (const json& event : json::parse("[" + trace_text(0) + "]")) {
    if (event.at("name") == "thread_name") ++names[event.at("tid").get<int>()];
    if (event.at("ph") == "C") times.push_back(event.at("ts"));
    if (event.at("ph") == "X") ++scopes;
  }
  CHECK(scopes == 13);
  CHECK(names.size() == 12);
  for (const auto& [lane, times_named] : names) CHECK(times_named == 1);
  CHECK(times.size() >= 2);
  CHECK(std::is_sorted(times.begin(), times.end()));
}

TEST_CASE("memory is bounded: later events are counted") {
  (void)start_trace(0);
  for (std::size_t i = 0; i < max_trace_events + 10; ++i) trace_event(TraceLane::send, "x", 1, 1);
  stop_trace();
  CHECK(trace_text(0).find("\"10 events dropped\"") != std::string::npos);
}

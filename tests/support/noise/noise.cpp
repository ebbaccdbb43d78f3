// SPDX-License-Identifier: MIT

// A library between a program and MPI (PMPI), preloaded with LD_PRELOAD: by the seed SAR_NOISE_SEED it makes
// the schedules that MPI allows and a quiet machine hardly shows. Without the seed it does nothing.
//
// - A send or a receive starts late: it becomes a persistent request, which a later call of the rank starts.
//   Messages with the same sender, receiver and tag, and all receives of a communicator, start in their
//   order, because MPI promises that such messages do not overtake each other. With other tags they do, so a
//   program that receives with MPI_ANY_TAG sees an order that MPI does not give.
// - A send waits for its receive (MPI_Issend), as it may in any MPI.
// - MPI_Test and the other calls that complete requests report a request some time after it was complete, and
//   several requests in any order.
// - Ranks come late to collective calls; one rank may be slower than the others; threads yield.
//
// The delays of a message follow from the seed, the rank, the peer, the tag and the number of the message,
// not from the number of tests: they are times, so that a seed gives nearly the same schedule again. Each
// seed has its own share of delayed calls and its own scale, because rare long delays find other errors than
// frequent short ones. A program that tries many problems in one run calls MPI_Pcontrol(n) on every rank
// before the n-th: it gets the schedule of this seed and n, whatever came before.
//
// Persistent requests of the program itself are passed on unchanged. Calls that block start all late requests
// at once.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

enum Kind : std::uint64_t { of_run, of_send, of_receive, of_collective, of_call, of_schedule };

/// A sequence of random numbers that follows from some keys.
struct Draw {
  std::uint64_t state = 0;

  Draw(std::initializer_list<std::uint64_t> keys) {
    for (const std::uint64_t key : keys) {
      state ^= key;
      next();
    }
  }
  std::uint64_t next() {  // splitmix64
    std::uint64_t x = state += 0x9E3779B97F4A7C15;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool happens(double probability) { return uniform() < probability; }
};

/// A request that this library makes start or end late.
struct Request {
  MPI_Comm comm = MPI_COMM_NULL;
  int peer = 0, tag = 0;    // of a send; the receives of a communicator are one queue
  bool persistent = false;  // freed here when it is complete
  bool started = true;
  Time start, report;

  [[nodiscard]] bool same_queue(const Request& other) const {
    return comm == other.comm && peer == other.peer && tag == other.tag;
  }
};

class Noise {
 public:
  /// The noise of this rank; nullptr without a seed, and before MPI is initialized.
  static Noise* get() {
    static const char* const text = std::getenv("SAR_NOISE_SEED");
    static Noise* noise = nullptr;
    if (text == nullptr || noise != nullptr) return noise;
    int initialized = 0;
    int rank = 0;
    PMPI_Initialized(&initialized);
    if (initialized == 0) return nullptr;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return noise = new Noise(std::strtoull(text, nullptr, 10), static_cast<std::uint64_t>(rank));
  }

  /// Begins the schedule number `number` of this seed.
  void begin_schedule(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    start_until(Time::max());
    draw_schedule(Draw{first_seed_, of_schedule, number}.next());
  }

  /// Before a call that returns at once: starts the requests whose time has come.
  void pass() {
    const std::lock_guard lock(mutex_);
    if (calls_.happens(yields_)) std::this_thread::yield();
    start_until(Clock::now());
  }

  /// Makes the file SAR_NOISE_USED: this library was between the program and MPI.
  static void tell() {
    const char* const path = std::getenv("SAR_NOISE_USED");
    if (std::FILE* const file = path != nullptr ? std::fopen(path, "w") : nullptr) std::fclose(file);
  }

  /// Before a call that waits for other ranks.
  void block() {
    Draw draw{seed_, rank_, of_collective, collectives_++};
    const auto nap = delay(draw);
    {
      const std::lock_guard lock(mutex_);
      start_until(Time::max());
    }
    if (nap.count() > 0) std::this_thread::sleep_for(nap);
  }

  /// Starts a send or a receive, or puts it off. `now` starts it at once, `later` makes the persistent
  /// request.
  template <class Now, class Later>
  int begin(Kind kind, MPI_Comm comm, int peer, int tag, MPI_Request* request, const Now& now,
            const Later& later) {
    pass();
    const std::lock_guard lock(mutex_);
    Draw draw{seed_,
              rank_,
              kind,
              static_cast<std::uint64_t>(peer),
              static_cast<std::uint64_t>(tag),
              messages_[{kind, comm, peer, tag}]++};
    const auto before = delay(draw), after = delay(draw);
    const bool waits = draw.happens(synchronous_);
    const Time begin = Clock::now();
    const bool sends = kind == of_send;
    Request made{comm, sends ? peer : -1, sends ? tag : -1,      false,
                 true, begin + before,    begin + before + after};
    const bool is_behind = std::any_of(
        late_.begin(), late_.end(), [&](MPI_Request other) { return requests_.at(other).same_queue(made); });
    made.started = before.count() == 0 && !is_behind;
    made.persistent = !made.started;
    const int code = made.started ? now(waits) : later(waits);
    if (code != MPI_SUCCESS) return code;
    if (!made.started) late_.push_back(*request);
    requests_[*request] = made;
    return code;
  }

  /// The report of a request that was started elsewhere comes late.
  void started(MPI_Request request) {
    const std::lock_guard lock(mutex_);
    Draw draw{seed_, rank_, of_collective, collectives_++};
    requests_[request] = {};
    requests_[request].report = Clock::now() + delay(draw);
  }

  /// MPI_Test of one request.
  int test(MPI_Request* request, int* flag, MPI_Status* status) {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(*request);
    if (*request == MPI_REQUEST_NULL || found == requests_.end()) return PMPI_Test(request, flag, status);
    *flag = 0;
    const Request mine = found->second;
    if (!mine.started || Clock::now() < mine.report) return MPI_SUCCESS;
    MPI_Request handle = *request;
    const int code = PMPI_Test(request, flag, status);
    if (*flag == 0 && code == MPI_SUCCESS) return code;
    requests_.erase(found);
    if (mine.persistent) PMPI_Request_free(&handle);
    *request = MPI_REQUEST_NULL;
    return code;
  }

  /// Tests requests in a random order, at most `most` of them, and lists the complete ones. Those of
  /// MPI_Testsome and its relatives.
  int test_some(int count, MPI_Request* requests, int most, int* completed, int* indices,
                MPI_Status* statuses) {
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](int i) { return requests[i] == MPI_REQUEST_NULL; });
    *completed = order.empty() ? MPI_UNDEFINED : 0;
    std::vector<MPI_Status> found;
    int result = MPI_SUCCESS;
    shuffle(order);
    for (const int i : order) {
      if (*completed >= most) break;
      int flag = 0;
      MPI_Status status{};
      const int code = test(&requests[i], &flag, &status);
      if (flag == 0 && code == MPI_SUCCESS) continue;
      status.MPI_ERROR = code;
      if (code != MPI_SUCCESS) result = MPI_ERR_IN_STATUS;
      if (statuses != MPI_STATUSES_IGNORE) statuses[*completed] = status;
      indices[(*completed)++] = i;
    }
    return result;
  }

  /// A random number of requests to report, 0 to `count`.
  int some_of(int count) {
    const std::lock_guard lock(mutex_);
    return calls_.happens(0.3) ? static_cast<int>(calls_.next() % (static_cast<unsigned>(count) + 1)) : count;
  }
  bool not_yet() { return some_of(1) == 0; }

  /// Starts a request that is to be canceled or freed; forgets it if `ends`.
  void release(MPI_Request request, bool ends) {
    const std::lock_guard lock(mutex_);
    start_until(Time::max());
    if (ends) requests_.erase(request);
  }

 private:
  Noise(std::uint64_t seed, std::uint64_t rank) : first_seed_(seed), rank_(rank) { draw_schedule(seed); }

  void draw_schedule(std::uint64_t seed) {
    seed_ = seed;
    calls_ = {seed, rank_, of_call};
    collectives_ = 0;
    messages_.clear();
    Draw draw{seed, of_run};
    const std::pair<double, int> kinds[] = {{0.01, 1000}, {0.1, 100}, {0.5, 20}};
    std::tie(share_, scale_) = kinds[draw.next() % 3];
    synchronous_ = draw.happens(0.5) ? 0.3 : 0;
    yields_ = draw.happens(0.5) ? 0.02 : 0;
    if (draw.next() % 4 == rank_) scale_ *= 5;  // a slow rank
  }

  /// Mostly 0, otherwise about the scale, rarely 50 times as long.
  std::chrono::microseconds delay(Draw& draw) const {
    const double share = draw.uniform(), length = draw.uniform();
    return std::chrono::microseconds(share < share_ ? static_cast<int>(scale_ / (length + 0.02)) : 0);
  }

  void start_until(Time time) {
    std::vector<Request> held;
    std::erase_if(late_, [&](MPI_Request handle) {
      Request& request = requests_.at(handle);
      const bool waits = request.start > time ||
                         std::any_of(held.begin(), held.end(),
                                     [&](const Request& other) { return other.same_queue(request); });
      if (waits) {
        held.push_back(request);
      } else {
        PMPI_Start(&handle);
        request.started = true;
      }
      return !waits;
    });
  }

  void shuffle(std::vector<int>& order) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[calls_.next() % i]);
  }

  std::uint64_t first_seed_, seed_ = 0, rank_;
  double share_ = 0;
  int scale_ = 0;
  double synchronous_ = 0, yields_ = 0;
  std::mutex mutex_;
  Draw calls_{};
  std::uint64_t collectives_ = 0;
  std::map<std::tuple<Kind, MPI_Comm, int, int>, std::uint64_t> messages_;
  std::map<MPI_Request, Request> requests_;
  std::vector<MPI_Request> late_;  // not started, in the order of the calls
};

/// Repeats a call that tests until it says that it is done.
template <class Test>
void wait_until(Noise& noise, const Test& done) {
  for (noise.pass(); !done(); noise.pass()) std::this_thread::yield();
}

}  // namespace

extern "C" {

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Isend(data, count, type, to, tag, comm, request);
  return noise->begin(
      of_send, comm, to, tag, request,
      [&](bool waits) {
        return (waits ? PMPI_Issend : PMPI_Isend)(data, count, type, to, tag, comm, request);
      },
      [&](bool waits) {
        return (waits ? PMPI_Ssend_init : PMPI_Send_init)(data, count, type, to, tag, comm, request);
      });
}

int MPI_Issend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request* request) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Issend(data, count, type, to, tag, comm, request);
  return noise->begin(
      of_send, comm, to, tag, request,
      [&](bool) { return PMPI_Issend(data, count, type, to, tag, comm, request); },
      [&](bool) { return PMPI_Ssend_init(data, count, type, to, tag, comm, request); });
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Irecv(data, count, type, from, tag, comm, request);
  return noise->begin(
      of_receive, comm, from, tag, request,
      [&](bool) { return PMPI_Irecv(data, count, type, from, tag, comm, request); },
      [&](bool) { return PMPI_Recv_init(data, count, type, from, tag, comm, request); });
}

int MPI_Imrecv(void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  const int code = PMPI_Imrecv(data, count, type, message, request);
  if (Noise* noise = Noise::get(); noise != nullptr && code == MPI_SUCCESS) noise->started(*request);
  return code;
}

int MPI_Iallreduce(const void* data, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  Noise* noise = Noise::get();
  if (noise != nullptr) noise->block();
  const int code = PMPI_Iallreduce(data, out, count, type, op, comm, request);
  if (noise != nullptr && code == MPI_SUCCESS) noise->started(*request);
  return code;
}

int MPI_Improbe(int from, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  if (Noise* noise = Noise::get(); noise != nullptr) {
    noise->release(MPI_REQUEST_NULL, false);  // a probe sees what the receives before it have left
    *flag = 0;
    if (noise->not_yet()) return MPI_SUCCESS;
  }
  return PMPI_Improbe(from, tag, comm, flag, message, status);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Test(request, flag, status);
  noise->pass();
  return noise->test(request, flag, status);
}

int MPI_Testsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Testsome(count, requests, completed, indices, statuses);
  noise->pass();
  return noise->test_some(count, requests, noise->some_of(count), completed, indices, statuses);
}

int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Testany(count, requests, index, flag, status);
  noise->pass();
  int completed = 0;
  *index = MPI_UNDEFINED;
  const int code = noise->test_some(count, requests, 1, &completed, index, status);
  *flag = completed == 0 ? 0 : 1;
  return code == MPI_SUCCESS ? code : MPI_ERR_OTHER;
}

int MPI_Waitsome(int count, MPI_Request* requests, int* completed, int* indices, MPI_Status* statuses) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Waitsome(count, requests, completed, indices, statuses);
  int code = MPI_SUCCESS;
  wait_until(*noise, [&] {
    code = MPI_Testsome(count, requests, completed, indices, statuses);
    return code != MPI_SUCCESS || *completed != 0;
  });
  return code;
}

int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Waitany(count, requests, index, status);
  int code = MPI_SUCCESS;
  wait_until(*noise, [&] {
    int flag = 0;
    code = MPI_Testany(count, requests, index, &flag, status);
    return code != MPI_SUCCESS || flag != 0;
  });
  return code;
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Waitall(count, requests, statuses);
  int result = MPI_SUCCESS;
  wait_until(*noise, [&] {
    std::vector<int> indices(static_cast<std::size_t>(count));
    std::vector<MPI_Status> found(indices.size());
    int completed = 0;
    const int code = noise->test_some(count, requests, count, &completed, indices.data(), found.data());
    if (code != MPI_SUCCESS) result = code;
    for (int i = 0; i < completed && statuses != MPI_STATUSES_IGNORE; ++i) statuses[indices[i]] = found[i];
    return completed == MPI_UNDEFINED;
  });
  return result;
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  Noise* noise = Noise::get();
  if (noise == nullptr) return PMPI_Wait(request, status);
  int code = MPI_SUCCESS;
  wait_until(*noise, [&] {
    int flag = 0;
    code = noise->test(request, &flag, status);
    return code != MPI_SUCCESS || flag != 0;
  });
  return code;
}

int MPI_Pcontrol(const int level, ...) {
  if (Noise* noise = Noise::get(); noise != nullptr) noise->begin_schedule(static_cast<std::uint64_t>(level));
  return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request* request) {
  if (Noise* noise = Noise::get(); noise != nullptr) noise->release(*request, false);
  return PMPI_Cancel(request);
}

int MPI_Request_free(MPI_Request* request) {
  if (Noise* noise = Noise::get(); noise != nullptr) noise->release(*request, true);
  return PMPI_Request_free(request);
}

// Calls in which ranks wait for each other: NAME(PARAMETERS) calls PMPI_NAME(ARGUMENTS).
#define SAR_NOISE_BLOCKING(name, parameters, arguments)                \
  int MPI_##name parameters {                                          \
    if (Noise* noise = Noise::get(); noise != nullptr) noise->block(); \
    return PMPI_##name arguments;                                      \
  }
SAR_NOISE_BLOCKING(Barrier, (MPI_Comm comm), (comm))
SAR_NOISE_BLOCKING(Bcast, (void* data, int count, MPI_Datatype type, int root, MPI_Comm comm),
                   (data, count, type, root, comm))
SAR_NOISE_BLOCKING(Allreduce,
                   (const void* data, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
                   (data, out, count, type, op, comm))
SAR_NOISE_BLOCKING(Allgather,
                   (const void* data, int count, MPI_Datatype type, void* out, int counts, MPI_Datatype to,
                    MPI_Comm comm),
                   (data, count, type, out, counts, to, comm))
SAR_NOISE_BLOCKING(Allgatherv,
                   (const void* data, int count, MPI_Datatype type, void* out, const int* counts,
                    const int* at, MPI_Datatype to, MPI_Comm comm),
                   (data, count, type, out, counts, at, to, comm))
SAR_NOISE_BLOCKING(Alltoall,
                   (const void* data, int count, MPI_Datatype type, void* out, int counts, MPI_Datatype to,
                    MPI_Comm comm),
                   (data, count, type, out, counts, to, comm))
SAR_NOISE_BLOCKING(Comm_dup, (MPI_Comm comm, MPI_Comm* made), (comm, made))
SAR_NOISE_BLOCKING(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
SAR_NOISE_BLOCKING(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made),
                   (comm, type, key, info, made))
SAR_NOISE_BLOCKING(Comm_free, (MPI_Comm * comm), (comm))
SAR_NOISE_BLOCKING(Get,
                   (void* data, int count, MPI_Datatype type, int from, MPI_Aint at, int counts,
                    MPI_Datatype to, MPI_Win window),
                   (data, count, type, from, at, counts, to, window))
SAR_NOISE_BLOCKING(Win_create,
                   (void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window),
                   (base, size, unit, info, comm, window))
SAR_NOISE_BLOCKING(Win_flush_all, (MPI_Win window), (window))
SAR_NOISE_BLOCKING(Win_unlock_all, (MPI_Win window), (window))
SAR_NOISE_BLOCKING(Win_free, (MPI_Win * window), (window))

int MPI_Finalize() {
  if (Noise* noise = Noise::get(); noise != nullptr) {
    noise->block();
    Noise::tell();
  }
  return PMPI_Finalize();
}
}

// SPDX-License-Identifier: MIT

// Collective calls. Each begins with a synchronization point: if a rank has failed or makes another call, all
// ranks throw there, before any of them waits in MPI.
#include <sar/comm/communicator.hpp>
#include <sar/comm/communicator_state.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr int all_to_all_tag = 1;

struct NamedType {
  MPI_Datatype type;
  const char* name;
};

template <class T>
NamedType named_type() {
  if constexpr (std::is_same_v<T, float>) return {MPI_FLOAT, "float"};
  if constexpr (std::is_same_v<T, double>) return {MPI_DOUBLE, "double"};
  if constexpr (std::is_same_v<T, std::int32_t>) return {MPI_INT32_T, "int32"};
  if constexpr (std::is_same_v<T, std::uint32_t>) return {MPI_UINT32_T, "uint32"};
  if constexpr (std::is_same_v<T, std::int64_t>) return {MPI_INT64_T, "int64"};
  if constexpr (std::is_same_v<T, std::uint64_t>) return {MPI_UINT64_T, "uint64"};
}

/// Returns the offsets in bytes of the parts of all ranks, followed by the total size.
std::vector<std::size_t> byte_offsets(std::span<const Index> counts, std::size_t element_bytes) {
  std::vector<std::size_t> offsets(counts.size() + 1, 0);
  for (std::size_t q = 0; q < counts.size(); ++q) offsets[q + 1] = offsets[q] + counts[q] * element_bytes;
  return offsets;
}

}  // namespace

// A synchronization point is a barrier.
void Communicator::barrier() const {
  state_->begin_call({.name = "barrier"});
}

// Every rank gets the same bits: MPI requires that all processes receive identical results from
// MPI_Allreduce.
template <class T>
void Communicator::all_reduce(std::span<T> values, ReduceOp op) const {
  const auto [type, type_name] = named_type<T>();
  const bool is_max = op == ReduceOp::max, is_min = op == ReduceOp::min;
  const char* name = is_max ? "all_reduce (max)" : is_min ? "all_reduce (min)" : "all_reduce";
  const MPI_Op mpi_op = is_max ? MPI_MAX : is_min ? MPI_MIN : MPI_SUM;
  state_->begin_call({.name = name, .length = std::ssize(values), .unit = type_name});
  if (state_->size == 1) return;
  const WaitTimer timer(state_->stats);
  const std::size_t step = state_->max_count(sizeof(T));
  for (std::size_t begin = 0; begin < values.size(); begin += step) {
    const std::size_t count = std::min(step, values.size() - begin);
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data() + begin, static_cast<int>(count), type, mpi_op,
                            state_->owned.comm),
              "MPI_Allreduce");
  }
  state_->count(values.size_bytes(), values.size_bytes());
}
template void Communicator::all_reduce(std::span<float>, ReduceOp) const;
template void Communicator::all_reduce(std::span<double>, ReduceOp) const;
template void Communicator::all_reduce(std::span<std::int32_t>, ReduceOp) const;
template void Communicator::all_reduce(std::span<std::uint32_t>, ReduceOp) const;
template void Communicator::all_reduce(std::span<std::int64_t>, ReduceOp) const;
template void Communicator::all_reduce(std::span<std::uint64_t>, ReduceOp) const;

std::vector<Index> Communicator::gather_counts(Index count) const {
  std::vector<Index> counts(state_->size);
  state_->begin_call({.name = "all_gather"});
  const WaitTimer timer(state_->stats);
  check_mpi(MPI_Allgather(&count, 1, MPI_INT64_T, counts.data(), 1, MPI_INT64_T, state_->owned.comm),
            "MPI_Allgather");
  return counts;
}

void Communicator::all_gather_bytes(const void* mine, void* all, const std::vector<Index>& counts,
                                    std::size_t element_bytes) const {
  const int rank = state_->rank;
  const std::vector<std::size_t> offset = byte_offsets(counts, element_bytes);
  const std::size_t my_bytes = offset[rank + 1] - offset[rank], all_bytes = offset.back();
  auto* out = static_cast<std::byte*>(all);
  if (all_bytes <= state_->max_count(1)) {
    std::vector<int> byte_counts(counts.size());
    const std::vector<int> offsets(offset.begin(), offset.end());
    for (std::size_t q = 0; q < counts.size(); ++q) byte_counts[q] = offsets[q + 1] - offsets[q];
    state_->begin_call({.name = "all_gather", .length = static_cast<std::int64_t>(all_bytes)});
    const WaitTimer timer(state_->stats);
    check_mpi(MPI_Allgatherv(mine, static_cast<int>(my_bytes), MPI_BYTE, out, byte_counts.data(),
                             offsets.data(), MPI_BYTE, state_->owned.comm),
              "MPI_Allgatherv");
    if (state_->size > 1) state_->count(my_bytes, all_bytes - my_bytes);
    return;
  }
  // Too large for one call, whose offsets are 32-bit numbers: broadcast the part of each rank in turn.
  if (my_bytes > 0) std::memcpy(out + offset[rank], mine, my_bytes);
  for (int q = 0; q < state_->size; ++q) broadcast_bytes(out + offset[q], offset[q + 1] - offset[q], q);
}

void Communicator::broadcast_bytes(void* data, std::size_t bytes, int root) const {
  state_->begin_call({.name = "broadcast", .length = static_cast<std::int64_t>(bytes), .root = root});
  require<CommunicationError>(root >= 0 && root < state_->size, "broadcast from rank ", root, " of ",
                              state_->size);  // the same on all ranks, which begin_call() has compared
  if (state_->size == 1) return;
  const WaitTimer timer(state_->stats);
  const std::size_t step = state_->max_count(1);
  for (std::size_t begin = 0; begin < bytes; begin += step)
    check_mpi(MPI_Bcast(static_cast<std::byte*>(data) + begin,
                        static_cast<int>(std::min(step, bytes - begin)), MPI_BYTE, root, state_->owned.comm),
              "MPI_Bcast");
  state_->count(root == state_->rank ? bytes : 0, root == state_->rank ? 0 : bytes);
}

std::string Communicator::broadcast(const std::string& text, int root) const {
  return agree_once("broadcast", [&] {
    std::uint64_t length = text.size();
    broadcast(std::span(&length, 1), root);
    std::string result = root == state_->rank ? text : std::string(length, '\0');
    broadcast(std::span(result), root);
    return result;
  });
}

std::size_t Communicator::total_of(std::span<const Index> counts) const {
  require<CommunicationError>(std::ssize(counts) == state_->size, "all_to_all got ", counts.size(),
                              " counts for ", state_->size, " ranks");
  require<CommunicationError>(std::ranges::all_of(counts, [](Index count) { return count >= 0; }),
                              "all_to_all got a count below 0");
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), Index{0}));
}

// One number for each pair of ranks. For so few bytes, MPI libraries usually take log2(P) rounds (Bruck's
// algorithm). bench/RESULTS.md compares it with a sparse exchange (NBX).
std::vector<Index> Communicator::all_to_all(std::span<const Index> counts) const {
  return agree_once("all_to_all", [&] {
    (void)total_of(counts);
    std::vector<Index> received(counts.size());
    state_->begin_call({.name = "all_to_all"});
    const WaitTimer timer(state_->stats);
    check_mpi(
        MPI_Alltoall(counts.data(), 1, MPI_INT64_T, received.data(), 1, MPI_INT64_T, state_->owned.comm),
        "MPI_Alltoall");
    return received;
  });
}

// Both ends know the length of a part, and from it the division into messages. A pair of ranks needs no other
// tag for the next call, because its messages stay in order. Ranks begin at different peers.
void Communicator::all_to_all_bytes(std::span<const std::byte> out, std::span<const Index> out_counts,
                                    void* in, std::span<const Index> in_counts,
                                    std::size_t element_bytes) const {
  const int size = state_->size, me = state_->rank;
  require<CommunicationError>(total_of(out_counts) * element_bytes == out.size(), "all_to_all_v got ",
                              out.size() / element_bytes, " values, but counts that sum up to ",
                              total_of(out_counts));
  const std::vector<std::size_t> out_offset = byte_offsets(out_counts, element_bytes);
  const std::vector<std::size_t> in_offset = byte_offsets(in_counts, element_bytes);
  auto* to = static_cast<std::byte*>(in);
  const std::size_t step = state_->max_count(1);
  const auto messages = [step](const std::vector<std::size_t>& offset, int q) {
    return (offset[q + 1] - offset[q] + step - 1) / step;
  };
  std::size_t num_requests = 0;
  for (int q = 0; q < size; ++q)
    num_requests += q == me ? 0 : messages(in_offset, q) + messages(out_offset, q);
  std::vector<MPI_Request> requests;
  requests.reserve(num_requests);

  state_->begin_call({.name = "all_to_all_v"});
  const WaitTimer timer(state_->stats);
  const auto post = [&](const std::vector<std::size_t>& offset, int q, const auto& one) {
    for (std::size_t begin = offset[q]; begin < offset[q + 1]; begin += step)
      one(begin, static_cast<int>(std::min(step, offset[q + 1] - begin)), &requests.emplace_back());
  };
  for (int r = 1; r < size; ++r)
    post(in_offset, (me - r + size) % size, [&](std::size_t begin, int bytes, MPI_Request* request) {
      check_mpi(MPI_Irecv(to + begin, bytes, MPI_BYTE, (me - r + size) % size, all_to_all_tag,
                          state_->owned.comm, request),
                "MPI_Irecv");
    });
  for (int r = 1; r < size; ++r)
    post(out_offset, (me + r) % size, [&](std::size_t begin, int bytes, MPI_Request* request) {
      check_mpi(MPI_Isend(out.data() + begin, bytes, MPI_BYTE, (me + r) % size, all_to_all_tag,
                          state_->owned.comm, request),
                "MPI_Isend");
    });
  if (out_offset[me + 1] > out_offset[me])
    std::memcpy(to + in_offset[me], out.data() + out_offset[me], out_offset[me + 1] - out_offset[me]);
  check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall");
  state_->count(out_offset.back() - (out_offset[me + 1] - out_offset[me]),
                in_offset.back() - (in_offset[me + 1] - in_offset[me]));
}

}}  // namespace sar

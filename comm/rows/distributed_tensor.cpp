// SPDX-License-Identifier: MIT
#include <sar/comm/communicator_state.hpp>
#include <sar/comm/mpi_objects.hpp>
#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/comm/rows/row_window.hpp>
#include <sar/core/memory/transaction.hpp>
#include <sar/core/trace/trace.hpp>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

namespace sar { inline namespace SAR_PRECISION {

// pull() reads rows from the memory of their owners without their help: contiguous rows in place, others
// through buffers of together 16 MiB, one round of messages to all owners at a time. push() appends rows
// to a list on its own rank. barrier() sends the lists to the owners by a RowRoute; these apply them in
// the order of the ranks and, for each rank, of its calls.

StoredRows::StoredRows(const Communicator& comm, const PartitionBook& book, const OwnRows& mine)
    : comm_(comm), book_(book), mine_(mine), row_bytes_(mine.shape.row_size() * mine.element_bytes) {
  comm.agree(
      [&] {
        check_own_rows();
        pushed_ = std::make_shared<Pushed>();
        window_ = std::make_unique<RowWindow>(comm, mine.data, mine.shape[0] * row_bytes_, mine.memory);
      },
      "DistributedTensor");
}

StoredRows::~StoredRows() = default;

void StoredRows::require_ranks(const Communicator& comm, const PartitionBook& book) {
  require<InputError>(book.num_parts() == comm.size(), "a distributed tensor has a partition book of ",
                      book.num_parts(), " ranks, expected ", comm.size(), ", as the communicator has");
}

void StoredRows::check_own_rows() {
  const char* tensor = "a distributed tensor";
  require_ranks(comm_, book_);
  const Index expected = book_.num_nodes(comm_.rank());
  require<ShapeError>(mine_.shape.dims() > 0 && mine_.shape[0] == expected, tensor, ": this rank's rows are ",
                      mine_.shape, ", expected ", expected, " rows, as the partition book says");
  require<ShapeError>(row_bytes_ <= INT_MAX, tensor, " has rows of ", row_bytes_,
                      " bytes, expected less than 2^31");
  std::array<Index, 5> row{mine_.shape.dims(), mine_.element_bytes};
  for (int d = 1; d < mine_.shape.dims(); ++d) row[static_cast<std::size_t>(d) + 1] = mine_.shape[d];
  const auto rows = comm_.all_gather(row);
  for (int q = 1; q < comm_.size(); ++q)
    require<InputError>(rows[q] == rows[0], tensor, " has rows of another shape on rank ", q,
                        " than on rank 0");
  // A polynomial hash of the book's offsets, to compare the books of all ranks.
  std::uint64_t offsets = 0;
  for (int q = 0; q < book_.num_parts(); ++q)
    offsets = offsets * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(book_.end(q));
  require<InputError>(comm_.all_equal(static_cast<std::int64_t>(offsets), "DistributedTensor"), tensor,
                      " has different partition books on different ranks");
  mine_.writable = comm_.all_reduce(mine_.writable ? 1 : 0, ReduceOp::min) == 1;
}

void StoredRows::require_writable(const char* call) const {
  require<InputError>(mine_.writable, call,
                      ": the rows were borrowed for reading, expected memory that can be written");
}

/// Runs a local call and remembers its failure for the next collective call; inside agree(), the end of
/// agree() reports it.
void StoredRows::noting_failure(FunctionRef<void()> call) {
  try {
    call();
  } catch (...) {
    if (comm_.agree_depth() == 0 && !failure_) failure_ = std::current_exception();
    throw;
  }
}

void StoredRows::report_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void StoredRows::get_range(int owner, RowRange rows, std::byte* out) const {
  const Index most = window_->max_rows(row_bytes_);
  for (Index first = rows.first; first < rows.last; first += most) {
    const RowRange part{first, std::min(rows.last, first + most)};
    window_->get(owner, {&part, 1}, row_bytes_, out + (first - rows.first) * row_bytes_);
  }
}

/// Requests rows from all owners before it waits. Scattered rows are read 16 MiB at a time.
void StoredRows::get_rows(const RowsByOwner& wanted, std::byte* out, CommStats& stats) const {
  constexpr Index buffer_bytes = Index{1} << 24;
  std::vector<ScatteredRows> scattered;  // must live while rows are in flight
  Index read = 0;
  try {
    // Contiguous rows are read straight into `out`, the others through buffers.
    for (int q = 0; q < comm_.size(); ++q) {
      if (q == comm_.rank() || wanted.size(q) == 0) continue;
      const std::span<const Index> rows = wanted.rows_of(q), places = wanted.places_of(q);
      if (wanted.is_range(q)) {
        get_range(q, {rows.front(), rows.back() + 1}, out + places.front() * row_bytes_);
        read += std::ssize(rows);
      } else {
        scattered.emplace_back(q, rows, places);
      }
    }
    const Index in_buffer = buffer_bytes / row_bytes_ / std::max<Index>(std::ssize(scattered), 1);
    const Index most = std::clamp<Index>(in_buffer, 1, window_->max_rows(row_bytes_));
    do {
      {
        const WaitTimer timer(stats, "pull");
        for (ScatteredRows& rows : scattered) read += rows.get(*window_, row_bytes_, most);
        window_->wait();
      }
      for (const ScatteredRows& rows : scattered) rows.copy_to(out, row_bytes_);
      std::erase_if(scattered, [](const ScatteredRows& rows) { return rows.done(); });
    } while (!scattered.empty());
  } catch (...) {  // wait before the caller frees the memory that rows in flight are written to
    try {
      window_->wait();
    } catch (const Error&) {  // the first failure says more
    }
    throw;
  }
  stats.bytes_received = static_cast<std::uint64_t>(read * row_bytes_);
}

void StoredRows::pull(std::span<const Index> ids, FunctionRef<std::byte*()> make_out) {
  const TraceScope scope("pull", TraceKind::communication);
  noting_failure([&] {
    require_running_mpi("pull", is_of_session(comm_.handle()));
    only_thread(comm_.handle());
    const RowsByOwner wanted(book_, ids, "pull");
    std::byte* const out = make_out();
    if (row_bytes_ == 0) return;
    const int me = comm_.rank();
    CommStats stats;
    get_rows(wanted, out, stats);
    comm_.add_to_stats(stats);
    const std::span<const Index> rows = wanted.rows_of(me), places = wanted.places_of(me);
    copy_rows(
        std::ssize(rows), row_bytes_, mine_.data, [&](Index k) { return rows[k]; }, out,
        [&](Index k) { return places[k]; });
  });
}

std::unique_ptr<RowPull> StoredRows::start_pull(std::span<const Index> ids,
                                                FunctionRef<std::byte*()> make_out) {
  const TraceScope scope("pull_all", TraceKind::communication);
  return comm_.agree(
      [&] {
        report_failure();
        return std::make_unique<RowPull>(comm_, book_, mine_.data, row_bytes_, ids, make_out());
      },
      "pull_all");
}

void StoredRows::push(std::span<const Index> ids, const std::byte* rows, Index num_elements, bool add) {
  noting_failure([&] {
    const char* call = add ? "push_add" : "push";
    require_writable(call);
    require_rows(book_, ids, call);
    const Index expected = std::ssize(ids) * mine_.shape.row_size();
    require<ShapeError>(num_elements == expected, call, ": ", num_elements, " numbers for ", ids.size(),
                        " ids, expected ", expected, ", as rows are ", mine_.shape.with_rows(1));
    // Reserve first, so that a failure leaves both lists unchanged.
    const auto make_room = [](auto& array, std::size_t more) {
      if (array.capacity() < array.size() + more)
        array.reserve(std::max(array.size() + more, 2 * array.capacity()));
    };
    Pushed& pushed = *pushed_;
    make_room(pushed.ids, ids.size());
    make_room(pushed.rows, expected * mine_.element_bytes);
    const std::size_t before = pushed.rows.size();
    Transaction::save(&pushed.ids, sizeof(pushed.ids), [&] {
      return [list = pushed_, num_ids = pushed.ids.size(), before] {
        list->ids.resize(num_ids);
        list->rows.resize(before);
      };
    });
    for (const Index id : ids) pushed.ids.push_back(add ? ~id : id);
    pushed.rows.resize(before + expected * mine_.element_bytes);
    if (expected > 0) std::memcpy(pushed.rows.data() + before, rows, expected * mine_.element_bytes);
  });
}

void StoredRows::barrier() {
  const TraceScope scope("barrier", TraceKind::communication);
  Array<Index> entries;
  Array<std::byte> arrived;
  const bool any = comm_.agree([&] {
    report_failure();
    if (comm_.all_reduce(std::ssize(pushed_->ids), ReduceOp::max) == 0) return false;
    std::vector<std::int32_t> owners;
    for (const Index id : pushed_->ids) owners.push_back(book_.owner(id < 0 ? ~id : id));
    const RowRoute route(comm_, owners);
    entries = route.forward(std::span<const Index>(pushed_->ids));
    arrived.resize(static_cast<std::size_t>(route.num_arrived() * row_bytes_));
    route.forward(pushed_->rows.data(), row_bytes_, arrived.data());
    return true;
  });
  if (any) {  // all rows have arrived everywhere; without an open transaction nothing can fail any more
    if (Transaction::is_open()) save_rows(entries);
    *pushed_ = {};
    apply(entries, arrived.data());
  }
  window_->changed();
  if (any) comm_.synchronize("barrier");
}

std::byte* StoredRows::row_of(Index entry) const {
  return mine_.data + ((entry < 0 ? ~entry : entry) - book_.begin(comm_.rank())) * row_bytes_;
}

/// Saves the rows that apply() changes, and the lists of push().
void StoredRows::save_rows(std::span<const Index> entries) {
  for (const Index entry : entries)
    Transaction::save_bytes(row_of(entry), static_cast<std::size_t>(row_bytes_), mine_.memory);
  Transaction::save(pushed_.get(), sizeof(Pushed), [&] {
    return [list = pushed_, before = *pushed_]() mutable { std::swap(*list, before); };
  });
}

// Applies pushed rows. A route preserves the order of the ranks, and the order of the rows of a rank.
void StoredRows::apply(std::span<const Index> entries, const std::byte* rows) {
  for (const Index entry : entries) {
    if (entry < 0)
      mine_.add(row_of(entry), rows, mine_.shape.row_size());
    else
      std::memcpy(row_of(entry), rows, row_bytes_);
    rows += row_bytes_;
  }
}
}}  // namespace sar

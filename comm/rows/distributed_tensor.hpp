// SPDX-License-Identifier: MIT

/// DistributedTensor: rows stored over all ranks, which every rank can read and change.
///
///     DistributedTensor<> x(comm, data.book, data.features);        // borrows this rank's rows
///     const Tensor rows = x.pull(ids);                              // local: rows of any rank
///
///     auto pending = x.start_pull(next_ids);                        // collective: rows are in flight
///     train(batch);                                                 // while this rank computes
///     const Tensor next = pending.finish();
///
///     x.push(ids, new_rows);                                        // visible to all ranks after barrier()
///     x.barrier();
///
/// Each row is stored once, at its owner, as in DGL's DistTensor; nothing is cached.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/rows/partition_book.hpp>
#include <sar/comm/rows/row_route.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// StoredRows: the implementation of DistributedTensor, on bytes. For the sources of the library only.

class RowWindow;
struct RowRange;

/// This rank's rows in memory.
struct OwnRows {
  std::byte* data = nullptr;
  Shape shape;  ///< [rows of this rank, ...]
  Index element_bytes = 1;
  bool writable = true;
  std::shared_ptr<const void> memory = nullptr;  ///< keeps the rows alive; null: the caller does
  /// sum[j] += row[j] for the elements of a row
  void (*add)(std::byte* sum, const std::byte* row, Index row_size) = nullptr;
};

/// The rows of a distributed tensor.
class StoredRows : NonCopyable {
 public:
  /// Collective. Throws as DistributedTensor.
  StoredRows(const Communicator& comm, const PartitionBook& book, const OwnRows& mine);
  ~StoredRows();

  // These do what the functions of DistributedTensor with the same names do, for rows of bytes.
  void pull(std::span<const Index> ids, FunctionRef<std::byte*()> make_out);
  void push(std::span<const Index> ids, const std::byte* rows, Index num_elements, bool add);
  void barrier();
  /// Collective. `make_out` allocates the memory for the rows.
  std::unique_ptr<RowPull> start_pull(std::span<const Index> ids, FunctionRef<std::byte*()> make_out);

  [[nodiscard]] const Communicator& comm() const noexcept { return comm_; }
  [[nodiscard]] const PartitionBook& book() const noexcept { return book_; }
  [[nodiscard]] const OwnRows& mine() const noexcept { return mine_; }
  void require_writable(const char* call) const;
  /// Local. Throws InputError unless the book has as many ranks as the communicator.
  static void require_ranks(const Communicator& comm, const PartitionBook& book);

 private:
  /// Rows of push() since the last barrier(), in the order of the calls.
  struct Pushed {
    Array<Index> ids;  // ~id: a row to be added
    Array<std::byte> rows;
  };

  void check_own_rows();
  void get_rows(const RowsByOwner& wanted, std::byte* out, CommStats& stats) const;
  void get_range(int owner, RowRange rows, std::byte* out) const;
  void noting_failure(FunctionRef<void()> call);
  void report_failure();
  void save_rows(std::span<const Index> entries);
  void apply(std::span<const Index> entries, const std::byte* rows);
  [[nodiscard]] std::byte* row_of(Index entry) const;

  Communicator comm_;
  PartitionBook book_;
  OwnRows mine_;
  Index row_bytes_;
  std::unique_ptr<RowWindow> window_;
  std::exception_ptr failure_;  // of a local call
  std::shared_ptr<Pushed> pushed_;
};

template <class T>
concept RowNumber = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::uint8_t> ||
    std::same_as<T, std::int8_t> || std::same_as<T, std::int16_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t>;

/// Rows of T in memory: a Tensor for real, a row-major Array for other types.
template <RowNumber T>
using RowsOf = std::conditional_t<std::is_same_v<T, real>, Tensor, Array<T>>;

/// Rows being pulled. All messages were posted when it was made: until finish(), a rank may compute, make
/// other collective calls, and fail.
template <RowNumber T>
class PendingRows {
 public:
  PendingRows() = default;
  PendingRows(PendingRows&&) noexcept = default;
  PendingRows& operator=(PendingRows other) noexcept {  // `other` ends a pull in flight
    std::swap(rows_, other.rows_);
    std::swap(pull_, other.pull_);
    return *this;
  }

  /// Waits for the rows and returns them. Call it once. Local: the messages are posted already.
  [[nodiscard]] RowsOf<T> finish() {
    pull_->finish();
    pull_.reset();
    return std::move(*rows_);
  }

 private:
  template <RowNumber>
  friend class DistributedTensor;

  std::unique_ptr<RowsOf<T>> rows_;
  std::unique_ptr<RowPull> pull_;  // writes to the rows
};

/// A tensor [N, ...] of T with N = book.num_nodes() rows; rank p stores rows book.begin(p) to book.end(p). A
/// handle: copies are the same tensor. Destroying the last handle of a rank is collective, because other
/// ranks may still read (a rank that leaves by an exception does not wait).
///
/// A local call that fails throws on its rank; outside a body of Communicator::agree, the next collective
/// call of the tensor then throws the same on all ranks.
///
/// @code
/// const PartitionBook& book = data.book;
/// const DistributedTensor<> table(comm, book, {book.num_nodes(), 8});  // zeros, stored by the owners
/// const std::vector<Index> ids{0, 299};
/// table.push(ids, Tensor::full({2, 8}, 1));
/// table.barrier();                                                     // now all ranks see the rows
/// const Tensor rows = table.pull(ids);
/// @endcode
template <RowNumber T = real>
class DistributedTensor {
 public:
  // The constructors are collective. They throw, the same on every rank, InputError for a book with another
  // number of ranks than the communicator or not the same on all ranks, or if row shapes differ between
  // ranks; ShapeError if the number of own rows is not the book's, and for rows of 2^31 bytes or more.

  /// Collective. A tensor of zeros; shape[0] is the number of rows of all ranks.
  DistributedTensor(const Communicator& comm, const PartitionBook& book, const Shape& shape)
      : DistributedTensor(
            comm,
            [&] {
              require<ShapeError>(shape.dims() > 0 && shape[0] == book.num_nodes(),
                                  "a distributed tensor is ", shape, ", expected ", book.num_nodes(),
                                  " rows, as the partition book says");
              StoredRows::require_ranks(comm, book);
              return zeros(shape.with_rows(book.num_nodes(comm.rank())));
            },
            book) {}
  /// Collective. A tensor of this rank's rows, [rows of this rank, ...], whose memory it shares: an array
  /// borrowed with Tensor::borrow must outlive the tensor.
  DistributedTensor(const Communicator& comm, const PartitionBook& book,
                    Tensor mine) requires std::same_as<T, real>
      : DistributedTensor(
            comm, [&] { return own(std::move(mine)); }, book) {}
  /// Collective. The same for other types; `shape` is [rows of this rank, ...].
  DistributedTensor(const Communicator& comm, const PartitionBook& book, Array<T> mine,
                    const Shape& shape) requires(!std::same_as<T, real>)
      : DistributedTensor(
            comm, [&] { return own(std::move(mine), shape); }, book) {}
  /// Collective. Returns a tensor on a host array of this rank's rows, which must outlive the tensor;
  /// `shape` is [rows of this rank, ...]. Read-only if U is const.
  ///
  /// If the tensor is made in a body of Communicator::agree, the array must outlive agree(): a rank that
  /// fails in the body does not wait there for other ranks that may still read.
  template <class U>
  requires std::same_as<std::remove_const_t<U>, T>
  static DistributedTensor borrow(const Communicator& comm, const PartitionBook& book, std::span<U> mine,
                                  const Shape& shape) {
    return DistributedTensor(
        comm,
        [&] {
          OwnRows rows =
              described(const_cast<T*>(mine.data()), std::ssize(mine), shape);  // NOLINT: see writable
          rows.writable = !std::is_const_v<U>;
          return rows;
        },
        book);
  }

  /// Returns the rows ids[0], ids[1], ... of any ranks; repetitions are allowed. Returns the values of the
  /// last barrier(). Throws InputError for an id that does not exist. Local: other ranks need not call
  /// anything.
  ///
  /// Rows that are adjacent both at their owner and in `ids` are read with one message (MPI_Get) per owner
  /// and GiB. Other rows are sorted and read at most 16 MiB at a time, one message per owner, including small
  /// gaps between rows. If the network cannot read remote memory by itself (TCP), the owner answers during
  /// any of its MPI calls, so a rank waits for an owner that computes; pull_all() avoids that.
  [[nodiscard]] RowsOf<T> pull(std::span<const Index> ids) const {
    RowsOf<T> rows;
    stored_->pull(ids, [&] {
      rows = make_rows(std::ssize(ids));
      return bytes(rows);
    });
    return rows;
  }
  /// Collective. The same for all ranks together.
  [[nodiscard]] RowsOf<T> pull_all(std::span<const Index> ids) const { return start_pull(ids).finish(); }
  /// Collective. The first half of pull_all(): requests the rows and sends the rows that others requested,
  /// with their current values. finish() of the result waits for them. Meanwhile, buffers for these rows
  /// are held.
  [[nodiscard]] PendingRows<T> start_pull(std::span<const Index> ids) const {
    PendingRows<T> pending;
    pending.pull_ = stored_->start_pull(ids, [&] {
      pending.rows_ = std::make_unique<RowsOf<T>>(make_rows(std::ssize(ids)));
      return bytes(*pending.rows_);
    });
    return pending;
  }

  /// Local. Replaces row ids[i] by row i of `rows` at the next barrier(); until then, this rank keeps a
  /// copy.
  ///
  /// A barrier() applies pushes and additions in the order of the ranks, and within a rank in the order of
  /// its calls and of their ids. So if several ranks push one id, the last push of the highest rank remains;
  /// a pushed row replaces earlier additions, and later ones are added to it. Throws InputError for an id
  /// that does not exist and for rows borrowed as const, ShapeError for a wrong number of values.
  void push(std::span<const Index> ids, std::span<const T> rows) const {
    stored_->push(ids, reinterpret_cast<const std::byte*>(rows.data()), std::ssize(rows), false);
  }
  void push(std::span<const Index> ids, const Tensor& rows) const requires std::same_as<T, real> {
    push(ids, rows.values());
  }
  /// Local. Adds row i of `rows` to row ids[i] at the next barrier(), in the order described at push().
  void push_add(std::span<const Index> ids, std::span<const T> rows) const {
    stored_->push(ids, reinterpret_cast<const std::byte*>(rows.data()), std::ssize(rows), true);
  }
  void push_add(std::span<const Index> ids, const Tensor& rows) const requires std::same_as<T, real> {
    push_add(ids, rows.values());
  }
  /// Collective. Makes all pushed rows, and values that owners wrote to mine_to_write(), visible to all
  /// ranks. If it throws, rows are unchanged, and the next barrier() applies the pushed rows. Needs buffers
  /// for the rows that arrive.
  void barrier() const { stored_->barrier(); }

  /// Local. Returns this rank's rows.
  [[nodiscard]] std::span<const T> mine() const {
    const OwnRows& rows = stored_->mine();
    return {reinterpret_cast<const T*>(rows.data), static_cast<std::size_t>(rows.shape.size())};
  }
  /// Local. Returns this rank's rows for writing, which is allowed between a collective call and barrier(),
  /// while no rank pulls. Throws InputError if they were borrowed as const.
  [[nodiscard]] std::span<T> mine_to_write() const {
    const OwnRows& rows = stored_->mine();
    stored_->require_writable("mine_to_write");
    return {reinterpret_cast<T*>(rows.data), static_cast<std::size_t>(rows.shape.size())};
  }
  [[nodiscard]] const PartitionBook& book() const noexcept { return stored_->book(); }
  [[nodiscard]] const Communicator& comm() const noexcept { return stored_->comm(); }
  /// Returns the shape [N, ...] of the whole tensor.
  [[nodiscard]] Shape shape() const { return stored_->mine().shape.with_rows(book().num_nodes()); }
  [[nodiscard]] Index row_size() const { return stored_->mine().shape.row_size(); }

 private:
  template <class Make>
  DistributedTensor(const Communicator& comm, const Make& make, const PartitionBook& book)
      : stored_(comm.agree([&] { return std::make_shared<StoredRows>(comm, book, make()); },
                           "DistributedTensor")) {}

  static OwnRows described(T* data, Index length, const Shape& shape) {
    require<ShapeError>(length == shape.size(), "a distributed tensor: ", length,
                        " numbers of this rank for the shape ", shape, ", expected ", shape.size());
    return {.data = reinterpret_cast<std::byte*>(data),
            .shape = shape,
            .element_bytes = sizeof(T),
            .add = [](std::byte* sum, const std::byte* row, Index row_size) {
              auto* s = reinterpret_cast<T*>(sum);
              const auto* r = reinterpret_cast<const T*>(row);
              for (Index j = 0; j < row_size; ++j) s[j] = static_cast<T>(s[j] + r[j]);
            }};
  }
  static OwnRows own(Tensor mine) {
    auto memory = std::make_shared<Tensor>(std::move(mine));
    OwnRows rows = described(memory->data(), memory->size(), memory->shape());
    rows.writable = !memory->read_only();
    rows.memory = std::move(memory);
    return rows;
  }
  static OwnRows own(Array<T> mine, const Shape& shape) {
    auto memory = std::make_shared<Array<T>>(std::move(mine));
    OwnRows rows = described(memory->data(), std::ssize(*memory), shape);
    rows.memory = std::move(memory);
    return rows;
  }
  static OwnRows zeros(const Shape& mine) {
    if constexpr (std::is_same_v<T, real>)
      return own(Tensor::zeros(mine));
    else
      return own(Array<T>(static_cast<std::size_t>(mine.size()), T{0}), mine);
  }
  [[nodiscard]] RowsOf<T> make_rows(Index rows) const {
    const Shape shape = stored_->mine().shape.with_rows(rows);
    if constexpr (std::is_same_v<T, real>)
      return Tensor(shape);
    else
      return Array<T>(static_cast<std::size_t>(shape.size()));
  }
  static std::byte* bytes(RowsOf<T>& rows) { return reinterpret_cast<std::byte*>(rows.data()); }

  std::shared_ptr<StoredRows> stored_;
};
}}  // namespace sar

/// DistributedTensor: rows that all ranks store together, and that each of them can read and change.
///
///     DistributedTensor<> x(comm, data.book, data.features);        // borrows this rank's rows
///     const Tensor rows = x.pull(ids);                              // rows of any rank, whatever the others do
///
///     auto pending = x.start_pull(next_ids);                        // collective: rows travel while this
///     train(batch);                                                 // rank computes
///     const Tensor next = pending.finish();
///
///     x.push(ids, new_rows);                                        // seen by all ranks after barrier()
///     x.barrier();
///
/// There is one copy of each row, at its owner, as in DGL's DistTensor; nothing is cached.
#pragma once

#include <sar/comm/rows/stored_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace sar::inline SAR_PRECISION {

template <class T>
concept RowNumber = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::uint8_t> ||
    std::same_as<T, std::int8_t> || std::same_as<T, std::int16_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t>;

/// Rows of T in memory: a Tensor for real, an Array, row by row, for other numbers.
template <RowNumber T>
using RowsOf = std::conditional_t<std::is_same_v<T, real>, Tensor, Array<T>>;

/// Rows on their way to this rank. All messages were posted when it was made: in between, a rank may compute,
/// make other collective calls, and fail.
template <RowNumber T>
class PendingRows {
 public:
  PendingRows() = default;
  PendingRows(PendingRows&&) noexcept = default;
  PendingRows& operator=(PendingRows other) noexcept {  // what was under way ends with `other`
    std::swap(rows_, other.rows_);
    std::swap(pull_, other.pull_);
    return *this;
  }
  ~PendingRows() = default;

  /// Waits for the rows; once. Local: it waits for messages that have been posted already.
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

/// [N, ...] numbers T, N = book.num_nodes(); rank p stores the rows from book.begin(p) to book.end(p). A
/// handle: copies are the same tensor. With the last handle of a rank, the tensor ends; that is collective,
/// because other ranks may still read (a rank that leaves by an exception does not wait).
///
/// A call that is not collective and fails throws on its rank; unless that is in the body of
/// Communicator::agree, the next collective call of the tensor throws the same on all ranks.
template <RowNumber T = real>
class DistributedTensor {
 public:
  // The constructors are collective. They throw, the same on every rank, InputError for a book that is not of
  // as many ranks as the communicator or not the same on all, and for another shape of the rows on another
  // rank; ShapeError for another number of own rows than the book's, and for rows of 2^31 bytes or more.

  /// Zeros; shape[0] is the number of rows of all ranks. Collective.
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
  /// This rank's rows, [rows of this rank, ...]. Their memory is shared: that of a host's array, borrowed by
  /// Tensor::borrow, must live as long as the tensor. Collective.
  DistributedTensor(const Communicator& comm, const PartitionBook& book,
                    Tensor mine) requires std::same_as<T, real>
      : DistributedTensor(
            comm, [&] { return own(std::move(mine)); }, book) {}
  /// The same for other numbers; `shape` is [rows of this rank, ...]. Collective.
  DistributedTensor(const Communicator& comm, const PartitionBook& book, Array<T> mine,
                    const Shape& shape) requires(!std::same_as<T, real>)
      : DistributedTensor(
            comm, [&] { return own(std::move(mine), shape); }, book) {}
  /// A host's array of this rank's rows, which must live as long as the tensor; `shape` is [rows of
  /// this rank, ...]. For reading when U is const. Collective.
  ///
  /// Where the tensor is made in the body of Communicator::agree, the array must outlive agree(): a rank that
  /// fails in the body does not wait there for the others, which may still read.
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

  /// Row i of the result is row ids[i], of any rank; ids may be repeated. Local: it waits for nobody to make
  /// a call. Rows that are neighbours at their owner and in `ids` come in one message (MPI_Get) for each
  /// owner and GiB. Others are sorted and come at most 16 MiB at a time, one message an owner, with what lies
  /// between near rows. Rows are those of the last barrier(). Throws InputError for an id that does not
  /// exist.
  ///
  /// Where the network cannot read the memory of another host by itself (TCP), the owner answers during any
  /// of its calls of MPI: a rank waits for an owner that computes. pull_all() does not.
  [[nodiscard]] RowsOf<T> pull(std::span<const Index> ids) const {
    RowsOf<T> rows;
    stored_->pull(ids, [&] {
      rows = make_rows(std::ssize(ids));
      return bytes(rows);
    });
    return rows;
  }
  /// The same, of all ranks together. Collective.
  [[nodiscard]] RowsOf<T> pull_all(std::span<const Index> ids) const { return start_pull(ids).finish(); }
  /// The first half of pull_all(): asks for the rows and sends those that others want, as they are now.
  /// finish() of the result waits for them. Buffers of as many rows are held meanwhile. Collective.
  [[nodiscard]] PendingRows<T> start_pull(std::span<const Index> ids) const {
    PendingRows<T> pending;
    pending.pull_ = stored_->start_pull(ids, [&] {
      pending.rows_ = std::make_unique<RowsOf<T>>(make_rows(std::ssize(ids)));
      return bytes(*pending.rows_);
    });
    return pending;
  }

  /// Row ids[i] becomes row i of `rows` at the next barrier(). Local: this rank keeps a copy until then.
  ///
  /// At a barrier(), rows are pushed and added in the order of the ranks, and those of a rank in the order of
  /// its calls and of their ids. So of several rows that are pushed to one id the last one of the highest
  /// rank stays; a row that is pushed replaces what was added before it in this order, and what comes behind
  /// it is added to it. Throws InputError for an id that does not exist and when rows were borrowed for
  /// reading, ShapeError for another number of numbers.
  void push(std::span<const Index> ids, std::span<const T> rows) const {
    stored_->push(ids, reinterpret_cast<const std::byte*>(rows.data()), std::ssize(rows), false);
  }
  void push(std::span<const Index> ids, const Tensor& rows) const requires std::same_as<T, real> {
    push(ids, rows.values());
  }
  /// Adds row i of `rows` to row ids[i] at the next barrier(), in the order that push() describes. Local.
  void push_add(std::span<const Index> ids, std::span<const T> rows) const {
    stored_->push(ids, reinterpret_cast<const std::byte*>(rows.data()), std::ssize(rows), true);
  }
  void push_add(std::span<const Index> ids, const Tensor& rows) const requires std::same_as<T, real> {
    push_add(ids, rows.values());
  }
  /// From now on, all ranks see what has been pushed, and what owners have written to mine(). On an error,
  /// rows are as they were, and what was pushed is forgotten. Holds the rows that arrive. Collective.
  void barrier() const { stored_->barrier(); }

  /// This rank's rows. Local.
  [[nodiscard]] std::span<const T> mine() const {
    const OwnRows& rows = stored_->mine();
    return {reinterpret_cast<const T*>(rows.data), static_cast<std::size_t>(rows.shape.size())};
  }
  /// For writing between a collective call and barrier(), while no rank pulls. Local. Throws InputError when
  /// they were borrowed for reading.
  [[nodiscard]] std::span<T> mine_to_write() const {
    const OwnRows& rows = stored_->mine();
    stored_->require_writable("mine_to_write");
    return {reinterpret_cast<T*>(rows.data), static_cast<std::size_t>(rows.shape.size())};
  }
  [[nodiscard]] const PartitionBook& book() const noexcept { return stored_->book(); }
  [[nodiscard]] const Communicator& comm() const noexcept { return stored_->comm(); }
  /// [N, ...] of all ranks.
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

}  // namespace sar

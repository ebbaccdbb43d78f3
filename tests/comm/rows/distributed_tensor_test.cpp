// SPDX-License-Identifier: MIT
#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/comm/rows/row_window.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>

#include <support/rows.hpp>
#include <support/thrown.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Element j of row i; fits into every type.
template <class T>
T element(Index i, Index j) {
  return static_cast<T>((7 * i + 3 * j) % 113);
}

template <class T>
std::vector<T> own_rows(const Communicator& comm, const PartitionBook& book, Index width) {
  std::vector<T> rows;
  for (Index i = book.begin(comm.rank()); i < book.end(comm.rank()); ++i)
    for (Index j = 0; j < width; ++j) rows.push_back(element<T>(i, j));
  return rows;
}

template <class T>
DistributedTensor<T> numbered(const Communicator& comm, const PartitionBook& book, Index width) {
  const std::vector<T> rows = own_rows<T>(comm, book, width);
  const Shape shape{book.num_nodes(comm.rank()), width};
  if constexpr (std::is_same_v<T, real>)
    return {comm, book, Tensor::from(shape, std::span<const T>(rows))};
  else
    return {comm, book, Array<T>(rows.begin(), rows.end()), shape};
}

template <class T>
bool is_rows(const RowsOf<T>& rows, std::span<const Index> ids, Index width) {
  if (static_cast<Index>(rows.size()) != std::ssize(ids) * width) return false;
  for (Index i = 0; i < std::ssize(ids); ++i)
    for (Index j = 0; j < width; ++j)
      if (rows.data()[i * width + j] != element<T>(ids[i], j)) return false;
  return true;
}

/// Rows of all ranks in a mixed order, some of them twice; none on rank 1.
std::vector<Index> mixed_ids(const Communicator& comm, const PartitionBook& book, Index seed) {
  std::vector<Index> ids;
  if (comm.rank() == 1) return ids;
  for (Index k = 0; k < 2 * book.num_nodes(); ++k)
    ids.push_back((k * 11 + seed + comm.rank()) % book.num_nodes());
  return ids;
}

template <class T>
void check_pulls(const Communicator& comm) {
  const PartitionBook book = uneven_book(comm.size());
  for (const Index width : {0, 1, 5}) {
    const DistributedTensor<T> tensor = numbered<T>(comm, book, width);
    CHECK(tensor.shape() == Shape{book.num_nodes(), width});
    // each rank as often as it likes
    for (Index k = 0; k <= 2 * comm.rank(); ++k) {
      const std::vector<Index> ids = mixed_ids(comm, book, k);
      CHECK(is_rows<T>(tensor.pull(ids), ids, width));
    }
    std::vector<Index> all(book.num_nodes());
    std::iota(all.begin(), all.end(), Index{0});
    CHECK(is_rows<T>(tensor.pull(all), all, width));
    CHECK(is_rows<T>(tensor.pull_all(all), all, width));
    const std::vector<Index> ids = mixed_ids(comm, book, 5), others = mixed_ids(comm, book, 6);
    auto pending = tensor.start_pull(ids);
    auto next = tensor.start_pull(others);
    CHECK(comm.all_reduce(1) == comm.size());
    CHECK(is_rows<T>(next.finish(), others, width));
    CHECK(is_rows<T>(pending.finish(), ids, width));
  }
}

/// What one rank pushes: to each third row, then to some again.
struct Pushed {
  std::vector<Index> ids;
  std::vector<real> rows;
  bool add;
};
std::vector<Pushed> pushes_of(int rank, const PartitionBook& book, Index width) {
  std::vector<Pushed> calls;
  if (rank == 2) return calls;
  for (Index call = 0; call < 6; ++call) {
    Pushed pushed{{}, {}, call % 3 != 1};
    for (Index k = 0; k < book.num_nodes() / 2; ++k) {
      pushed.ids.push_back((k * (2 + call) + rank) % book.num_nodes());
      for (Index j = 0; j < width; ++j)
        pushed.rows.push_back(
            static_cast<real>(std::sin(static_cast<double>(k + 10 * call + 100 * rank + j))));
    }
    calls.push_back(std::move(pushed));
  }
  return calls;
}

}  // namespace

TEST_CASE("any rank reads any rows of any type, with and without the others") {
  const Communicator comm = Communicator::world();
  check_pulls<float>(comm);
  check_pulls<double>(comm);
  check_pulls<std::int64_t>(comm);
  check_pulls<std::int32_t>(comm);
  check_pulls<std::uint8_t>(comm);
}

TEST_CASE("rows that lie far from each other are read without those between") {
  const Communicator comm = Communicator::world();
  const std::size_t usual = comm.max_collective_size();
  // a row counts as near within about a hundred rows; where it is the next one
  for (const auto& [per_rank, width] : {std::pair<Index, Index>{3000, 5}, {40, 600}, {40, 2500}})
    for (const std::size_t most : {std::size_t{20000}, usual}) {
      CAPTURE(width);
      comm.set_max_collective_size(most);
      const PartitionBook book = PartitionBook::even(per_rank * comm.size(), comm.size());
      const DistributedTensor<double> tensor = numbered<double>(comm, book, width);
      std::vector<Index> ids;
      for (const Index row : {per_rank - 1, Index{0}, Index{1}, per_rank / 3, per_rank / 3 + 5, per_rank / 3})
        for (int q = 0; q < comm.size(); ++q) ids.push_back(book.begin(q) + row);
      const auto received = comm.stats().bytes_received;
      CHECK(is_rows<double>(tensor.pull(ids), ids, width));
      const auto rows = static_cast<Index>(comm.stats().bytes_received - received) / (8 * width);
      CHECK(rows <= 12 * (comm.size() - 1));
      CHECK(rows >= 5 * (comm.size() - 1));
    }
}

TEST_CASE("of scattered rows at most so many travel in a message, with those between near ones") {
  const Communicator comm = Communicator::world();
  if (comm.size() == 1) return;                   // there is no other rank to read from
  constexpr Index row_bytes = 1024, rows = 1000;  // rows are near within 4 KiB
  const auto byte_of = [&](int rank, Index row) { return static_cast<std::byte>((31 * rank + row) % 251); };
  const auto mine = std::make_shared<std::vector<std::byte>>(rows * row_bytes);
  for (Index i = 0; i < rows * row_bytes; ++i)
    (*mine)[static_cast<std::size_t>(i)] = byte_of(comm.rank(), i / row_bytes);
  const RowWindow window(comm, mine->data(), rows * row_bytes, mine);
  const int owner = (comm.rank() + 1) % comm.size();
  const std::vector<Index> wanted{900, 0, 1, 4, 20, 29, 25, 20, 40}, places{3, 8, 1, 0, 2, 5, 7, 4, 6};
  for (const auto& [most, want] : {std::pair<Index, std::vector<Index>>{3, {2, 2, 1, 3}},
                                   {5, {5, 1, 5, 2}},
                                   {1000, {5 + 10 + 1 + 1}}}) {  // 0 to 4, 20 to 29, 40, 900
    CAPTURE(most);
    ScatteredRows scattered(owner, wanted, places);
    std::vector<std::byte> out(wanted.size() * row_bytes);
    std::vector<Index> travelled;
    while (!scattered.done()) {
      travelled.push_back(scattered.get(window, row_bytes, most));
      window.wait();
      scattered.copy_to(out.data(), row_bytes);
    }
    CHECK(travelled == want);
    for (std::size_t k = 0; k < wanted.size(); ++k)
      for (Index j = 0; j < row_bytes; ++j)
        REQUIRE(out[static_cast<std::size_t>(places[k] * row_bytes + j)] == byte_of(owner, wanted[k]));
  }
}

TEST_CASE("rows longer than a message travel in several") {
  const Communicator comm = Communicator::world();
  comm.set_max_collective_size(100);
  check_pulls<double>(comm);
}

TEST_CASE("a tensor of a shape is zero, and keeps the shape of its rows") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  const DistributedTensor<> tensor(comm, book, Shape{book.num_nodes(), 2, 3});
  const std::vector<Index> ids{book.num_nodes() - 1, 0};
  const Tensor rows = tensor.pull(ids);
  CHECK(rows.shape() == Shape{2, 2, 3});
  for (const real value : rows.values()) CHECK(value == 0);
  CHECK(DistributedTensor<std::int32_t>(comm, book, Shape{book.num_nodes()}).pull(ids) ==
        Array<std::int32_t>(2, 0));
}

TEST_CASE("a host's array is used where it lies, and its changes are seen after barrier()") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  std::vector<double> state = own_rows<double>(comm, book, 2);
  const Shape shape{book.num_nodes(comm.rank()), 2};
  const std::size_t live = live_bytes();
  const auto tensor = DistributedTensor<double>::borrow(comm, book, std::span(state), shape);
  CHECK(tensor.mine().data() == state.data());
  CHECK(live_bytes() - live < 4096);
  comm.barrier();
  for (double& value : state) value += 0.5;
  tensor.barrier();
  const std::vector<Index> ids = mixed_ids(comm, book, 1);
  const RowsOf<double> rows = tensor.pull(ids);
  bool equal = true;
  for (Index i = 0; i < std::ssize(ids); ++i)
    equal = equal && rows.data()[2 * i] == element<double>(ids[i], 0) + 0.5;
  CHECK(equal);
}

TEST_CASE("rows are pushed and added in the order of ranks, calls and ids") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  constexpr Index width = 3;
  const DistributedTensor<> tensor = numbered<real>(comm, book, width);
  std::vector<real> expected(book.num_nodes() * width);
  for (Index i = 0; i < std::ssize(expected); ++i) expected[i] = element<real>(i / width, i % width);
  std::vector<Index> all(book.num_nodes());
  std::iota(all.begin(), all.end(), Index{0});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const Pushed& call : pushes_of(comm.rank(), book, width)) {
      const Tensor rows = Tensor::from({std::ssize(call.ids), width}, std::span<const real>(call.rows));
      call.add ? tensor.push_add(call.ids, rows) : tensor.push(call.ids, rows);
    }
    comm.barrier();
    CHECK(tensor.pull(all).values().front() == expected.front());  // nobody sees it before barrier()
    tensor.barrier();
    for (int rank = 0; rank < comm.size(); ++rank)
      for (const Pushed& call : pushes_of(rank, book, width))
        for (Index k = 0; k < std::ssize(call.ids); ++k)
          for (Index j = 0; j < width; ++j) {
            real& value = expected[call.ids[k] * width + j];
            value = call.rows[k * width + j] + (call.add ? value : 0);
          }
    const Tensor rows = tensor.pull(all);
    CHECK(std::equal(expected.begin(), expected.end(), rows.values().begin()));
  }
}

TEST_CASE("what owners write is seen after barrier(), and rows in flight are those of before") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  const DistributedTensor<std::int64_t> tensor = numbered<std::int64_t>(comm, book, 2);
  const std::vector<Index> ids = mixed_ids(comm, book, 0);
  auto before = tensor.start_pull(ids);
  for (std::int64_t& value : tensor.mine_to_write()) value = -value;
  tensor.barrier();
  CHECK(is_rows<std::int64_t>(before.finish(), ids, 2));
  Array<std::int64_t> rows = tensor.pull(ids);
  for (std::int64_t& value : rows) value = -value;
  CHECK(is_rows<std::int64_t>(rows, ids, 2));
}

TEST_CASE("rows that cannot be a distributed tensor are refused on all ranks") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  const int last = comm.size() - 1;
  const Index mine = book.num_nodes(comm.rank());
  const auto make = [&](const PartitionBook& wrong, const Shape& shape) {
    return thrown_by_all<Error>(comm, [&] { DistributedTensor<>(comm, wrong, Tensor(shape)); });
  };
  const PartitionBook more = uneven_book(comm.size() + 1);
  CHECK(make(more, {mine, 2}) == concat("a distributed tensor has a partition book of ", comm.size() + 1,
                                        " ranks, expected ", comm.size(), ", as the communicator has"));
  CHECK(thrown_by_all<InputError>(comm, [&] {
          DistributedTensor<>(comm, more, Shape{more.num_nodes(), 1});
        }).find("partition book") != std::string::npos);
  const Index of_last = book.num_nodes(last);
  CHECK(make(book, {comm.rank() == last ? mine + 1 : mine, 2}) ==
        concat("a distributed tensor: this rank's rows are [", of_last + 1, ", 2], expected ", of_last,
               " rows, as the partition book says"));
  CHECK(thrown_by_all<ShapeError>(comm,
                                  [&] {
                                    DistributedTensor<>(comm, book, Shape{7, 1});
                                  }) == concat("a distributed tensor is [7, 1], expected ", book.num_nodes(),
                                               " rows, as the partition book says"));
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          DistributedTensor<std::int32_t>(comm, book, Array<std::int32_t>(3 * mine + 1), {mine, 3});
        }).find("numbers of this rank for the shape") != std::string::npos);
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          DistributedTensor<std::uint8_t>::borrow(comm, book, std::span<std::uint8_t>(), {mine, 3});
        }).find("a distributed tensor: 0 numbers") != std::string::npos);
  CHECK(make(PartitionBook::even(0, comm.size()), {0, Index{1} << 29, 4}) ==
        concat("a distributed tensor has rows of ", sizeof(real) << 31, " bytes, expected less than 2^31"));
  if (comm.size() == 1) return;
  CHECK(make(book, {mine, comm.rank() == last ? 3 : 2}) ==
        concat("a distributed tensor has rows of another shape on rank ", last, " than on rank 0"));
  const PartitionBook other({0, book.num_nodes()});
  std::vector<Index> offsets(comm.size(), 0);
  offsets.push_back(book.num_nodes());
  const PartitionBook mine_only = comm.rank() == last ? PartitionBook(offsets) : book;
  CHECK(make(mine_only, {mine_only.num_nodes(comm.rank()), 2}) ==
        "a distributed tensor has different partition books on different ranks");
}

TEST_CASE("a call that fails on one rank is reported by the next collective call on all, once") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  const DistributedTensor<> tensor = numbered<real>(comm, book, 2);
  const int failing = comm.size() - 1;
  const std::vector<Index> ids{0, 3}, bad{0, book.num_nodes()}, none;
  const std::string no_row =
      concat(": id 1 of 2 is ", book.num_nodes(), ", expected 0 to ", book.num_nodes() - 1);
  const std::vector<real> rows(4);
  const auto fails = [&](const std::string& text, const std::function<void()>& call) {
    for (const bool pulls : {false, true}) {
      if (comm.rank() == failing) CHECK(thrown<Error>(call) == text);
      CHECK(thrown_by_all<Error>(comm, [&] { pulls ? (void)tensor.pull_all(ids) : tensor.barrier(); }) ==
            text);
      CHECK(is_rows<real>(tensor.pull_all(ids), ids, 2));
      tensor.barrier();
    }
  };
  fails("pull" + no_row, [&] { (void)tensor.pull(bad); });
  fails("push" + no_row, [&] { tensor.push(bad, rows); });
  fails("push_add" + no_row, [&] { tensor.push_add(bad, rows); });
  fails("push: 4 numbers for 1 ids, expected 2, as rows are [1, 2]",
        [&] { tensor.push(std::span(ids).first(1), rows); });
  CHECK(thrown_by_all<InputError>(comm, [&] { (void)tensor.pull_all(comm.rank() == failing ? bad : ids); }) ==
        "pull_all" + no_row);
  // in the body of agree(), its end reports it
  CHECK(thrown_by_all<InputError>(comm, [&] {
          comm.agree([&] { (void)tensor.pull(comm.rank() == failing ? bad : none); });
        }) == "pull" + no_row);
  CHECK(is_rows<real>(tensor.pull_all(ids), ids, 2));
}

TEST_CASE("rows that were borrowed for reading are not written") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  const std::vector<real> rows = own_rows<real>(comm, book, 1);
  const DistributedTensor<> tensor(comm, book, Tensor::borrow(rows, {book.num_nodes(comm.rank()), 1}));
  const std::vector<Index> ids{0};
  CHECK(is_rows<real>(tensor.pull(ids), ids, 1));
  CHECK(thrown<InputError>([&] { tensor.push_add(ids, std::vector<real>{1}); }) ==
        "push_add: the rows were borrowed for reading, expected memory that can be written");
  CHECK(thrown<InputError>([&] { (void)tensor.mine_to_write(); }).starts_with("mine_to_write: the rows"));
  CHECK(thrown_by_all<InputError>(comm, [&] { tensor.barrier(); }).starts_with("push_add: the rows"));
}

TEST_CASE("a rank that fails leaves its rows to the others, which find out later") {
  const Communicator comm = Communicator::world();
  const PartitionBook book = uneven_book(comm.size());
  const std::size_t live = live_bytes();
  const int failing = comm.size() - 1;
  const std::vector<Index> ids = mixed_ids(comm, book, 3);
  for (int repetition = 0; repetition < 3; ++repetition)
    CHECK(thrown_by_all<InputError>(comm, [&] {
            comm.agree([&] {
              const DistributedTensor<> tensor = numbered<real>(comm, book, 4);
              const auto pending = tensor.start_pull(ids);
              require<InputError>(comm.rank() != failing, "this rank fails");
              for (int k = 0; k < 20; ++k) CHECK(is_rows<real>(tensor.pull(ids), ids, 4));
              comm.barrier();
            });
          }) == "this rank fails");
  { const DistributedTensor<> next = numbered<real>(comm, book, 1); }
  CHECK(live_bytes() == live);
}

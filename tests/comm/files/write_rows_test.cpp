// SPDX-License-Identifier: MIT

/// Rows of all ranks become one array in the order of the original ids.
#include <sar/comm/rows/write_rows.hpp>

#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"

#include <sar/comm/rows/partition_book.hpp>
#include <sar/core/error.hpp>
#include <sar/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

/// Each rank's ids, in shuffled order: all on the last rank, even parts, or a rank without any.
std::vector<Index> ids_of(const Communicator& comm, Index n, int choice) {
  const KeyedBijection shuffle(n, {static_cast<std::uint64_t>(choice), 5});
  const PartitionBook even = PartitionBook::even(n, comm.size());
  Index begin = even.begin(comm.rank()), end = even.end(comm.rank());
  if (choice == 1) begin = comm.rank() + 1 == comm.size() ? 0 : n, end = n;
  std::vector<Index> ids;
  for (Index i = begin; i < end; ++i) ids.push_back(shuffle(i));
  return ids;
}

double value(Index id, Index column) {
  return static_cast<double>((id * 37 + column * 11) % 1009) / 8;
}

}  // namespace

TEST_CASE("rows of any width, in any distribution, also when ranges are longer than a window") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/rows.npy";
  for (const auto& [n, width] : {std::pair<Index, Index>{1, 3}, {3, 1}, {1000, 7}, {5000, 600}, {10, 0}})
    for (const int choice : {0, 1})
      for (const NpyType type : {NpyType::float32, NpyType::float64, NpyType::float16}) {
        CAPTURE(n);
        const std::vector<Index> ids = ids_of(comm, n, choice);
        Tensor rows(Shape{static_cast<Index>(ids.size()), width});
        for (std::size_t i = 0; i < ids.size(); ++i)
          for (Index j = 0; j < width; ++j)
            rows.row(static_cast<Index>(i))[j] = static_cast<real>(value(ids[i], j));
        write_npy_rows(comm, path, rows, ids, type);
        const NpyFile file(path);
        CHECK(file.type() == type);
        REQUIRE(file.shape() == std::vector<Index>{n, width});
        std::vector<double> read(static_cast<std::size_t>(n * width));
        file.read(0, n * width, std::span<double>(read));
        Index wrong = 0;
        for (Index v = 0; v < n; ++v)
          for (Index j = 0; j < width; ++j)
            wrong += read[static_cast<std::size_t>(v * width + j)] != value(v, j);
        CHECK(wrong == 0);
        comm.barrier();  // before the file is written again
      }
}

TEST_CASE("one number for each node") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/labels.npy";
  constexpr Index n = 700000;  // more than a window
  const std::vector<Index> ids = ids_of(comm, n, 0);
  std::vector<std::int64_t> values;
  for (const Index id : ids) values.push_back(3 * id - 5);
  write_npy_rows(comm, path, std::span<const std::int64_t>(values), ids);
  const NpyFile file(path);
  CHECK(file.type() == NpyType::int64);
  file.expect_dims(1);
  REQUIRE(file.size() == n);
  std::vector<Index> read(static_cast<std::size_t>(n));
  file.read(0, n, std::span<Index>(read));
  Index wrong = 0;
  for (Index v = 0; v < n; ++v) wrong += read[static_cast<std::size_t>(v)] != 3 * v - 5;
  CHECK(wrong == 0);
}

TEST_CASE("ids that are no permutation, rows that do not fit, and places that cannot be written") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/rows.npy";
  const bool odd = comm.rank() + 1 == comm.size();
  std::vector<Index> ids = ids_of(comm, std::max(20, 2 * comm.size()), 0);
  const auto count = static_cast<Index>(ids.size());
  const auto write = [&](const std::string& to, Index rows, Index width, NpyType type = NpyType::float32) {
    write_npy_rows(comm, to, Tensor::zeros({rows, width}), ids, type);
  };
  CHECK(thrown_by_all<InputError>(comm, [&] {
          write(directory.path() + "/no/rows.npy", count, 2);
        }).starts_with(directory.path() + "/no/rows.npy: cannot write"));
  CHECK(thrown_by_all<ShapeError>(comm, [&] {
          write(path, odd ? count + 1 : count, 2);
        }).find("one for each id") != std::string::npos);
  if (comm.size() > 1)
    CHECK(thrown_by_all<ShapeError>(comm, [&] {
            write(path, count, odd ? 1 : 2);
          }).find(" elements, expected 2") != std::string::npos);
  CHECK(thrown_by_all<InputError>(comm, [&] {
          write(path, count, 2, NpyType::int8);
        }).find("the type of the array is int8") != std::string::npos);
  if (odd) ids[0] = ids[1];
  CHECK(thrown_by_all<InputError>(comm, [&] { write(path, count, 2); }).starts_with(path + ": "));
  comm.barrier();
  CHECK(std::filesystem::is_empty(directory.path()));
}

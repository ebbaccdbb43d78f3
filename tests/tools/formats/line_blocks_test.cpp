// SPDX-License-Identifier: MIT
#include <formats/line_blocks.hpp>

#include "support/thrown.hpp"
#include "whole_source.hpp"

#include <sar/core/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

using namespace sar;
using namespace sar::formats;
using namespace sar::test;

namespace {

constexpr Index lines = 5000, block_bytes = 256;

std::string text_of_lines() {
  std::string text;
  for (Index i = 0; i < lines; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

TextCounts count_lines(std::string_view text) {
  const Index count = std::count(text.begin(), text.end(), '\n');
  return {count, count};
}

}  // namespace

TEST_CASE("blocks of a plain and of a packed text: rows in order, little memory at a time") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  for (const bool packed : {false, true}) {
    CAPTURE(packed);
    const std::string path = directory.path() + (packed ? "/lines.gz" : "/lines");
    if (comm.rank() == 0) write_file(path, packed ? gzip(text_of_lines()) : text_of_lines());
    comm.barrier();
    std::string mine;
    Index expected_first = 0, most = 0;
    const TextCounts counts = read_lines(
        comm, path, {}, block_bytes,
        [&](std::string_view text) {
          mine = text;
          return count_lines(text);
        },
        [&](const BlockPlace& at) {
          const Index here = count_lines(mine).rows;
          CHECK((here == 0 || mine.starts_with("line " + std::to_string(at.first_row) + "\n")));
          const auto of_ranks = comm.all_gather(here);
          for (int rank = 0; rank < comm.rank(); ++rank) expected_first += of_ranks[rank];
          CHECK(at.first_row == expected_first);
          CHECK(at.first_line == expected_first);
          for (int rank = comm.rank(); rank < comm.size(); ++rank) expected_first += of_ranks[rank];
          CHECK(at.rows_so_far == expected_first);
          most = std::max(most, comm.all_reduce(std::ssize(mine)));
        });
    CHECK(counts.lines == lines);
    CHECK(counts.rows == lines);
    const Index a_line = 20;
    if (packed) CHECK(most <= 4 * block_bytes + comm.size() * a_line);  // whatever the number of ranks
    if (packed) CHECK(most > std::min(comm.size(), 4) * (block_bytes / 2));
  }
}

TEST_CASE("a reader that has enough rows stops") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/lines.gz";
  if (comm.rank() == 0) write_file(path, gzip(text_of_lines()));
  comm.barrier();
  Index last = 0;
  CHECK(thrown_by_all<InputError>(comm, [&] {
          read_lines(comm, path, {}, block_bytes, count_lines, [&](const BlockPlace& at) {
            last = at.rows_so_far;
            require<InputError>(last <= 100, "more than 100 rows");
          });
        }) == "more than 100 rows");
  CHECK(last < 400);
}

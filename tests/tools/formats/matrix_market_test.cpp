// SPDX-License-Identifier: MIT
#include "source_file.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sar;
using sar::test::blocks_of;
using sar::test::gzip;
using sar::test::SourceFile;
using sar::test::WholeSource;

namespace {

using Edges = std::vector<std::pair<Index, Index>>;

const std::string banner = "%%MatrixMarket matrix coordinate ";

}  // namespace

TEST_CASE("general matrices: entries are edges in the order of the file, for every size of block") {
  const Communicator comm = Communicator::world();
  for (const char* kind : {"real general", "INTEGER general", "pattern general"}) {
    const bool has_values = std::string(kind).find("pattern") == std::string::npos;
    Edges expected;
    std::vector<double> weights;
    std::string text = banner + kind + "\n% a comment\n%\n\n 17 17 40\n";
    for (Index e = 0; e < 40; ++e) {
      expected.emplace_back(e * 5 % 17, e * e % 13);
      weights.push_back(static_cast<double>(e) - 7);
      text += concat(expected.back().first + 1, e % 2 == 0 ? " " : "\t", expected.back().second + 1);
      if (has_values) text += concat(' ', weights.back());
      text += e % 4 == 0 ? "\r\n" : "\n";
    }
    const SourceFile plain(comm, "m.mtx", text);
    const SourceFile packed(comm, "m.mtx.gz", gzip(text, 3));
    for (const SourceFile* file : {&plain, &packed}) {
      for (const Index block : {1, 10, 77, 1 << 22}) {
        const WholeSource whole = file->read(blocks_of(block));
        CHECK(whole.num_nodes == 17);
        CHECK(whole.edges == expected);
        CHECK(whole.edge_data.contains("weight") == has_values);
        if (has_values) CHECK(whole.edge_data.at("weight") == weights);
      }
    }
  }
}

TEST_CASE("symmetric and skew-symmetric matrices: the other half follows each entry") {
  const Communicator comm = Communicator::world();
  const std::string entries = "4 4 3\n2 1 0.5\n3 3 2\n4 2 -1\n";
  const SourceFile symmetric(comm, "m.mtx", banner + "real symmetric\n" + entries);
  for (const Index block : {1, 100}) {
    const WholeSource whole = symmetric.read(blocks_of(block));
    CHECK(whole.edges == Edges{{1, 0}, {0, 1}, {2, 2}, {3, 1}, {1, 3}});
    CHECK(whole.edge_data.at("weight") == std::vector<double>{0.5, 0.5, 2, -1, -1});
  }
  const SourceFile skew(comm, "m.mtx", banner + "real skew-symmetric\n3 3 1\n3 1 4\n");
  CHECK(skew.read().edges == Edges{{2, 0}, {0, 2}});
  CHECK(skew.read().edge_data.at("weight") == std::vector<double>{4, -4});
  const SourceFile few(comm, "m.mtx", banner + "pattern symmetric\n9 9 1\n9 1");
  CHECK(few.read().edges == Edges{{8, 0}, {0, 8}});
}

TEST_CASE("damaged matrices are refused with the line") {
  const Communicator comm = Communicator::world();
  const auto error = [&](const std::string& text, Index block = 1) {
    return SourceFile(comm, "m.mtx", text).error(blocks_of(block));
  };
  const std::string head = banner + "real general\n% c\n3 3 2\n";
  for (const Index block : {1, 1000}) {
    CHECK(error(head + "1 1 1\n3 4 1\n", block) ==
          ": line 5: an entry is '3 4 1', expected row and column from 1 to 3");
    CHECK(error(head + "0 1 1\n3 1 1\n", block) ==
          ": line 4: an entry is '0 1 1', expected row and column from 1 to 3");
    CHECK(error(head + "1 1 1\n\n3 1\n", block) ==
          ": line 6: an entry is '3 1', expected row, column and a finite number");
    CHECK(error(head + "1 1 nan\n3 1 1\n", block) ==
          ": line 4: an entry is '1 1 nan', expected row, column and a finite number");
    CHECK(error(head + "1 1 1 1\n3 1 1\n", block) ==
          ": line 4: an entry is '1 1 1 1', expected row, column and a number");
    CHECK(error(head + "1 1 1\n", block) == ": there are 1 entries, expected 2 by the line of sizes");
    CHECK(error(head + "1 1 1\n1 2 1\n1 3 1\n", block) ==
          ": there are at least 3 entries, expected 2 by the line of sizes");
    CHECK(error(banner + "real skew-symmetric\n3 3 1\n2 2 1\n", block) ==
          ": line 3: an entry is '2 2 1', expected none on the diagonal of a skew-symmetric matrix");
  }
  std::string many = head;
  for (int i = 0; i < 5000; ++i) many += "1 1 1\n";
  CHECK(error(many, 64).starts_with(": there are at least "));  // it is not read to its end
  CHECK(error(many, 64) != ": there are at least 5000 entries, expected 2 by the line of sizes");
  const std::string what =
      ", expected %%MatrixMarket matrix coordinate, then real, integer or pattern, then "
      "general, symmetric or skew-symmetric";
  CHECK(error("%%MatrixMarket matrix array real general\n3 3\n") ==
        ": line 1: the first line is '%%MatrixMarket matrix array real general'" + what);
  CHECK(error(banner + "complex general\n3 3 0\n") ==
        ": line 1: the first line is '%%MatrixMarket matrix coordinate complex...'" + what);
  CHECK(error("1 2 3\n") == ": line 1: the first line is '1 2 3'" + what);
  CHECK(error("") == ": line 1: the file ends here, expected rows, columns and the number of entries");
  CHECK(error(banner + "real general\n3 4 1\n1 1 1\n") ==
        ": line 2: the sizes are '3 4 1', expected rows, as many columns, and the number of entries");
  CHECK(error(banner + "real general\n99999999999 99999999999 1\n1 1 1\n") ==
        ": there are 99999999999 nodes for 1 edges, expected at most 16777216");
  CHECK(error(banner + "real general\n") ==
        ": line 1: the file ends here, expected rows, columns and the number of entries");
}

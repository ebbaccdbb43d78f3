// SPDX-License-Identifier: MIT
#include "source_file.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace sar;
using sar::test::SourceFile;

TEST_CASE("without Arrow, Parquet is refused with what converts it") {
  const Communicator comm = Communicator::world();
  const SourceFile file(comm, "g.parquet", "PAR1....PAR1");
  CHECK(file.error() ==
        ": Parquet is read where sar was built with Apache Arrow, and it was built without, expected a text; "
        "in "
        "Python: import pandas; pandas.read_parquet('" +
            file.path() + "').to_csv('graph.csv', index=False)");
}

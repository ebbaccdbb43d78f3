// SPDX-License-Identifier: MIT

/// A directory that gets its name when it is complete.
#include <sar/comm/rows/new_directory.hpp>

#include "graph/data/dataset_files.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <string>

using namespace sar;
using namespace sar::test;

namespace fs = std::filesystem;

TEST_CASE("a directory that a killed process with this number has left does not block the next one") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  const std::string path = directory.path() + "/out";
  const std::string left = comm.broadcast(concat(path, ".tmp", ::getpid()), 0);
  if (comm.rank() == 0) {
    fs::create_directory(left);
    write_text(left + "/half", "a part");
  }
  comm.barrier();
  {
    NewDirectory made(comm, path);
    CHECK(made.path() == left + "-1");
    if (comm.rank() == 0) write_text(made.path() + "/file", "whole");
    made.commit();
  }
  CHECK(read_text(path + "/file", "a text") == "whole");
  CHECK(!fs::exists(left + "-1"));
  CHECK(fs::exists(left + "/half"));  // perhaps of a process of another host
  CHECK(thrown_by_all<InputError>(comm, [&] { NewDirectory(comm, path); }) ==
        path + ": exists already, expected a directory that can be made");
}

TEST_CASE("without commit() nothing is left") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  { const NewDirectory made(comm, directory.path() + "/out/"); }
  comm.barrier();
  CHECK(fs::is_empty(directory.path()));
  comm.barrier();
  const std::string path = directory.path() + "/none/out";
  CHECK(thrown_by_all<InputError>(comm, [&] { NewDirectory(comm, path); }) ==
        path + ": cannot be made (No such file or directory)");
}

// SPDX-License-Identifier: MIT

/// A file for the tests of formats, and what open_source() makes of it.
#pragma once

#include "whole_source.hpp"

#include "support/thrown.hpp"

#include <formats/open_source.hpp>
#include <sar/core/error.hpp>

#include <algorithm>
#include <string>

namespace sar::test {

/// A file in a directory of its own.
class SourceFile {
 public:
  SourceFile(const Communicator& comm, const std::string& name, const std::string& content)
      : comm_(comm), directory_(comm), path_(directory_.path() + "/" + name) {
    if (comm.rank() == 0) write_file(path_, content);
    comm.barrier();
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] WholeSource read(const formats::SourceOptions& options = {}) const {
    const auto source = formats::open_source(comm_, path_, options);
    return gather_source(*source);
  }
  [[nodiscard]] std::string error(const formats::SourceOptions& options = {}) const {
    const std::string text = thrown_by_all<InputError>(
        comm_, [&] { static_cast<void>(formats::open_source(comm_, path_, options)); });
    return text.substr(std::min(text.size(), text.starts_with(path_) ? path_.size() : 0));
  }

 private:
  Communicator comm_;
  TemporaryDirectory directory_;
  std::string path_;
};

inline formats::SourceOptions blocks_of(Index bytes, formats::NodeIds ids = formats::NodeIds::automatic) {
  formats::SourceOptions options;
  options.block_bytes = bytes;
  options.node_ids = ids;
  return options;
}

}  // namespace sar::test

// SPDX-License-Identifier: MIT

/// What the fuzz targets share: readers take files, libFuzzer gives bytes.
#pragma once

#include <sar/core/error.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace sar::fuzz {

/// A file of this process in memory (or in the temporary directory), with the same name all the time.
inline const std::string& write_input(const std::uint8_t* bytes, std::size_t size,
                                      const std::string& suffix = "") {
  static const std::string path = (access("/dev/shm", W_OK) == 0 ? "/dev/shm/sar_fuzz_" : "/tmp/sar_fuzz_") +
                                  std::to_string(getpid()) + suffix;
  static const bool removed_at_exit = std::atexit([] { std::remove(path.c_str()); }) == 0;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || !removed_at_exit || std::fwrite(bytes, 1, size, file) != size) std::abort();
  std::fclose(file);
  return path;
}

/// Runs a reader, which may refuse the file with an error of the library and nothing else.
template <class Reader>
int run(const Reader& reader) {
  try {
    reader();
  } catch (const Error&) {  // refused, as it should be
  }
  return 0;
}

}  // namespace sar::fuzz

// SPDX-License-Identifier: MIT

/// For the tests of file readers: files that are damaged in every way.
#pragma once

#include "graph/data/dataset_files.hpp"
#include "support/effort.hpp"
#include "support/thrown.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace sar::test {

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_bytes(const std::string& path) {
  return read_text(path, "a file");
}

/// Overwrites the bytes of a value.
template <class T>
void patch(const std::string& path, std::size_t offset, T value) {
  std::string bytes = read_bytes(path);
  REQUIRE(offset + sizeof(T) <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
  write_bytes(path, bytes);
}

/// Overwrites one byte in place: emptying the file first would wait for the disk.
inline void patch_byte(const std::string& path, std::size_t offset, char value) {
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(static_cast<std::streamoff>(offset))
      .put(value);
}

/// Replaces the first occurrence of a text, which must exist.
inline void replace(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_bytes(path);
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  write_bytes(path, text.replace(at, from.size(), to));
}

/// Runs `read` on a file with each of its bytes changed, and on the file shortened to every length; of a long
/// file, outside of the full run, with some 300 of them.
inline void mistreat(const std::string& source, const std::function<void(const std::string&)>& read) {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/file", bytes = read_bytes(source);
  write_bytes(path, bytes);
  const std::size_t step = full_run() ? 1 : 1 + bytes.size() / 300;
  int other = 0;
  for (std::size_t i = 0; i < bytes.size(); i += step) {
    patch_byte(path, i, static_cast<char>(~bytes[i]));
    const std::string text = thrown<InputError>([&] { read(path); });
    if (text != "nothing" && !text.starts_with(path + ": ")) ++other;
    patch_byte(path, i, bytes[i]);
  }
  CHECK(other == 0);
  read(path);
  int not_refused = 0;
  for (std::size_t size = bytes.size() - 1; size < bytes.size(); size -= step) {
    std::filesystem::resize_file(path, size);
    if (!thrown<InputError>([&] { read(path); }).starts_with(path + ": ")) ++not_refused;
  }
  CHECK(not_refused == 0);
}

}  // namespace sar::test

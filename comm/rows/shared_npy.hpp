// SPDX-License-Identifier: MIT

/// A .npy file that all ranks write together.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/npy.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace sar { inline namespace SAR_PRECISION {

/// An array in C order; each rank writes some of its elements. The file is written beside `path` under a
/// temporary name, and removed unless commit() is called. All ranks must see the same file system. Throws
/// InputError on errors.
class SharedNpyFile : NonCopyable {
 public:
  /// Collective. Creates the file. Throws InputError, the same on every rank.
  SharedNpyFile(const Communicator& comm, const std::string& path, std::span<const Index> shape,
                NpyType type);
  ~SharedNpyFile();

  /// Local. Writes elements starting at number `first`, in the representation of the file.
  void write(Index first, std::span<const std::byte> bytes);
  /// Collective. Waits for all ranks, flushes the file to disk and renames it. Throws InputError, the same
  /// on every rank.
  void commit();

 private:
  SharedNpyFile(const Communicator& comm, NpyType type);
  void open(const std::string& path, std::span<const Index> shape, NpyType type);

  Communicator comm_;
  Replacement file_;
  Index data_begin_ = 0;
  Index size_ = 0;  // bytes of all elements
  Index element_bytes_ = 1;
};
}}  // namespace sar

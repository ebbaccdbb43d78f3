/// A .npy file that all ranks write together.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/graph/io/npy.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// An array in C order; each rank writes some of its elements. The file lies beside `path` under another
/// name, and is removed if commit() is not reached. The ranks see the same file system. Errors are
/// InputError.
class SharedNpyFile {
 public:
  /// Collective; throws the same on every rank.
  SharedNpyFile(const Communicator& comm, const std::string& path, std::span<const Index> shape,
                NpyType type);
  ~SharedNpyFile();
  SharedNpyFile(const SharedNpyFile&) = delete;
  SharedNpyFile& operator=(const SharedNpyFile&) = delete;

  /// Writes elements from `first` on, as they shall lie in the file. Local.
  void write(Index first, std::span<const std::byte> bytes);
  /// Flushes to the disk and renames, after all ranks have written. Collective; throws the same on every
  /// rank.
  void commit();

 private:
  SharedNpyFile(const Communicator& comm, NpyType type);
  void open(const std::string& path, std::span<const Index> shape, NpyType type);

  Communicator comm_;
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  Index data_begin_ = 0;
  Index size_ = 0;  // bytes of the elements
  Index element_bytes_ = 1;
};

}  // namespace sar

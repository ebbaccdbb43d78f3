// SPDX-License-Identifier: MIT

// Rank 0 creates the file in its full length and writes the header; the others open it by the name that
// rank 0 broadcasts. Elements are written by pwrite() at their places, without communication. commit():
// each rank flushes and closes the file; after a barrier, rank 0 renames it and flushes the directory.
#include <sar/comm/rows/shared_npy.hpp>
#include <sar/core/error.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace sar { inline namespace SAR_PRECISION {

namespace {

/// Writes all bytes at an offset of the file, in which other ranks write elsewhere.
void write_at(const Replacement& file, Index offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file.descriptor, bytes.data(), std::min(bytes.size(), std::size_t{1} << 30), offset);
    if (written < 0 && errno == EINTR) continue;
    require<InputError>(written > 0, file.target, ": cannot write (", system_error(), ")");
    bytes = bytes.subspan(written);
    offset += written;
  }
}

}  // namespace

// The delegated constructor completes first, so the destructor runs if open() throws.
SharedNpyFile::SharedNpyFile(const Communicator& comm, const std::string& path, std::span<const Index> shape,
                             NpyType type)
    : SharedNpyFile(comm, type) {
  comm.agree([&] { open(path, shape, type); });
}

SharedNpyFile::SharedNpyFile(const Communicator& comm, NpyType type)
    : comm_(comm), element_bytes_(element_bytes(type)) {}

void SharedNpyFile::open(const std::string& path, std::span<const Index> shape, NpyType type) {
  file_.target = path;
  const auto fail_unless = [&](bool done) {
    require<InputError>(done, file_.target, ": cannot write (", system_error(), ")");
  };
  size_ = checked_num_elements(shape, type, path) * element_bytes_;
  const std::string header = format_npy_header(type, shape);
  data_begin_ = static_cast<Index>(header.size());
  if (comm_.rank() == 0) {
    file_ = open_replacement(path);
    fail_unless(::ftruncate(file_.descriptor, data_begin_ + size_) == 0);
    write_at(file_, 0, std::as_bytes(std::span(header)));
  }
  const std::string name = comm_.broadcast(file_.temporary, 0);
  if (comm_.rank() == 0) return;
  file_.descriptor = ::open(name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  fail_unless(file_.descriptor >= 0);
}

SharedNpyFile::~SharedNpyFile() {
  if (file_.descriptor >= 0) ::close(file_.descriptor);
  if (!file_.temporary.empty()) ::unlink(file_.temporary.c_str());
}

void SharedNpyFile::write(Index first, std::span<const std::byte> bytes) {
  const Index offset = first * element_bytes_;
  require<ShapeError>(0 <= offset && offset + static_cast<Index>(bytes.size()) <= size_, file_.target,
                      ": cannot write ", bytes.size(), " bytes from element ", first, " on");
  write_at(file_, data_begin_ + offset, bytes);
}

void SharedNpyFile::commit() {
  comm_.agree([&] {
    const int synced = ::fsync(file_.descriptor);
    const int closed = ::close(file_.descriptor);
    file_.descriptor = -1;
    require<InputError>(synced == 0 && closed == 0, file_.target, ": cannot write (", system_error(), ")");
    comm_.barrier();  // all ranks have written
    if (comm_.rank() != 0) return;
    const bool renamed = ::rename(file_.temporary.c_str(), file_.target.c_str()) == 0;
    require<InputError>(renamed, file_.target, ": cannot write (", system_error(), ")");
    file_.temporary.clear();
    sync_directory(std::filesystem::path(file_.target).parent_path().string());
  });
}
}}  // namespace sar

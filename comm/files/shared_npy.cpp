#include <sar/comm/files/shared_npy.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/npy_header.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

// The delegated constructor completes first, so the destructor runs if open() throws.
SharedNpyFile::SharedNpyFile(const Communicator& comm, const std::string& path, std::span<const Index> shape,
                             NpyType type)
    : SharedNpyFile(comm, type) {
  comm.agree([&] { open(path, shape, type); });
}

SharedNpyFile::SharedNpyFile(const Communicator& comm, NpyType type)
    : comm_(comm), element_bytes_(element_bytes(type)) {}

void SharedNpyFile::open(const std::string& path, std::span<const Index> shape, NpyType type) {
  path_ = path;
  const auto fail_unless = [&](bool done) {
    require<InputError>(done, path_, ": cannot write (", system_error(), ")");
  };
  size_ = checked_num_elements(shape, type, path) * element_bytes_;
  const std::string header = format_npy_header(type, shape);
  data_begin_ = static_cast<Index>(header.size());
  if (comm_.rank() == 0) {
    Replacement made = open_replacement(path);
    path_ = std::move(made.target);
    temporary_ = std::move(made.temporary);
    descriptor_ = made.descriptor;
    fail_unless(::ftruncate(descriptor_, data_begin_ + size_) == 0);
    fail_unless(::pwrite(descriptor_, header.data(), header.size(), 0) == data_begin_);
  }
  const std::string name = comm_.broadcast(temporary_, 0);
  if (comm_.rank() == 0) return;
  descriptor_ = ::open(name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  fail_unless(descriptor_ >= 0);
}

SharedNpyFile::~SharedNpyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void SharedNpyFile::write(Index first, std::span<const std::byte> bytes) {
  Index offset = first * element_bytes_;
  require<ShapeError>(0 <= offset && offset + static_cast<Index>(bytes.size()) <= size_, path_,
                      ": cannot write ", bytes.size(), " bytes from element ", first, " on");
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), std::size_t{1} << 30),
                                     data_begin_ + offset);
    if (written < 0 && errno == EINTR) continue;
    require<InputError>(written > 0, path_, ": cannot write (", system_error(), ")");
    bytes = bytes.subspan(written);
    offset += written;
  }
}

void SharedNpyFile::commit() {
  comm_.agree([&] {
    const int synced = ::fsync(descriptor_);
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    require<InputError>(synced == 0 && closed == 0, path_, ": cannot write (", system_error(), ")");
    comm_.barrier();  // all ranks have written
    if (comm_.rank() != 0) return;
    const bool renamed = ::rename(temporary_.c_str(), path_.c_str()) == 0;
    require<InputError>(renamed, path_, ": cannot write (", system_error(), ")");
    temporary_.clear();
    sync_directory(std::filesystem::path(path_).parent_path().string());
  });
}

}}  // namespace sar

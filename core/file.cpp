#include <sar/core/error.hpp>
#include <sar/core/file.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace sar::inline SAR_PRECISION {

std::string system_error() {
  return std::strerror(errno);
}

InputFile::InputFile(std::string path, const std::string& expected) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  require<InputError>(descriptor_ >= 0, path_, ": cannot open (", system_error(), "), expected ", expected);
  try {
    struct stat status {};
    const bool done = ::fstat(descriptor_, &status) == 0;
    require<InputError>(done, path_, ": cannot read (", system_error(), ")");
    require<InputError>(S_ISREG(status.st_mode), path_, ": not a regular file, expected ", expected);
    size_ = status.st_size;
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read(Index offset, void* out, Index bytes) const {
  auto* at = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, at, std::min(bytes, Index{1} << 30), offset);
    if (got < 0 && errno == EINTR) continue;
    require<InputError>(got >= 0, path_, ": cannot read (", system_error(), ")");
    require<InputError>(got > 0, path_, ": the file ends after ", offset, " bytes, expected ", bytes,
                        " more");
    at += got;
    offset += got;
    bytes -= got;
  }
}

TemporaryFile::TemporaryFile(const std::string& path)
    : path_(path),
      temporary_(concat(path, ".tmp", ::getpid())),
      descriptor_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  require<InputError>(descriptor_ >= 0, path_, ": cannot write (", system_error(), ")");
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void TemporaryFile::write(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, at, std::min(bytes, std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    require<InputError>(written > 0, path_, ": cannot write (", system_error(), ")");
    at += written;
    bytes -= written;
  }
}

void TemporaryFile::commit(bool flushed) {
  // The arguments of `require` are evaluated in any order: the call that sets errno must not be one of them.
  const auto fail_unless = [&](bool done) {
    require<InputError>(done, path_, ": cannot write (", system_error(), ")");
  };
  fail_unless(!flushed || ::fsync(descriptor_) == 0);
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  fail_unless(closed == 0);
  fail_unless(::rename(temporary_.c_str(), path_.c_str()) == 0);
  temporary_.clear();
  if (flushed) sync_directory(std::filesystem::path(path_).parent_path().string());
}

void sync_file_system(const std::string& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require<InputError>(descriptor >= 0, directory, ": cannot open (", system_error(),
                      "), expected a directory");
  const int synced = ::syncfs(descriptor);
  const std::string error = system_error();
  ::close(descriptor);
  require<InputError>(synced == 0, directory, ": cannot write (", error, ")");
}

void sync_directory(const std::string& directory) {
  const std::string path = directory.empty() ? "." : directory;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require<InputError>(descriptor >= 0, path, ": cannot open (", system_error(), "), expected a directory");
  const int synced = ::fsync(descriptor);
  const std::string error = system_error();
  const bool unsupported = errno == EINVAL || errno == EROFS;  // some file systems cannot flush a directory
  ::close(descriptor);
  require<InputError>(synced == 0 || unsupported, path, ": cannot write (", error, ")");
}

// Not std::filesystem::directory_iterator: libstdc++'s ends the program when it gets no memory.
std::vector<std::string> names_in(const std::string& directory, std::error_code& error) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(directory.c_str()), ::closedir);
  error = opened ? std::error_code() : std::error_code(errno, std::generic_category());
  if (!opened) return names;
  while (const dirent* entry = ::readdir(opened.get()))
    if (const std::string name = entry->d_name; name != "." && name != "..") names.push_back(name);
  return names;
}

std::string read_text(const std::string& path, const std::string& expected, Index max_bytes) {
  const InputFile file(path, expected);
  require<InputError>(file.size() <= max_bytes, path, ": the file has ", file.size(), " bytes, expected ",
                      expected, " of at most ", max_bytes);
  std::string text(file.size(), ' ');
  file.read(0, text.data(), file.size());
  return text;
}

void check_writable(const std::string& path) {
  std::error_code error;
  require<InputError>(!std::filesystem::is_directory(path, error), path,
                      ": is a directory, expected a file that can be written");
  const bool fits = !std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error);
  require<InputError>(fits, path, ": not a regular file, expected one that can be replaced");
  const TemporaryFile probe(path);
}

void write_text(const std::string& path, const std::string& text) {
  TemporaryFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace sar

// SPDX-License-Identifier: MIT

// TemporaryFile::commit() flushes the file, closes it, renames it and flushes the directory. A crash at
// any time leaves the old file or the new one under the name, and at most a file TARGET.tmpPID beside it.
// InputFile and TemporaryFile read and write at most 1 GiB per call of the system and go on after short
// counts and EINTR.
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>

#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

std::string system_error() {
  return std::strerror(errno);
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  require<InputError>(!error, path, ": cannot make the directory (", error.message(), ")");
}

namespace {

/// Returns a description of a file that is not a regular one, for messages.
const char* to_string(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// Returns the path with symbolic links resolved; the file need not exist.
std::string end_of_links(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path end = path;
  std::error_code none;
  for (int links = 0; fs::is_symlink(fs::symlink_status(end, none)); ++links) {
    require<InputError>(links < 40, path, ": cannot write (", std::strerror(ELOOP), ")");
    const fs::path target = fs::read_symlink(end, none);
    require<InputError>(!none, path, ": cannot write (", none.message(), ")");
    end = end.parent_path() / target;
  }
  return end.string();
}

/// Flushes a directory with `call`. Some file systems cannot; that is no error if `may_be_unsupported`.
void flush(const std::string& directory, int (*call)(int), bool may_be_unsupported) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require<InputError>(descriptor >= 0, directory, ": cannot open (", system_error(),
                      "), expected a directory");
  const bool done = call(descriptor) == 0 || (may_be_unsupported && (errno == EINVAL || errno == EROFS));
  const std::string error = system_error();
  ::close(descriptor);
  require<InputError>(done, directory, ": cannot write (", error, ")");
}

}  // namespace

InputFile::InputFile(std::string path, const std::string& expected) : path_(std::move(path)) {
  // O_NONBLOCK: do not wait for the writer of a FIFO. O_NOCTTY: do not acquire a controlling terminal.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  const bool is_socket = descriptor_ < 0 && errno == ENXIO;
  require<InputError>(!is_socket, path_, ": is a socket or a device, expected ", expected);
  require<InputError>(descriptor_ >= 0, path_, ": cannot open (", system_error(), "), expected ", expected);
  try {
    struct stat status {};
    const bool done = ::fstat(descriptor_, &status) == 0;
    require<InputError>(done, path_, ": cannot read (", system_error(), ")");
    require<InputError>(S_ISREG(status.st_mode), path_, ": is ", to_string(status.st_mode), ", expected ",
                        expected);
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

Replacement open_replacement(const std::string& path) {
  struct stat status {};
  const bool replaces = ::stat(path.c_str(), &status) == 0;
  require<InputError>(!replaces || S_ISREG(status.st_mode), path, ": is ", to_string(status.st_mode),
                      ", expected a file that can be written");
  Replacement made{end_of_links(path), {}, -1};
  // A process on another host, or a killed one, may have left a file with this process's name.
  for (int attempt = 0; attempt < 100 && made.descriptor < 0; ++attempt) {
    made.temporary = concat(made.target, ".tmp", ::getpid());
    if (attempt > 0) made.temporary += concat('-', attempt);
    made.descriptor =
        ::open(made.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (made.descriptor < 0 && errno != EEXIST) break;
  }
  require<InputError>(made.descriptor >= 0, path, ": cannot write (", system_error(), ")");
  if (replaces) (void)::fchmod(made.descriptor, status.st_mode & 0777);  // some file systems have no modes
  return made;
}

TemporaryFile::~TemporaryFile() {
  if (file_.descriptor >= 0) ::close(file_.descriptor);
  if (!file_.temporary.empty()) ::unlink(file_.temporary.c_str());
}

void TemporaryFile::write(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file_.descriptor, at, std::min(bytes, std::size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    require<InputError>(written > 0, file_.target, ": cannot write (", system_error(), ")");
    at += written;
    bytes -= written;
  }
}

void TemporaryFile::commit(bool flushed) {
  // Arguments of `require` are evaluated in any order: the call that sets errno must come before it.
  const auto fail_unless = [&](bool done) {
    require<InputError>(done, file_.target, ": cannot write (", system_error(), ")");
  };
  fail_unless(!flushed || ::fsync(file_.descriptor) == 0);
  const int closed = ::close(file_.descriptor);
  file_.descriptor = -1;
  fail_unless(closed == 0);
  fail_unless(::rename(file_.temporary.c_str(), file_.target.c_str()) == 0);
  file_.temporary.clear();
  if (flushed) sync_directory(std::filesystem::path(file_.target).parent_path().string());
}

LineFile::LineFile(std::string path, bool append) : path_(std::move(path)) {
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  descriptor_ = ::open(path_.c_str(), append ? flags : flags | O_TRUNC, 0666);
  const bool unread = descriptor_ < 0 && errno == ENXIO;
  require<InputError>(!unread, path_, ": is a FIFO that no program reads, or a socket, expected a file that ",
                      "can be written");
  require<InputError>(descriptor_ >= 0, path_, ": cannot write (", system_error(), ")");
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) size_ = status.st_size;
  (void)::fcntl(descriptor_, F_SETFL, flags & ~O_NONBLOCK);  // from now on, writing to a full pipe waits
}

LineFile::~LineFile() {
  ::close(descriptor_);
}

void LineFile::add(const std::string& line) {
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(descriptor_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const std::string error = system_error();
      const bool whole = size_ < 0 || done == 0 || ::ftruncate(descriptor_, size_) == 0;
      throw InputError(
          concat(path_, ": cannot write (", error, whole ? ")" : "), and the last line is not whole"));
    }
    done += static_cast<std::size_t>(written);
  }
  if (size_ >= 0) size_ += std::ssize(line);
}

void sync_file_system(const std::string& directory) {
  flush(directory, ::syncfs, false);
}

void sync_directory(const std::string& directory) {
  std::error_code none;  // a message that names "." would not tell where
  flush(directory.empty() ? std::filesystem::current_path(none).string() : directory, ::fsync, true);
}

bool is_there(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

// Does not use std::filesystem::directory_iterator: libstdc++'s terminates the program when out of memory.
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
  text.erase(0, static_cast<std::size_t>(byte_order_mark(text, path)));
  return text;
}

void check_writable(const std::string& path) {
  const TemporaryFile probe(path);
}

void write_text(const std::string& path, const std::string& text) {
  TemporaryFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

std::string escaped(const std::string& name) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    if (plain.find(c) != std::string_view::npos && !(c == '.' && text.empty())) {
      text += c;
      continue;
    }
    const auto code = static_cast<unsigned char>(c);
    text += '%';
    text += digits[code >> 4];
    text += digits[code & 15];
  }
  require<InputError>(!text.empty() && text.size() <= 200, "the name '", name.substr(0, 40),
                      "' cannot be that of a file, expected 1 to 200 letters");
  return text;
}

std::string escaped(const std::string& src_type, const std::string& name, const std::string& dst_type) {
  return escaped(src_type) + ":" + escaped(name) + ":" + escaped(dst_type);
}

std::string unescaped(const std::string& name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    unsigned code = 0;
    const char* begin = name.data() + i + 1;
    if (name[i] == '%' && i + 2 < name.size() &&
        std::from_chars(begin, begin + 2, code, 16).ptr == begin + 2) {
      text += static_cast<char>(code);
      i += 2;
    } else {
      text += name[i];
    }
  }
  return text;
}

Index byte_order_mark(std::string_view beginning, const std::string& path) {
  using namespace std::string_view_literals;
  if (beginning.starts_with("\xEF\xBB\xBF"sv)) return 3;
  const bool utf32 = beginning.starts_with("\xFF\xFE\0\0"sv) || beginning.starts_with("\0\0\xFE\xFF"sv);
  const bool utf16 = beginning.starts_with("\xFF\xFE"sv) || beginning.starts_with("\xFE\xFF"sv);
  require<InputError>(!utf32 && !utf16, path, ": the text is in UTF-", utf32 ? 32 : 16,
                      " by its first bytes, expected UTF-8 (iconv -f UTF-", utf32 ? 32 : 16, " -t UTF-8)");
  return 0;
}

// Protocol: open or create the file, call flock() without waiting, then compare device and inode of the
// open file with those that the name has now. A holder removes the file before it closes it. So a process
// may get the lock on a file that has lost its name; it then opens the name again. Attempts are 10 ms
// apart. Locks of this process are found in a map by device and inode of the directory.

namespace {

using Place = std::pair<dev_t, ino_t>;

std::mutex held_mutex;

/// The locks of this process by directory.
std::map<Place, std::weak_ptr<const void>>& held() {
  static auto* const locks = new std::map<Place, std::weak_ptr<const void>>;  // outlives every lock
  return *locks;
}

/// An open lock file, locked or not.
class LockFile : NonCopyable {
 public:
  explicit LockFile(std::string path) : path_(std::move(path)) {}
  ~LockFile() {
    if (descriptor_ < 0) return;
    if (locked_ && ::getpid() == process_)  // still locked: no one else can have taken it
      ::unlink(path_.c_str());
    ::close(descriptor_);
  }

  enum class Outcome { locked, taken, impossible, again };

  Outcome try_to_lock() {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EACCES)  // owned by another user: it can be locked without write access
      descriptor_ = ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor_ < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) return Outcome::impossible;
    require<InputError>(descriptor_ >= 0, path_, ": cannot write (", system_error(), ")");
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
      return errno == EWOULDBLOCK ? Outcome::taken : Outcome::impossible;
    struct stat mine {
    }, named{};
    const bool is_named = ::fstat(descriptor_, &mine) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
                          Place(mine.st_dev, mine.st_ino) == Place(named.st_dev, named.st_ino);
    if (!is_named) return Outcome::again;  // its holder has just removed it
    locked_ = true;
    return Outcome::locked;
  }

  /// Writes host, process and time into the file. Errors are ignored: the lock works without the text.
  void sign() const {
    std::array<char, 256> host{};
    (void)::gethostname(host.data(), host.size() - 1);
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    std::array<char, 32> since{};
    (void)std::strftime(since.data(), since.size(), "%Y-%m-%d %H:%M:%S", ::gmtime_r(&now, &utc));
    const std::string text =
        concat("host ", host.data(), ", process ", ::getpid(), ", since ", since.data(), " UTC\n");
    if (::ftruncate(descriptor_, 0) == 0) (void)!::pwrite(descriptor_, text.data(), text.size(), 0);
  }

  [[nodiscard]] std::string holder() const {
    std::array<char, 400> text{};
    const ssize_t bytes = ::pread(descriptor_, text.data(), text.size(), 0);
    std::string line(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    line.erase(std::min(line.find('\n'), line.size()));
    return line.empty() ? "which does not say who it is" : line;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
  bool locked_ = false;
  const ::pid_t process_ = ::getpid();  // a fork that ends does not unlock
};

}  // namespace

DirectoryLock lock_directory(const std::string& directory, std::chrono::milliseconds patience) {
  struct stat status {};
  require<InputError>(::stat(directory.c_str(), &status) == 0, directory, ": cannot open (", system_error(),
                      "), expected a directory");
  const std::scoped_lock guard(held_mutex);
  std::weak_ptr<const void>& known = held()[{status.st_dev, status.st_ino}];
  if (DirectoryLock mine = known.lock()) return mine;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;; std::this_thread::sleep_for(std::chrono::milliseconds(10))) {
    auto file = std::make_shared<LockFile>(directory + "/lock");
    switch (file->try_to_lock()) {
      case LockFile::Outcome::again:
        continue;
      case LockFile::Outcome::impossible:
        return nullptr;
      case LockFile::Outcome::taken:
        if (std::chrono::steady_clock::now() < deadline) continue;
        throw InputError(concat(directory, ": another run uses the directory (", file->holder(),
                                "), expected one that no other run uses"));
      case LockFile::Outcome::locked:
        file->sign();
        known = file;
        return file;
    }
  }
}
}}  // namespace sar

// SPDX-License-Identifier: MIT

// Protocol: open or create the file, call flock() without waiting, then compare device and inode of the
// open file with those that the name has now. A holder removes the file before it closes it. So a process
// may get the lock on a file that has lost its name; it then opens the name again. Attempts are 10 ms
// apart. Locks of this process are found in a map by device and inode of the directory.
#include <sar/core/error.hpp>
#include <sar/core/files/directory_lock.hpp>
#include <sar/core/files/file.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
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
    if (locked_) ::unlink(path_.c_str());  // still locked: no one else can have taken it
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

// SPDX-License-Identifier: MIT

// A library between a program and the C library, preloaded with LD_PRELOAD: counts the calls that write files
// below the folder SAR_DISK_FOLDER, appends them to SAR_DISK_LOG, and lets one of them fail:
//
//   SAR_DISK_RANK  the rank where a call fails; the other ranks only log
//   SAR_DISK_FAIL  the number of the call, from 1 on
//   SAR_DISK_HOW   EIO or ENOSPC: the call fails; short: a write stops in the middle; full: so it does, and
//   from then on every call
//                  that needs room fails with ENOSPC
//
// A line of the log: nanoseconds of the machine's clock when the call had returned, rank, number, call, "ok"
// or "failed", path, and for a rename the new path, separated by tabs. std::ofstream is not seen: the library
// writes its files by descriptors.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

struct Disk {
  std::string folder = variable("SAR_DISK_FOLDER"), log = variable("SAR_DISK_LOG"),
              how = variable("SAR_DISK_HOW");
  std::string rank = variable("OMPI_COMM_WORLD_RANK") + variable("PMI_RANK");
  long fails = rank == variable("SAR_DISK_RANK") ? std::atol(variable("SAR_DISK_FAIL").c_str()) : 0;
  std::mutex mutex;
  std::map<int, std::string> open;  // path of a descriptor
  long calls = 0;
  bool is_full = false;
};

Disk& disk() {
  static auto* const made = new Disk;  // outlives every call
  return *made;
}

/// The function of the C library.
template <class Function>
Function* real(const char* name, Function*) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));  // NOLINT: how dlsym() is used
}
#define REAL(name) real(#name, &name)

/// The absolute path if it is below the folder, or an empty string.
std::string seen(const char* path) {
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (absolute.ends_with('/')) absolute.pop_back();  // of "."
  return !disk().folder.empty() && absolute.starts_with(disk().folder) ? absolute : "";
}
std::string seen(int descriptor) {
  const std::lock_guard lock(disk().mutex);
  const auto found = disk().open.find(descriptor);
  return found == disk().open.end() ? "" : found->second;
}

enum class Fault { none, error, half };

void log_call(long number, std::string_view call, bool ok, const std::string& path, const std::string& to) {
  if (disk().log.empty()) return;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string line = std::to_string(now.tv_sec * 1'000'000'000L + now.tv_nsec) + "\t" + disk().rank +
                           "\t" + std::to_string(number) + "\t" + std::string(call) + "\t" +
                           (ok ? "ok" : "failed") + "\t" + path + (to.empty() ? "" : "\t" + to) + "\n";
  const long file =
      syscall(SYS_openat, AT_FDCWD, disk().log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  (void)!syscall(SYS_write, file, line.data(), line.size());
  syscall(SYS_close, file);
}

/// Makes a call of `path`, or lets it fail: `make(half)` makes it, half of it if `half`. A call with a path
/// that is not seen is only made.
template <class Make>
auto call(const char* name, const std::string& path, bool needs_room, const Make& make,
          const std::string& to = "") {
  if (path.empty()) return make(false);
  Disk& d = disk();
  long number = 0;
  Fault fault = Fault::none;
  {
    const std::lock_guard lock(d.mutex);
    number = ++d.calls;
    if (d.is_full && needs_room) fault = Fault::error;
    if (number == d.fails) {
      const bool is_write = std::string_view(name) == "write" || std::string_view(name) == "pwrite";
      const bool cuts = d.how == "short" || d.how == "full";
      d.is_full = d.how == "full";
      fault = !cuts                     ? Fault::error
              : is_write                ? Fault::half
              : d.is_full && needs_room ? Fault::error
                                        : Fault::none;
    }
  }
  using Result = decltype(make(false));
  if (fault == Fault::error) {
    const bool closes = std::string_view(name) == "close";  // the descriptor is closed all the same
    if (closes) make(false);
    log_call(number, name, false, path, to);
    errno = d.how == "EIO" ? EIO : ENOSPC;
    return static_cast<Result>(-1);
  }
  const Result result = make(fault == Fault::half);
  const int error = errno;
  log_call(number, name, result >= 0, path, to);
  errno = error;
  return result;
}

int opened(const char* name, const char* path, int flags, mode_t mode, int (*open)(const char*, int, ...)) {
  const std::string whole = (flags & O_ACCMODE) == O_RDONLY && (flags & O_DIRECTORY) == 0 ? "" : seen(path);
  const int made = call(name, whole, (flags & O_CREAT) != 0, [&](bool) { return open(path, flags, mode); });
  if (made >= 0 && !whole.empty()) {
    const std::lock_guard lock(disk().mutex);
    disk().open[made] = whole;
  }
  return made;
}

std::size_t part(std::size_t bytes, bool half) {
  return half && bytes > 1 ? bytes / 2 : bytes;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened("open", path, flags, mode, REAL(open));
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return opened("open", path, flags, mode, REAL(open64));
}

ssize_t write(int file, const void* data, std::size_t bytes) {
  return call("write", seen(file), true,
              [&](bool half) { return REAL(write)(file, data, part(bytes, half)); });
}

ssize_t pwrite(int file, const void* data, std::size_t bytes, off_t offset) {
  return call("pwrite", seen(file), true,
              [&](bool half) { return REAL(pwrite)(file, data, part(bytes, half), offset); });
}

ssize_t pwrite64(int file, const void* data, std::size_t bytes, off64_t offset) {
  return call("pwrite", seen(file), true,
              [&](bool half) { return REAL(pwrite64)(file, data, part(bytes, half), offset); });
}

int ftruncate(int file, off_t length) noexcept {
  return call("ftruncate", seen(file), true, [&](bool) { return REAL(ftruncate)(file, length); });
}

int fsync(int file) {
  return call("fsync", seen(file), true, [&](bool) { return REAL(fsync)(file); });
}

int fdatasync(int file) {
  return call("fsync", seen(file), true, [&](bool) { return REAL(fdatasync)(file); });
}

int syncfs(int file) noexcept {
  return call("syncfs", seen(file), true, [&](bool) { return REAL(syncfs)(file); });
}

int close(int file) {
  const std::string path = seen(file);
  {
    const std::lock_guard lock(disk().mutex);
    disk().open.erase(file);
  }
  return call("close", path, true, [&](bool) { return REAL(close)(file); });
}

int mkdir(const char* path, mode_t mode) noexcept {
  return call("mkdir", seen(path), true, [&](bool) { return REAL(mkdir)(path, mode); });
}

int rename(const char* from, const char* to) noexcept {
  return call(
      "rename", seen(from), true, [&](bool) { return REAL(rename)(from, to); }, seen(to));
}

// Errors of these are never made, because what is left then is not the program's fault; they are part of the
// order.
int unlink(const char* path) noexcept {
  const int result = REAL(unlink)(path);
  if (const std::string whole = seen(path); !whole.empty() && result == 0)
    log_call(0, "unlink", true, whole, "");
  return result;
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  std::error_code error;
  const std::string at =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(folder), error).string();
  const int result = REAL(unlinkat)(folder, path, flags);
  const std::string whole = seen((folder == AT_FDCWD ? std::string(path) : at + "/" + path).c_str());
  if (!whole.empty() && result == 0) log_call(0, "unlink", true, whole, "");
  return result;
}

int remove(const char* path) noexcept {
  const int result = REAL(remove)(path);
  if (const std::string whole = seen(path); !whole.empty() && result == 0)
    log_call(0, "unlink", true, whole, "");
  return result;
}
}

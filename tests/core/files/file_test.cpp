// SPDX-License-Identifier: MIT

/// Files: what their errors say.
#include <sar/core/files/file.hpp>

#include "support/thrown.hpp"

#include <sar/core/error.hpp>

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <locale>
#include <string>

using namespace sar;
using namespace sar::test;

namespace {

namespace fs = std::filesystem;

/// An empty directory that goes away.
struct Scratch {
  fs::path path = fs::temp_directory_path() / concat("sar-file-test-", ::getpid());
  Scratch() { fs::create_directories(path); }
  ~Scratch() { fs::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string operator/(const char* name) const { return (path / name).string(); }
};

/// Files of this process end at so many bytes, as on a full disk.
struct FileLimit {
  rlimit before{};
  explicit FileLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const rlimit little{bytes, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
};

TEST_CASE("what is no regular file is refused by its name, without waiting") {
  const Scratch scratch;
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  fs::create_symlink("fifo", scratch / "link");
  const auto opening = [](const std::string& path) {
    return thrown<InputError>([&] { const InputFile file(path, "a text file"); });
  };
  CHECK(opening(scratch / "fifo") == (scratch / "fifo") + ": is a FIFO, expected a text file");
  CHECK(opening(scratch / "link") == (scratch / "link") + ": is a FIFO, expected a text file");
  CHECK(opening(scratch.path.string()) == scratch.path.string() + ": is a directory, expected a text file");
  CHECK(opening("/dev/null") == "/dev/null: is a device, expected a text file");
  CHECK(thrown<InputError>([&] {
          LineFile(scratch / "fifo", false);
        }).starts_with((scratch / "fifo") + ": is a FIFO that no program reads"));
  CHECK(thrown<InputError>([&] { check_writable(scratch / "fifo"); }) ==
        (scratch / "fifo") + ": is a FIFO, expected a file that can be written");
}

TEST_CASE("a file that is written through a link takes the place of its target, and follows no other link") {
  const Scratch scratch;
  fs::create_directory(scratch / "there");
  write_text(scratch / "there/file", "old");
  fs::create_symlink("there/file", scratch / "link");
  fs::create_symlink("there/new", scratch / "to nothing");
  write_text(scratch / "link", "new");
  write_text(scratch / "to nothing", "first");
  CHECK(fs::is_symlink(scratch / "link"));
  CHECK(read_text(scratch / "there/file", "a text") == "new");
  CHECK(read_text(scratch / "there/new", "a text") == "first");
  fs::create_symlink("round", scratch / "round");
  CHECK(thrown<InputError>([&] { write_text(scratch / "round", "x"); }) ==
        (scratch / "round") + ": cannot write (Too many levels of symbolic links)");

  // somebody has laid a link where the temporary file would be
  write_text(scratch / "victim", "untouched");
  fs::create_symlink("victim", concat(scratch / "file", ".tmp", ::getpid()));
  write_text(scratch / "file", "text");
  CHECK(read_text(scratch / "victim", "a text") == "untouched");
  CHECK(read_text(scratch / "file", "a text") == "text");
}

TEST_CASE("a byte order mark is no part of a text, and one of UTF-16 is refused") {
  const Scratch scratch;
  write_text(scratch / "marked", "\xEF\xBB\xBF{}");
  CHECK(read_text(scratch / "marked", "a text") == "{}");
  for (const std::string mark : {"\xFF\xFE", "\xFE\xFF"}) {
    write_text(scratch / "wide", mark + std::string("{\0}\0", 4));
    CHECK(thrown<InputError>([&] {
            static_cast<void>(read_text(scratch / "wide", "a text"));
          }).starts_with((scratch / "wide") + ": the text is in UTF-16 by its first bytes"));
  }
}

TEST_CASE("lines beyond the limit of a file: an error, whole lines stay, no temporary file is left") {
  const Scratch scratch;
  LineFile log(scratch / "log", false);
  {
    const FileLimit limit(20);
    log.add("first line\n");
    CHECK(thrown<InputError>([&] { log.add("a longer second line\n"); }) ==
          (scratch / "log") + ": cannot write (File too large)");
    CHECK(thrown<InputError>([&] { write_text(scratch / "text", std::string(100, 'x')); }) ==
          (scratch / "text") + ": cannot write (File too large)");
  }
  LineFile(scratch / "log", true).add("second\n");
  CHECK(read_text(scratch / "log", "a text") == "first line\nsecond\n");
  CHECK(std::distance(fs::directory_iterator(scratch.path), {}) == 1);
  if (fs::exists("/dev/full"))
    CHECK(thrown<InputError>([] { LineFile("/dev/full", false).add("x\n"); }) ==
          "/dev/full: cannot write (No space left on device)");
}

TEST_CASE("messages can be printed whatever bytes are in a name") {
  CHECK(printable("plain, M\xc3\xbcnchen, \xe6\xbc\xa2, \xf0\x9f\x98\x80\n") ==
        "plain, M\xc3\xbcnchen, \xe6\xbc\xa2, \xf0\x9f\x98\x80\n");
  CHECK(printable(std::string_view("\x1b[2J\0\x7f\r", 7)) == "\\x1b[2J\\x00\\x7f\\x0d");
  CHECK(printable("\xff \xc0\xaf \xc2\x9b \xed\xa0\x80 \xe6\xbc") ==
        "\\xff \\xc0\\xaf \\xc2\\x9b \\xed\\xa0\\x80 \\xe6\\xbc");
  CHECK(printable(printable("\x01")) == "\\x01");
  CHECK(std::string(InputError("name \x1b[31m").what()) == "name \\x1b[31m");
}

TEST_CASE("a file that replaces another one has its permissions") {
  const Scratch scratch;
  const auto mode = [&] { return fs::status(scratch / "file").permissions(); };
  write_text(scratch / "file", "old");
  for (const fs::perms given : {fs::perms(0600), fs::perms(0664), fs::perms(0444)}) {
    fs::permissions(scratch / "file", given);
    write_text(scratch / "file", "new");
    CHECK(mode() == given);
    check_writable(scratch / "file");
    CHECK(mode() == given);
  }
}

TEST_CASE("writing to where a directory is: the reason is that of the call that failed, nothing is left") {
  const Scratch scratch;
  const std::filesystem::path& directory = scratch.path;
  std::filesystem::create_directories(directory / "taken");
  const std::string path = (directory / "taken").string();
  errno = ENOENT;  // of something before
  CHECK(thrown<InputError>([&] { write_text(path, "text"); }) ==
        path + ": is a directory, expected a file that can be written");
  CHECK(thrown<InputError>([&] { check_writable(path); }) ==
        path + ": is a directory, expected a file that can be written");
  CHECK(thrown<InputError>([] { check_writable("/dev/null"); }) ==
        "/dev/null: is a device, expected a file that can be written");
  CHECK(thrown<InputError>([&] { check_writable(path + "/none/file"); }) ==
        path + "/none/file: cannot write (No such file or directory)");
  CHECK(thrown<InputError>([&] { check_writable(path + "/file"); }) == "nothing");
  CHECK(std::filesystem::is_empty(path));
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 1);
}

TEST_CASE("numbers in files and messages do not follow the host's locale") {
  struct Grouped : std::numpunct<char> {
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] char do_thousands_sep() const override { return '.'; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouped));
  const std::string text = concat(1234567, " ", 0.5);
  std::locale::global(before);
  CHECK(text == "1234567 0.5");
}

}  // namespace

TEST_CASE("a fork that ends leaves the lock of its parent") {
  const Scratch folder;
  DirectoryLock lock = lock_directory(folder.path.string(), std::chrono::milliseconds(0));
  REQUIRE(fs::exists(folder.path / "lock"));
  const pid_t child = ::fork();
  if (child == 0) {
    lock.reset();
    ::_exit(0);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(fs::exists(folder.path / "lock"));
  lock.reset();
  CHECK_FALSE(fs::exists(folder.path / "lock"));
}

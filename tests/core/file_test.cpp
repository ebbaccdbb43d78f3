/// Files: what their errors say.
#include <sar/core/file.hpp>

#include "support/thrown.hpp"

#include <sar/core/error.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>
#include <locale>

namespace sar::test {

TEST_CASE("writing to where a directory is: the reason is that of the call that failed, nothing is left") {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / concat("sar-file-test-", ::getpid());
  std::filesystem::create_directories(directory / "taken");
  const std::string path = (directory / "taken").string();
  errno = ENOENT;  // of something before
  CHECK(thrown<InputError>([&] { write_text(path, "text"); }) == path + ": cannot write (Is a directory)");
  CHECK(thrown<InputError>([&] { check_writable(path); }) ==
        path + ": is a directory, expected a file that can be written");
  CHECK(thrown<InputError>([] { check_writable("/dev/null"); }) ==
        "/dev/null: not a regular file, expected one that can be replaced");
  CHECK(thrown<InputError>([&] { check_writable(path + "/none/file"); }) ==
        path + "/none/file: cannot write (No such file or directory)");
  CHECK(thrown<InputError>([&] { check_writable(path + "/file"); }) == "nothing");
  CHECK(std::filesystem::is_empty(path));
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 1);
  std::filesystem::remove_all(directory);
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

}  // namespace sar::test

// SPDX-License-Identifier: MIT
#include "graph/data/dataset_files.hpp"
#include "support/write_npy.hpp"

#include <sar/core/error.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

using namespace sar;
using namespace sar::test;

namespace {

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A file of the given format version with an arbitrary dictionary.
std::string npy_bytes(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) bytes += std::string(2, '\0');
  return bytes + dictionary + data;
}

/// Writes a [rows, 3] array, reads all of it, a range, and a list of rows.
template <class T>
void round_trip(const std::string& path, NpyType type, const std::vector<T>& values) {
  const auto rows = static_cast<Index>(values.size()) / 3;
  write_npy<T>(path, std::array<Index, 2>{rows, 3}, values, type);
  const NpyFile file(path);
  CHECK(file.type() == type);
  CHECK(file.shape() == std::vector<Index>{rows, 3});
  CHECK(file.row_size() == 3);
  std::vector<T> all(values.size());
  file.read<T>(0, file.size(), all);
  CHECK(all == values);
  std::vector<T> part(7);
  file.read<T>(5, 12, part);
  CHECK(part == std::vector<T>(values.begin() + 5, values.begin() + 12));

  std::vector<Index> list;
  std::mt19937 draw(3);
  for (int i = 0; i < 50; ++i) list.push_back(static_cast<Index>(draw()) % rows);
  std::vector<T> picked(list.size() * 3);
  file.read_rows<T>(list, picked);
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(picked[3 * i + k] == values[static_cast<std::size_t>(list[i]) * 3 + k]);
}

template <class T>
std::vector<T> random_values(std::size_t size, int from, int to) {
  std::mt19937 draw(7);
  std::vector<T> values;
  for (std::size_t i = 0; i < size; ++i)
    values.push_back(static_cast<T>(from + static_cast<int>(draw() % static_cast<unsigned>(to - from + 1))));
  return values;
}

}  // namespace

TEST_CASE("arrays of every type come back as they were written") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/array.npy";
  // long enough that several reads, and gaps between rows that are skipped, occur
  constexpr std::size_t size = 3 * 300000;
  round_trip<float>(path, NpyType::float16, random_values<float>(size, -2048, 2048));
  round_trip<float>(path, NpyType::float32, random_values<float>(size, -100000, 100000));
  round_trip<double>(path, NpyType::float32, random_values<double>(size, -100000, 100000));
  round_trip<double>(path, NpyType::float64, random_values<double>(size, -100000, 100000));
  round_trip<std::uint8_t>(path, NpyType::uint8, random_values<std::uint8_t>(size, 0, 255));
  round_trip<std::uint8_t>(path, NpyType::boolean, random_values<std::uint8_t>(size, 0, 1));
  round_trip<std::int32_t>(path, NpyType::int32, random_values<std::int32_t>(size, -1000000, 1000000));
  round_trip<std::int64_t>(path, NpyType::int64, random_values<std::int64_t>(size, -1000000, 1000000));
  round_trip<std::int32_t>(path, NpyType::int8, random_values<std::int32_t>(size, -128, 127));
  round_trip<std::int64_t>(path, NpyType::int16, random_values<std::int64_t>(size, -32768, 32767));
  round_trip<std::int64_t>(path, NpyType::uint16, random_values<std::int64_t>(size, 0, 65535));
  round_trip<std::int64_t>(path, NpyType::uint32, random_values<std::int64_t>(size, 0, 1000000));
  round_trip<std::int64_t>(path, NpyType::uint64, random_values<std::int64_t>(size, 0, 1000000));
  round_trip<std::int64_t>(path, NpyType::float64, random_values<std::int64_t>(size, -1000000, 1000000));
  round_trip<float>(path, NpyType::uint8, random_values<float>(size, 0, 255));
  round_trip<std::int64_t>(path, NpyType::int32, random_values<std::int64_t>(size, -1000000, 1000000));
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) ==
        1);  // nothing temporary is left
}

TEST_CASE("bytes come back as they are, whole and by rows") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/array.npy";
  std::vector<std::byte> bytes;
  for (int i = 0; i < 2 * 3 * 5; ++i) bytes.push_back(static_cast<std::byte>(i));
  std::vector<std::int32_t> values;  // integers are little-endian in a file
  for (int i = 0; i < 3 * 5; ++i) values.push_back(2 * i + 256 * (2 * i + 1));
  write_npy<std::int32_t>(path, std::array<Index, 2>{5, 3}, values, NpyType::int16);
  const NpyFile file(path);
  CHECK(file.shape() == std::vector<Index>{5, 3});
  std::vector<std::byte> part(12);
  file.read_rows_raw(1, 3, part);
  CHECK(part == std::vector<std::byte>(bytes.begin() + 6, bytes.begin() + 18));
  std::vector<std::byte> rows(18);
  file.read_rows_raw(std::array<Index, 3>{4, 0, 4}, rows);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(rows[i] == bytes[24 + i]);
    CHECK(rows[6 + i] == bytes[i]);
    CHECK(rows[12 + i] == bytes[24 + i]);
  }
  CHECK_THROWS_AS(file.read_rows_raw(0, 3, part), ShapeError);
  CHECK_THROWS_AS(file.read_rows_raw(4, 6, part), ShapeError);
  CHECK_THROWS_AS(file.read_rows_raw(std::array<Index, 3>{5, 0, 4}, rows), ShapeError);
  CHECK_THROWS_AS(write_npy<std::int32_t>(path, std::array<Index, 1>{5}, values, NpyType::int16), ShapeError);
}

TEST_CASE("the header has the bytes that NumPy writes") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/array.npy";
  write_npy<std::int32_t>(path, std::array<Index, 1>{2}, std::array<std::int32_t, 2>{258, -1},
                          NpyType::int32);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::string expected = std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                         "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  expected += std::string(127 - expected.size(), ' ') + '\n';
  CHECK(bytes == expected + std::string("\x02\x01\x00\x00\xff\xff\xff\xff", 8));
}

TEST_CASE("headers of all versions and writers are understood") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/array.npy";
  const std::string data("\x01\0\0\0\x02\0\0\0", 8);
  for (const char version : {1, 2, 3}) {
    write_bytes(path,
                npy_bytes("{\"shape\":(2 , 1),\"fortran_order\":False,'descr':'<i4'}\n", data, version));
    const NpyFile file(path);
    CHECK(file.shape() == std::vector<Index>{2, 1});
    std::array<std::int64_t, 2> values{};
    file.read<std::int64_t>(0, 2, values);
    CHECK(values == std::array<std::int64_t, 2>{1, 2});
  }
  write_bytes(path, npy_bytes("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", data));
  CHECK(NpyFile(path).size() == 1);
  write_bytes(path, npy_bytes("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 5), }", ""));
  CHECK(NpyFile(path).num_rows() == 0);
  write_bytes(path, npy_bytes("{'descr': '>i4', 'fortran_order': True, 'shape': (1L, 2L), }", data));
  const NpyFile file(path);  // Python 2; both orders are the same
  CHECK(file.shape() == std::vector<Index>{1, 2});
  CHECK(!file.fortran_order());
  std::array<std::int64_t, 2> values{};
  file.read<std::int64_t>(0, 2, values);
  CHECK(values == std::array<std::int64_t, 2>{1 << 24, 2 << 24});
}

namespace {

/// The bytes of values in the order of the list, the most significant byte first if `big_endian`.
template <class T>
std::string bytes_of(const std::vector<T>& values, bool big_endian) {
  std::string bytes(values.size() * sizeof(T), ' ');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  for (std::size_t i = 0; big_endian && i < bytes.size(); i += sizeof(T))
    std::reverse(bytes.data() + i, bytes.data() + i + sizeof(T));
  return bytes;
}

}  // namespace

TEST_CASE("rows in C order from files of both orders and both byte orders") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/array.npy";
  constexpr Index rows = 70000, a = 3, b = 4;  // longer than the gaps that are read over
  const auto value = [](Index row, Index i, Index j) { return static_cast<float>(row * 12 + i * 4 + j); };
  std::vector<Index> list{rows - 1, 0, 5, 5, 69000, 4};
  std::vector<float> expected;
  for (const Index row : list)
    for (Index i = 0; i < a; ++i)
      for (Index j = 0; j < b; ++j) expected.push_back(value(row, i, j));
  for (const bool fortran : {false, true}) {
    std::vector<float> values;
    for (Index k = 0; k < rows * a * b; ++k)
      values.push_back(fortran ? value(k % rows, k / rows % a, k / rows / a)
                               : value(k / (a * b), k / b % a, k % b));
    for (const bool big : {false, true}) {
      write_bytes(path, npy_bytes(concat("{'descr': '", big ? '>' : '<', "f4', 'fortran_order': ",
                                         fortran ? "True" : "False", ", 'shape': (70000, 3, 4), }"),
                                  bytes_of(values, big)));
      const NpyFile file(path);
      CHECK(file.fortran_order() == fortran);
      std::vector<float> found(expected.size());
      file.read_rows<float>(list, found);
      CHECK(found == expected);
      std::vector<float> some(2 * a * b);
      file.read_rows_raw(list[4], list[4] + 2, std::as_writable_bytes(std::span(some)));
      CHECK(some.front() == value(69000, 0, 0));
      CHECK(some.back() == value(69001, a - 1, b - 1));
    }
  }
}

TEST_CASE("an element that does not fit is named by its place and value") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/array.npy";
  const auto reading = [&]<class T>(T, const std::string& header, const std::string& data) {
    write_bytes(path, npy_bytes("{" + header + "}", data));
    const NpyFile file(path);
    std::vector<T> values(static_cast<std::size_t>(file.size()));
    const std::string text = message_of([&] { file.read<T>(0, file.size(), values); });
    std::vector<Index> rows(static_cast<std::size_t>(file.num_rows()));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Index>(i);
    CHECK(message_of([&] { file.read_rows<T>(rows, values); }) == text);
    return text.substr(std::min(text.size(), path.size() + 2));
  };
  const std::string whole = ", expected a whole number from -9223372036854775808 to 9223372036854775807";
  const std::string c = "'fortran_order': False, 'shape': (2, 3), 'descr': ",
                    f = "'fortran_order': True, 'shape': (2, 3), 'descr': ";
  const std::vector<double> fraction{0, 1, 2, 3, 1.5, std::numeric_limits<double>::quiet_NaN()};
  CHECK(reading(std::int64_t{}, c + "'<f8'", bytes_of(fraction, false)) == "element (1, 1) is 1.5" + whole);
  CHECK(reading(std::int64_t{}, f + "'>f8'", bytes_of(fraction, true)) == "element (0, 2) is 1.5" + whole);
  const std::vector<std::uint64_t> large{0, (std::uint64_t{1} << 63) - 1, 2, std::uint64_t{1} << 63, 4, 5};
  CHECK(reading(std::int64_t{}, c + "'<u8'", bytes_of(large, false)) ==
        "element (1, 0) is 9223372036854775808" + whole);
  CHECK(reading(std::int32_t{}, c + "'<u8'", bytes_of(large, false)) ==
        "element (0, 1) is 9223372036854775807, expected a whole number from -2147483648 to 2147483647");
  const std::vector<float> edge{-0x1p63f, 0x1p62f, 0x1p63f};
  const std::string row = "'fortran_order': False, 'shape': (3,), 'descr': ";
  CHECK(reading(std::int64_t{}, row + "'<f4'", bytes_of(edge, false)) == "element 2 is 9.223372e+18" + whole);
  CHECK(reading(std::uint8_t{}, row + "'<i2'", bytes_of<std::int16_t>({255, 256, -1}, false)) ==
        "element 1 is 256, expected a whole number from 0 to 255");
  CHECK(reading(std::int64_t{}, row + "'<f2'", bytes_of<std::uint16_t>({0x3c00, 0x4000, 0x7e00}, false)) ==
        "element 2 is nan" + whole);
}

TEST_CASE("a file that cannot be used is named with what was found and what was expected") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/array.npy";
  const auto opening = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    return message_of([&] { NpyFile file(path); });
  };
  const auto dictionary = [](const std::string& descr, const std::string& order, const std::string& shape) {
    return npy_bytes("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + "}",
                     std::string(8, '\0'));
  };
  CHECK(message_of([&] { NpyFile file(path); }) ==
        path + ": cannot open (No such file or directory), expected a .npy file");
  CHECK(message_of([&] { NpyFile file(directory.path()); }) ==
        directory.path() + ": is a directory, expected a .npy file");
  CHECK(opening("") == path + ": the file has 0 bytes, expected a .npy file with a header of at least 10");
  CHECK(opening("PK\x03\x04 something else") ==
        path + ": the file does not begin with \\x93NUMPY, expected a .npy file");
  CHECK(opening(npy_bytes("{}", "", 4)) == path + ": .npy version 4.0, expected 1.0, 2.0 or 3.0");
  CHECK(opening(npy_bytes(std::string(300, ' '), "").substr(0, 100)) ==
        path + ": the file has 100 bytes, expected a header of 310");
  CHECK(opening(dictionary("'<i4'", "False", "(3,)")) ==
        path + ": the file has 8 bytes of data, expected 12 for shape (3,) of int32");
  CHECK(opening(dictionary("'<i4'", "False", "(1,)")) ==
        path + ": the file has 8 bytes of data, expected 4 for shape (1,) of int32");
  const std::string known =
      ", expected bool, or integers or floating-point numbers of at most 64 bits, as numpy.save(path, "
      "array.astype(numpy.float32)) writes them";
  for (const std::string descr : {"<c16", "<M8[ns]", "<U3", "<f16", "|V2", "|S4", "x", "<i3"})
    CHECK(opening(dictionary("'" + descr + "'", "False", "(2,)")) ==
          path + ": the array has dtype '" + descr + "'" + known);
  CHECK(opening(dictionary("'|O'", "False", "(2,)")) ==
        path + ": the array has dtype '|O' (Python objects)" + known);
  CHECK(opening(dictionary("[('a', '<i4')]", "False", "(2,)")) ==
        path +
            ": the array has a structured dtype, expected an array for each of its fields, such as "
            "numpy.save(path, array['x'])");
  CHECK(opening(dictionary("'<f8'", "False", "(4611686018427387904, 3)")) ==
        path +
            ": shape (4611686018427387904, 3) of float64 has more bytes than a file can have, expected less "
            "than 2^63");
  for (const char* shape : {"(-1,)", "(2", "(x,)", "(99999999999999999999,)", "2", ""})
    CHECK(opening(dictionary("'<i4'", "False", shape)).find(": the .npy header cannot be understood") !=
          std::string::npos);
  CHECK(opening(npy_bytes("{'descr': '<i4', 'shape': (2,)}", "")).find("cannot be understood") !=
        std::string::npos);
  std::string ones = "(1";
  for (int d = 1; d < 65; ++d) ones += ", 1";
  CHECK(opening(dictionary("'<i4'", "False", ones + ")")) ==
        path + ": the array has 65 dimensions, expected at most 64");
}

TEST_CASE("columns without rows take no time, however many there are") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/wide.npy";
  write_bytes(path, npy_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 1000000000000)}", ""));
  const NpyFile file(path);
  CHECK(file.num_rows() == 0);
  file.read_rows<float>(std::span<const Index>(), std::span<float>());
  file.read_rows_raw(0, 0, std::span<std::byte>());
}

TEST_CASE("a header that would take much memory is refused before it is read") {
  const std::array<unsigned char, 12> head{0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xff, 0xff, 0xff, 0x7f};
  CHECK(message_of([&] { static_cast<void>(parse_npy_preamble(head.data(), Index{1} << 40, "a: x")); }) ==
        "a: x: the .npy header has 2147483647 bytes, expected at most 1048576");
}

TEST_CASE("dimensions, ranges and a file that shrinks are checked") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/array.npy";
  write_npy<float>(path, std::array<Index, 2>{2, 2}, std::array<float, 4>{1, 2, 3, 4}, NpyType::float32);
  const NpyFile file(path);
  file.expect_dims(2);
  CHECK(message_of([&] { file.expect_dims(1); }) == path + ": shape is (2, 2), expected 1 dimension");
  std::array<float, 4> values{};
  CHECK_THROWS_AS(file.read<float>(1, 5, values), ShapeError);
  CHECK_THROWS_AS(file.read<float>(0, 3, values), ShapeError);
  CHECK_THROWS_AS(file.read_rows<float>(std::array<Index, 2>{0, 2}, values), ShapeError);
  CHECK_THROWS_AS(write_npy<float>(path, std::array<Index, 1>{3}, values, NpyType::float32), ShapeError);
  std::filesystem::resize_file(path, 140);
  CHECK(message_of([&] { file.read<float>(0, 4, values); }) ==
        path + ": the file ends after 140 bytes, expected 4 more");
  CHECK(message_of([&] {
          write_npy<float>(directory.path() + "/none/x.npy", std::array<Index, 1>{4}, values,
                           NpyType::float32);
        }) == directory.path() + "/none/x.npy: cannot write (No such file or directory)");
}

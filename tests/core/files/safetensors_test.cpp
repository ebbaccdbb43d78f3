// SPDX-License-Identifier: MIT
#include "support/effort.hpp"
#include "support/rows.hpp"
#include "support/thrown.hpp"

#include "graph/data/dataset_files.hpp"

#include <sar/core/error.hpp>
#include <sar/core/files/safetensors.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace sar;
using namespace sar::test;

namespace {

const std::string data = std::string(SAR_TEST_DATA) + "/weights/";

const SafetensorsEntry& entry(const SafetensorsFile& file, std::string_view name) {
  for (const SafetensorsEntry& candidate : file.entries())
    if (candidate.name == name) return candidate;
  throw Error("no " + std::string(name));
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A file of this header (and as much data), whose length is told right unless `length` says otherwise.
std::string file_of(const std::string& header, std::size_t data_bytes = 0, std::uint64_t length = ~0ull) {
  if (length == ~0ull) length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + std::string(data_bytes, '\0');
}

/// Value written as `type` and read again.
double through(double value, SafetensorsType type) {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/x";
  write_safetensors(path, {{"x", Tensor::full({1}, static_cast<real>(value))}}, {}, type);
  const SafetensorsFile file(path);
  REQUIRE(file.entries()[0].type == type);
  return static_cast<double>(file.tensor(file.entries()[0]).item());
}

/// Files that are not right.
class Wrong {
 public:
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The message about a file with these bytes.
  [[nodiscard]] std::string refused(const std::string& bytes) const {
    write_bytes(path_, bytes);
    const std::string message = thrown<InputError>([&] { const SafetensorsFile file(path_); });
    CHECK(message.starts_with(path_ + ": "));
    return message;
  }

 private:
  TemporaryDirectory directory_{Communicator::self()};
  std::string path_ = directory_.path() + "/x";
};
#define REFUSED(bytes, words) \
  CHECK_MESSAGE(wrong.refused(bytes).find(words) != std::string::npos, wrong.refused(bytes))

/// A header with one tensor.
std::string described(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

}  // namespace

TEST_CASE("a file of every type, written byte by byte, is read") {
  const SafetensorsFile file(data + "all_types.safetensors");
  REQUIRE(file.entries().size() == 14);
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}, {"über", "ä\n\"quoted\""}});
  file.verify_checksum();  // it has none
  const Tensor expected = Tensor::from({2, 3}, {1, -2.5, 0.15625, 65280, 0x1p-20, -0.0});
  for (const std::string name : {"f64", "f32", "f16", "bf16"}) {
    CAPTURE(name);
    const Tensor found = file.tensor(entry(file, name));
    CHECK(same_bits(found, expected));
    CHECK(std::signbit(found.data()[5]));
  }
  CHECK(same_bits(file.tensor(entry(file, "number")), Tensor::full({1}, 0.5)));
  CHECK(file.tensor(entry(file, "empty")).shape() == Shape{0, 3});
  CHECK(file.integer(entry(file, "i64")) == -(std::int64_t{1} << 62));
  CHECK(file.integer(entry(file, "i32")) == -70000);
  CHECK(file.integer(entry(file, "i16")) == -300);
  CHECK(file.integer(entry(file, "i8")) == -3);
  CHECK(file.integer(entry(file, "u8")) == 200);
  CHECK(file.integer(entry(file, "bool")) == 1);

  const SafetensorsEntry& doubles = entry(file, "f64");
  std::vector<double> values(doubles.size);
  REQUIRE(doubles.bytes() == 48);
  file.read_raw(doubles, std::as_writable_bytes(std::span(values)));
  CHECK(values == std::vector<double>{1, -2.5, 0.15625, 65280, 0x1p-20, -0.0});
  CHECK(thrown<ShapeError>([&] {
          file.read_raw(doubles, std::as_writable_bytes(std::span(values).first(5)));
        }).find("the tensor 'f64' has 48 bytes, which cannot be read into 40") != std::string::npos);

  const auto tensor = [&](const char* name) {
    return thrown<InputError>([&] { static_cast<void>(file.tensor(entry(file, name))); });
  };
  CHECK(tensor("five.dimensions").find("has shape [1, 1, 1, 1, 1], expected 4 dimensions at most") !=
        std::string::npos);
  CHECK(tensor("i64").find("the tensor 'i64' has dtype I64, expected F16, BF16, F32 or F64") !=
        std::string::npos);
  const auto integer = [&](const char* name) {
    return thrown<InputError>([&] { static_cast<void>(file.integer(entry(file, name))); });
  };
  CHECK(integer("two").find("has dtype I64 and shape [2], expected one integer") != std::string::npos);
  CHECK(integer("number").find("has dtype F32 and shape [], expected one integer") != std::string::npos);
}

TEST_CASE("values that are not finite, or not in this precision, are refused") {
  const SafetensorsFile file(data + "not_finite.safetensors");
  const auto message = [&](const char* name) {
    return thrown<InputError>([&] { static_cast<void>(file.tensor(entry(file, name))); });
  };
  CHECK(message("nan").find("the tensor 'nan' has the value nan, expected finite numbers") !=
        std::string::npos);
  CHECK(message("infinite").find("'infinite' has the value inf") != std::string::npos);
  if (sizeof(real) == 4)
    CHECK(message("large").find("expected finite numbers of single precision") != std::string::npos);
  else
    CHECK(message("large") == "nothing");
}

TEST_CASE("what is written is the expected file, byte by byte") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/x";
  write_safetensors(path, {{"a", Tensor::from({2, 2}, {1, 2.5, -3, 4})}}, {{"calls", 7}},
                    SafetensorsType::float32, {{"format", "pt"}});
  CHECK(bytes_of(path) == bytes_of(data + "written.safetensors"));
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);  // nothing temporary
}

TEST_CASE("every type goes through a file; longer tensors than a window") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/x";
  const Tensor values = random_values({1000, 70, 2});
  for (const auto& [type, accepted] : {std::pair{SafetensorsType::float64, 0.0},
                                       {SafetensorsType::float32, 0x1p-24},
                                       {SafetensorsType::float16, 0x1p-11},
                                       {SafetensorsType::bfloat16, 0x1p-8}}) {
    CAPTURE(to_string(type));
    write_safetensors(path, {{"x", values}, {"empty", Tensor({0, 4})}, {"y", Tensor::full({3}, 1)}},
                      {{"count", 3}}, type);
    const SafetensorsFile file(path);
    file.verify_checksum();
    const Tensor found = file.tensor(entry(file, "x"));
    REQUIRE(found.shape() == values.shape());
    double worst = 0;
    for (Index i = 0; i < found.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(found.data()[i]) / values.data()[i] - 1));
    CHECK(worst <= accepted * 1.0001 + (type == SafetensorsType::float16 ? 0.02 : 0));  // subnormal halves
    CHECK(file.tensor(entry(file, "empty")).shape() == Shape{0, 4});
    CHECK(same_bits(file.tensor(entry(file, "y")), Tensor::full({3}, 1)));
    CHECK(file.integer(entry(file, "count")) == 3);
    for (const SafetensorsEntry& each : file.entries()) CHECK(each.offset % element_bytes(each.type) == 0);
  }
}

TEST_CASE("rounding is to nearest, ties to even, and what does not fit is an error") {
  const auto bf16 = [](double value) { return through(value, SafetensorsType::bfloat16); };
  CHECK(bf16(1 + 0x1p-8) == 1);           // a tie: down to even
  CHECK(bf16(1 + 0x3p-8) == 1 + 0x1p-6);  // a tie: up to even
  CHECK(bf16(1 + 0x1p-8 + 0x1p-20) == 1 + 0x1p-7);
  CHECK(bf16(-(2 - 0x1p-9)) == -2);       // carries into the exponent
  CHECK(bf16(0x1.fep127) == 0x1.fep127);  // the largest
  CHECK(bf16(0x1p-133) == 0x1p-133);      // the smallest subnormal
  CHECK(bf16(0x1p-134) == 0);             // a tie: to even
  CHECK(bf16(0x3p-134) == 0x1p-132);
  CHECK(through(65519, SafetensorsType::float16) == 65504);
  if (sizeof(real) == 8) CHECK(bf16(1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);  // not rounded to float in between

  const auto refused = [](double value, SafetensorsType type) {
    return thrown<InputError>([&] { through(value, type); });
  };
  CHECK(refused(0x1.ffp127, SafetensorsType::bfloat16).find("expected a finite number as BF16") !=
        std::string::npos);
  CHECK(refused(65520, SafetensorsType::float16).find("the value 65520 of 'x' cannot be written") !=
        std::string::npos);
  CHECK(refused(NAN, SafetensorsType::float32).find("the value nan of 'x'") != std::string::npos);
  if (sizeof(real) == 8) CHECK(refused(1e39, SafetensorsType::float32).find("as F32") != std::string::npos);
  CHECK(refused(INFINITY, SafetensorsType::float64).find("as F64") != std::string::npos);
  CHECK(refused(1, SafetensorsType::int64).find("cannot be written as I64") != std::string::npos);
}

TEST_CASE("writing refuses names that a file cannot have, and leaves an existing file alone") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/x";
  const Tensor one = Tensor::full({1}, 1);
  write_bytes(path, "before");
  const auto message = [&](const std::string& first, const std::string& second) {
    return thrown<InputError>(
        [&] { write_safetensors(path, {{first, one}, {second, one}}, {}, SafetensorsType::float32); });
  };
  CHECK(message("a", "a").find("the name 'a' cannot be written twice") != std::string::npos);
  CHECK(message("__metadata__", "a").find("'__metadata__' cannot be written twice") != std::string::npos);
  CHECK(message("a", "\xff").find("is not UTF-8") != std::string::npos);
  CHECK(bytes_of(path) == "before");
  CHECK(thrown<InputError>([&] {
          write_safetensors(path + "/y", {}, {}, SafetensorsType::float32);
        }).find("cannot write (Not a directory)") != std::string::npos);
}

TEST_CASE("files of a wrong length are refused") {
  const Wrong wrong;
  const std::string good = described("\"F32\"", "[2,1]", "[0,8]");
  write_bytes(wrong.path(), file_of(good, 8));
  CHECK(SafetensorsFile(wrong.path()).entries().size() == 1);
  write_bytes(wrong.path(), file_of("{}"));
  CHECK(SafetensorsFile(wrong.path()).entries().empty());
  REFUSED("", "the file has 0 bytes");
  REFUSED("short", "the file has 5 bytes");
  REFUSED(file_of(good, 8, 1000), "a header of 1000, expected");
  REFUSED(file_of(good, 8, std::numeric_limits<std::uint64_t>::max() - 1),
          "a header of 18446744073709551614");
  REFUSED(file_of(good, 8, std::uint64_t{1} << 63), "a header of 9223372036854775808");
  REFUSED(file_of(good, 8, 0), "does not begin with '{'");
  REFUSED(file_of(good, 8, 20), "no JSON at its byte");
  REFUSED(file_of(good, 8).substr(0, 40), "the file has 40 bytes and a header of");
  REFUSED(file_of(good, 7), "the file has 7 bytes of data, expected 8");
  REFUSED(file_of(good, 9), "the file has 9 bytes of data, expected 8");
  CHECK(thrown<InputError>([&] {
          const SafetensorsFile file(std::filesystem::path(wrong.path()).parent_path().string());
        }).find("is a directory, expected a .safetensors file") != std::string::npos);
  CHECK(thrown<InputError>([&] {
          const SafetensorsFile file(wrong.path() + "y");
        }).find("cannot open (No such file") != std::string::npos);
}

TEST_CASE("a file of torch.save is refused, and how to convert it is said") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/model.pt";
  // the first bytes of what PyTorch 2.2 and 1.5 write
  for (const std::string& begin :
       {std::string("PK\3\4\0\0\10\10\0\0", 10), std::string("\x80\2\x8a\nl\xfc\x9c\x46\xf9 ")}) {
    write_bytes(path, begin + std::string(100, ' '));
    CHECK(thrown<InputError>([&] { const SafetensorsFile file(path); }) ==
          path +
              ": the file is one of torch.save, expected a .safetensors file, which Python makes of it: "
              "safetensors.torch.save_file(torch.load('" +
              path + "', weights_only=True), 'weights.safetensors')");
  }
}

TEST_CASE("headers that are no JSON, or another, are refused") {
  const Wrong wrong;
  REFUSED(file_of("[]"), "does not begin with '{'");
  REFUSED(file_of("{\"a\":\"\xff\"}"), "no JSON at its byte");
  REFUSED(file_of(R"({"a":1e999})"), "a number that is too large");
  REFUSED(file_of(R"({"a":1})"), "the tensor 'a' is described otherwise");
  REFUSED(file_of(R"({"a":[[[[]]]]})"), "nested 4 deep");
  REFUSED(file_of(concat("{\"a\":", std::string(100000, '['))), "nested 4 deep");
  REFUSED(
      file_of(
          R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})",
          2),
      "the name 'a' twice");
  REFUSED(file_of(R"({"a":{"dtype":"U8","dtype":"F32","shape":[],"data_offsets":[0,1]}})", 1),
          "the name 'dtype' twice");
  REFUSED(file_of(R"({"__metadata__":[]})"), "__metadata__ is array, expected an object or null");
  const std::string one =
      R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})";  // as the reference reader
  write_bytes(wrong.path(), file_of(R"({"__metadata__":null,)" + one, 4));
  CHECK(SafetensorsFile(wrong.path()).entries().size() == 1);
  REFUSED(file_of("{" + one + std::string(3, '\0'), 4), "is no JSON at its byte 54");
  REFUSED(file_of(R"({"__metadata__":{"epoch":1}})"),
          "__metadata__ has number as 'epoch', expected a string");
}

TEST_CASE("tensors whose description is not right are refused") {
  const Wrong wrong;
  REFUSED(file_of(R"({"a":{"dtype":"F32","shape":[2]}})"), "the tensor 'a' is described otherwise");
  REFUSED(file_of(described("\"F8_E4M3\"", "[8]", "[0,8]"), 8), "has dtype F8_E4M3, expected BOOL");
  REFUSED(file_of(described("32", "[2]", "[0,8]"), 8), "has dtype number, expected BOOL");
  REFUSED(file_of(described("\"F32\"", "2", "[0,8]"), 8), "shape is number, expected an array");
  for (const char* extent : {"-1", "2.0", "1e3", "\"2\"", "18446744073709551616", "9223372036854775808"})
    REFUSED(file_of(described("\"F32\"", concat("[", extent, "]"), "[0,8]"), 8),
            "shape has an element that is not an integer from 0 to below 2^63");
  REFUSED(file_of(described("\"F32\"", "[4294967296,4294967296]", "[0,0]")),
          "more bytes than a file can have");
  REFUSED(file_of(described("\"F64\"", "[2305843009213693952]", "[0,0]")), "more bytes than a file can have");
  std::string ones = "[1";
  for (int d = 1; d < 65; ++d) ones += ",1";
  REFUSED(file_of(described("\"F32\"", ones + "]", "[0,4]"), 4), "has 65 dimensions, expected at most 64");
  REFUSED(file_of(described("\"F32\"", "[3]", "[0,8]"), 8),
          "has 8 bytes of data, expected 12 for shape [3] of F32");
  REFUSED(file_of(described("\"F32\"", "[2]", "[8,0]"), 8),
          "has data_offsets [8, 0], expected begin and end");
  REFUSED(file_of(described("\"F32\"", "[2]", "[0,8,16]"), 8), "has data_offsets [0, 8, 16]");
  REFUSED(file_of(described("\"F32\"", "[2]", "[-8,0]"), 8), "data_offsets has an element");
  REFUSED(file_of(described("\"F32\"", "[2]", "[4,12]"), 12), "begin at byte 4, expected 0");
  REFUSED(file_of(described("\"F32\"", "[2]", "[0,8]"), 0), "has 0 bytes of data, expected 8");
  REFUSED(file_of(described("\"F32\"", "[1000000000000]", "[0,4000000000000]"), 8), "expected 4000000000000");
}

TEST_CASE("tensors that leave gaps or overlap are refused") {
  const Wrong wrong;
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  write_bytes(wrong.path(), file_of(two("[4,8]", "[0,4]"), 8));
  CHECK(SafetensorsFile(wrong.path()).entries()[0].name == "b");  // in any order
  REFUSED(file_of(two("[0,4]", "[3,7]"), 7), "the data of the tensor 'b' begin at byte 3, expected 4");
  REFUSED(file_of(two("[0,4]", "[0,4]"), 4), "begin at byte 0, expected 4");
  REFUSED(file_of(two("[0,4]", "[5,9]"), 9), "begin at byte 5, expected 4");
}

TEST_CASE("a file that was cut or changed is noticed, wherever") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/x";
  const std::string good = bytes_of(data + "written.safetensors");
  const auto open = [&] {
    const SafetensorsFile file(path);
    file.verify_checksum();
  };
  write_bytes(path, good);
  CHECK(thrown<InputError>(open) == "nothing");
  for (std::size_t length = 0; length < good.size(); ++length) {
    CAPTURE(length);
    write_bytes(path, good.substr(0, length));
    CHECK(thrown<InputError>(open).starts_with(path + ": "));
  }
  const auto flipped = [&](std::size_t at, int bit) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
    write_bytes(path, changed);
    return thrown<InputError>(open);
  };
  for (std::size_t at = good.size() - 24; at < good.size(); ++at) {
    CAPTURE(at);
    CHECK(flipped(at, 0).find(": the data have the checksum ") != std::string::npos);
  }
  // a bit in the name of the header's checksum makes a file without one, whose other bits are right
  const std::size_t name = good.find("header_crc32"), name_end = name + 12;
  for (std::size_t at = 0; at < good.size() - 24; ++at)
    for (int bit = 0; bit < 8; ++bit) {
      if (!full_run() && bit != static_cast<int>(at % 8)) continue;
      CAPTURE(at);
      CAPTURE(bit);
      if (at < name || at >= name_end) CHECK(flipped(at, bit).starts_with(path + ": "));
    }
}

TEST_CASE("a changed text of the metadata is noticed when the file is opened") {
  const TemporaryDirectory directory(Communicator::self());
  const std::string path = directory.path() + "/x";
  const std::map<std::string, std::string> texts{
      {"lr", "0.01"}, {"a\"header_crc32", "00000000"}, {",\"header_crc32\":\"", "x"}};
  write_safetensors(path, {{"a", Tensor::full({2}, 1)}}, {}, SafetensorsType::float32, texts);
  const std::string good = bytes_of(path);
  for (const auto& [key, text] : texts) CHECK(SafetensorsFile(path).metadata().at(key) == text);
  const auto opened = [&](const std::string& from, const std::string& to) {
    std::string changed = good;
    changed.replace(changed.find(from), from.size(), to);
    write_bytes(path, changed);
    return thrown<InputError>([&] { const SafetensorsFile file(path); });
  };
  CHECK(opened("0.01", "0.09").starts_with(path + ": the header has the checksum "));
  CHECK(opened("\"F32\"", "\"I32\"").starts_with(path + ": the header has the checksum "));
  CHECK(opened(",\"header_crc32\":", ",\"other_crc32_\":") == "nothing");  // as older files, without one
}

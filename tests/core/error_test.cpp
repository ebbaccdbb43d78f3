// SPDX-License-Identifier: MIT
#include <sar/core/error.hpp>
#include <sar/core/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <iomanip>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace sar;

TEST_CASE("concat writes each part as operator<< does") {
  const std::string text = "text";
  const char* const pointer = "pointer";
  char buffer[8] = "buffer";
  CHECK(concat() == "");
  CHECK(concat("a literal, ", text, ", ", std::string_view("a view"), ", ", pointer, ", ", buffer) ==
        "a literal, text, a view, pointer, buffer");
  CHECK(concat(std::string("a temporary "), 'c', ' ', true, ' ', std::uint8_t{'x'}, ' ', std::int64_t{-7}) ==
        "a temporary c 1 x -7");
  CHECK(concat(1.5, " ", 2.25F, " ", std::setprecision(3), 1 / 3.0, " ", Shape{2, 3}) ==
        "1.5 2.25 0.333 [2, 3]");
}

TEST_CASE("joined writes a separator between any two elements") {
  using Texts = std::vector<std::string>;
  CHECK(joined(Texts{}) == "");
  CHECK(joined(Texts{"a"}) == "a");
  CHECK(joined(Texts{"", "", "c"}) == ", , c");
  CHECK(joined(Texts{"ab", "c"}, &std::string::size) == "2, 1");
}

TEST_CASE("require throws the class with the text, unless the condition holds") {
  CHECK_NOTHROW(require<InputError>(true, "unused ", 1));
  CHECK_THROWS_WITH_AS(require<InputError>(false, "row ", 3, ": \a"), "row 3: \\x07", InputError);
  CHECK_THROWS_WITH_AS(require<ShapeError>(false, Shape{4}, ", expected ", Shape{5}), "[4], expected [5]",
                       ShapeError);
  CHECK_THROWS_AS(require(false), Error);
}

}  // namespace

#include <doctest/doctest.h>

#include <sar/comm/rows/wire_format.hpp>

#include <algorithm>
#include <type_traits>
#include <vector>

using namespace sar;

namespace {

/// Rows 1 and 3 of [[0, 1, 2], [3, 4, 5], ...]; their values are 3, 4, 5, 9, 10, 11.
struct Some {
  Tensor tensor{Shape{4, 3}};
  Array<std::int32_t> rows{1, 3};

  Some() {
    for (Index i = 0; i < tensor.size(); ++i) tensor.data()[i] = static_cast<real>(i);
  }
};

template <class Value>
void check_format() {
  const WireFormat& format = wire_format<Value>();
  CHECK(format.bytes(5) == 5 * sizeof(Value));
  CHECK(format.as_stored() == std::is_same_v<Value, real>);
  Some some;
  Array<std::byte> packed(format.bytes(4));
  format.pack(some.tensor, some.rows, 1, 5, packed.data());  // begins and ends inside of rows
  std::vector<real> values(4);
  format.unpack(packed.data(), 4, values.data());
  CHECK(values == std::vector<real>{4, 5, 9, 10});

  const std::vector<real> news{10, 1, 1, 10};
  format.pack(news.data(), 4, packed.data());
  const auto combined = [&](ReduceOp op) {
    Some into;
    format.combine(into.tensor, into.rows, 1, 5, packed.data(), op);
    const real* row = std::as_const(into.tensor).row(1);
    CHECK(row[0] == 3);
    CHECK(into.tensor.row(2)[0] == 6);
    CHECK(into.tensor.row(3)[2] == 11);
    return std::vector<real>{row[1], row[2], into.tensor.row(3)[0], into.tensor.row(3)[1]};
  };
  CHECK(combined(ReduceOp::sum) == std::vector<real>{14, 6, 10, 20});
  CHECK(combined(ReduceOp::max) == std::vector<real>{10, 5, 9, 10});
  CHECK(combined(ReduceOp::min) == std::vector<real>{4, 1, 1, 10});
}

}  // namespace

TEST_CASE("values of rows in single precision") {
  check_format<float>();
}

TEST_CASE("values of rows in double precision") {
  check_format<double>();
}

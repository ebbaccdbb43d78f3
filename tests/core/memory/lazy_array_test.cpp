// SPDX-License-Identifier: MIT
#include <sar/core/memory/index_arrays.hpp>

#include <doctest/doctest.h>

using namespace sar;

namespace {

TEST_CASE("elements are selected from values that are computed once") {
  for (const Index step : {Index{1}, Index{2}, Index{3}, Index{100}}) {  // every step-th value is not 0
    CAPTURE(step);
    int made = 0;
    const LazyArray array([&] {
      ++made;
      Array<Index> values(1000, 0);
      for (Index i = 0; i < 1000; i += step) values[i] = i + 1;
      return values;
    });
    CHECK(array.bytes() == 0);
    const Array<Index> places{999, 0, 300, 301, 0, 600};
    for (int call = 0; call < 3; ++call) {
      const Array<Index> selected = array.select(places);
      REQUIRE(selected.size() == places.size());
      for (std::size_t k = 0; k < places.size(); ++k)
        CHECK(selected[k] == (places[k] % step == 0 ? places[k] + 1 : 0));
    }
    CHECK(made == 1);
    CHECK(array.bytes() == (step < 3 ? 8000 : 16 * ((1000 + step - 1) / step)));
    CHECK(array.select({}).empty());
    CHECK(array.get()[300] == (300 % step == 0 ? 301 : 0));
  }
}

TEST_CASE("elements of known values, and after get()") {
  const LazyArray known(Array<Index>{0, 0, 5, 0});
  CHECK(known.select(Array<Index>{2, 0}) == Array<Index>{5, 0});
  CHECK(known.get() == Array<Index>{0, 0, 5, 0});
  const LazyArray got([] { return Array<Index>{1, 0, 2}; });
  CHECK(got.get()[2] == 2);
  CHECK(got.select(Array<Index>{2, 1, 0}) == Array<Index>{2, 0, 1});
}

}  // namespace

// SPDX-License-Identifier: MIT
#include "consumer/training.hpp"

#include <doctest/doctest.h>

TEST_CASE("the number that programs outside of this project compare with") {
  const double loss = consumer::train(sar::Communicator::world());
  CAPTURE(loss);
  CHECK(consumer::as_expected(loss));
}

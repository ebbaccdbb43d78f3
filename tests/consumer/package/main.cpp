// SPDX-License-Identifier: MIT

// A program that leaves MPI to the library. Another Eigen comes first in its include path.
#include "consumer/training.hpp"

#include <Eigen/Core>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
  static_assert(other_eigen, "the Eigen of this project was found");
  try {
    const sar::Environment environment(argc, argv);
    const double loss = consumer::train(sar::Communicator::world());
    if (consumer::as_expected(loss)) return 0;
    std::fprintf(stderr, "the loss is %.8f, expected %.8f\n", loss, consumer::expected_loss);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

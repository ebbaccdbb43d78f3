// SPDX-License-Identifier: MIT

// Two networks, of float and of double, that take turns on one MPI; the host owns MPI.
#include "support/mpi_handles.hpp"
#include "trainings.hpp"

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

namespace {

int failures = 0;

void check(bool condition, const char* what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "failed: %s\n", what);
}

void train_both() {
  const auto a = make_single_training(MPI_COMM_WORLD), b = make_double_training(MPI_COMM_WORLD);
  double loss_a = 0, loss_b = 0;
  for (int step = 0; step < 10; ++step) loss_a = a->step(), loss_b = b->step();
  check(std::abs(loss_a - loss_b) <= 1e-4 * loss_b && std::abs(loss_b - 0.317905) <= 1e-4 * loss_b,
        "the loss");
  check(loss_a != loss_b, "the networks are of two precisions");
  check(loss_a == static_cast<double>(static_cast<float>(loss_a)), "one of them is float");
  const std::vector<double> y_a = a->predict(), y_b = b->predict();
  check(y_a.size() == y_b.size(), "predictions for the same nodes");
  double error = 0;
  for (std::size_t i = 0; i < y_a.size() && i < y_b.size(); ++i)
    error = std::fmax(error, std::abs(y_a[i] - y_b[i]));
  check(error < 1e-4, "the same predictions, to rounding");
  check(std::string(a->error()).ends_with("a number has 4 bytes"), "the error of float");
  check(std::string(b->error()).ends_with("a number has 8 bytes"), "the error of double");
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  try {
    train_both();
  } catch (const std::exception& error) {
    check(false, error.what());
  }
  MPI_Finalize();
  const sar::test::MpiHandles open = sar::test::open_mpi_handles();
  check(open == sar::test::MpiHandles{}, sar::test::describe(open).c_str());
  return failures == 0 ? 0 : 1;
}

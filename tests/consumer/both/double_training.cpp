// SPDX-License-Identifier: MIT
#include "network_training.hpp"

static_assert(sizeof(sar::real) == 8);

std::unique_ptr<Training> make_double_training(MPI_Comm comm) {
  return std::make_unique<consumer::NetworkTraining>(comm);
}

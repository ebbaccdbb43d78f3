// SPDX-License-Identifier: MIT

/// Two trainings of one program. This header has types of the program only, and none of the library.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

/// A network with its own communicator, graph, weights and optimizer, in one of the precisions.
class Training {
 public:
  virtual ~Training() = default;
  /// One step; its loss. Collective.
  virtual double step() = 0;
  /// The predictions for this rank's nodes. Collective.
  virtual std::vector<double> predict() = 0;
  /// The text of an error that the library throws on all ranks. Collective.
  virtual const char* error() = 0;
};

std::unique_ptr<Training> make_single_training(MPI_Comm comm);
std::unique_ptr<Training> make_double_training(MPI_Comm comm);

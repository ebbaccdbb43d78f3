// SPDX-License-Identifier: MIT

// A program that owns MPI: its thread level, its communicator with its ranks in another order, its error
// handlers and attributes, all of which the library leaves as they are.
#include "consumer/training.hpp"

#include <mpi.h>

#include <cstdio>
#include <exception>

namespace {

int failures = 0;

void check(bool condition, const char* what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "failed: %s\n", what);
}

void train_on(MPI_Comm comm) {
  const sar::Communicator workers(comm);
  const double loss = consumer::train(workers);
  if (!consumer::as_expected(loss))
    std::fprintf(stderr, "the loss is %.8f, expected %.8f\n", loss, consumer::expected_loss);
  check(consumer::as_expected(loss), "the loss");
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  int key = MPI_KEYVAL_INVALID, value = 42;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, &value);

  MPI_Comm reversed = MPI_COMM_NULL, mine = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &mine);
  try {
    train_on(reversed);
    train_on(mine);  // disjoint communicators, at the same time
  } catch (const std::exception& error) {
    check(false, error.what());
  }
  MPI_Comm_free(&mine);
  MPI_Comm_free(&reversed);

  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  check(handler == MPI_ERRORS_ARE_FATAL, "MPI_COMM_WORLD has its error handler");
  MPI_Errhandler_free(&handler);
  int* attribute = nullptr;
  int found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, key, &attribute, &found);
  check(found != 0 && attribute == &value, "MPI_COMM_WORLD has its attribute");
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  MPI_Comm_free_keyval(&key);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}

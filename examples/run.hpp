/// What the programs have in common: reading a command line, and ending with one sentence and the right exit
/// code.
#pragma once

#include <sar/sar.hpp>

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

namespace sar::examples {

/// The communicator of all ranks. Where a file of SAR_TRACE cannot be written, rank 0 says so and the program
/// ends with exit code 1.
inline Communicator world(const char* program) {
  try {
    return Communicator::world();
  } catch (const InputError& error) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::cerr << program << ": " << error.what() << std::endl;
    MPI_Finalize();
    std::exit(1);
  }
}

/// An exit code when the program should end here: 0 after --help, 2 for wrong usage. Rank 0 says why. `check`
/// may throw CLI::ValidationError for options that do not go together.
inline std::optional<int> parse(
    CLI::App& app, int argc, char** argv, const Communicator& comm, FunctionRef<void()> check = [] {}) {
  try {
    app.parse(argc, argv);
    check();
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    if (comm.rank() == 0) std::cout << out.str() << std::flush, std::cerr << err.str() << std::flush;
    return code == 0 ? 0 : 2;
  }
  return std::nullopt;
}

/// Exit code 0, or 1 when `body` throws on any rank, which rank 0 tells: no rank waits for one that has
/// failed.
template <class Body>
int run(const Communicator& comm, const char* program, const Body& body) {
  try {
    comm.agree(body);
    return 0;
  } catch (const std::exception& error) {
    if (comm.rank() == 0) std::cerr << program << ": " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace sar::examples

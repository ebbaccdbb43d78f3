#include "program.hpp"

#include <mpi.h>

#include <exception>
#include <iostream>
#include <optional>
#include <sstream>

namespace sar::tools {
namespace {

/// An exit code when the program ends here: 0 after --help, 2 for wrong usage.
std::optional<int> parse(CLI::App& app, int argc, char** argv, const Communicator& comm) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    if (comm.rank() == 0) std::cout << out.str() << std::flush, std::cerr << err.str() << std::flush;
    return code == 0 ? 0 : 2;
  }
  return std::nullopt;
}

}  // namespace

int run(CLI::App& app, int argc, char** argv, FunctionRef<void(const Communicator&)> body) {
  try {
    const Communicator comm = Communicator::world();  // throws if the file of SAR_TRACE cannot be written
    return comm.agree([&]() -> int {
      if (const auto exit_code = parse(app, argc, argv, comm)) return *exit_code;
      body(comm);
      return 0;
    });
  } catch (const std::exception& error) {  // the same on all ranks
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::cerr << app.get_name() << ": " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace sar::tools

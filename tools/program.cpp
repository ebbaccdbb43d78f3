#include "program.hpp"

#include "options.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <mpi.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <exception>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>

namespace sar::tools {
namespace {

/// Returns the values of all options by name, also of options not given. Ranks may differ in --threads, which
/// is left out.
std::map<std::string, std::string> values_of(const CLI::App& app) {
  std::map<std::string, std::string> values;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name() == "--threads") continue;
    std::string& value = values[option->get_name()];
    for (const std::string& word : option->results()) value += (value.empty() ? "" : " ") + word;
    if (option->empty()) value = option->get_default_str();
  }
  return values;
}

/// Throws InputError on all ranks when an option has another value on one of them. In the body of agree().
void require_equal_options(const Communicator& comm, const CLI::App& app) {
  for (const auto& [option, mine] : values_of(app)) {
    const std::string root = comm.broadcast(mine, 0);
    require<InputError>(mine == root, option, " is '", mine, "' on rank ", comm.rank(), ", expected '", root,
                        "' as on rank 0");
  }
}

/// Returns an exit code if the program ends here: 0 after --help, --help-all and --version, 2 for wrong
/// usage. Throws InputError if the ranks have different options.
std::optional<int> parse(CLI::App& app, int argc, char** argv, const Communicator& comm) {
  std::optional<int> exit_code;
  std::ostringstream out, err;
  add_help_options(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error, out, err) == 0 ? 0 : 2;
  }
  const bool all_end = comm.all_reduce(exit_code ? 1 : 0, ReduceOp::min) == 1;
  comm.agree([&] {
    require<InputError>(all_end || !exit_code,
                        "only some ranks have got a command line that ends the program: ", out.str(),
                        err.str());
    if (!all_end) require_equal_options(comm, app);
  });
  if (exit_code && comm.rank() == 0)
    std::cout << out.str() << std::flush, std::cerr << printable(err.str()) << std::flush;
  return exit_code;
}

int run_on_all_ranks(CLI::App& app, int argc, char** argv, FunctionRef<void(const Communicator&)> body) {
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
    if (rank == 0) std::cerr << app.get_name() << ": " << printable(error.what()) << std::endl;
    return 1;
  }
}

}  // namespace

int run(CLI::App& app, int argc, char** argv, FunctionRef<void(const Communicator&)> body) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit (ulimit -f) is an error that names it
  std::signal(SIGPIPE, SIG_IGN);  // and so is a log whose reader has ended
  const int code = run_on_all_ranks(app, argc, argv, body);
  return code == 0 && environment_trace_is_lost() ? 1 : code;
}

void require_memory(const Communicator& comm, double bytes, const std::string& what) {
  comm.agree([&] {
    const double machine =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    require<InputError>(machine <= 0 || bytes <= machine, what, " needs at least ", std::ceil(bytes / 1e9),
                        " GB on a rank, expected less than the ", std::ceil(machine / 1e9),
                        " GB of its machine");
  });
}

}  // namespace sar::tools

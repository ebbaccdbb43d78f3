// SPDX-License-Identifier: MIT
#include "program.hpp"

#include "options.hpp"

#include <sar/data.hpp>
#include <sar/models.hpp>

#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace sar::tools {
namespace {

/// Returns a message as it is printed: printable(), and without its middle if it is long. A value of any
/// length can therefore stand between the place and what is expected.
std::string message_text(std::string_view message) {
  constexpr std::size_t most = 1000, most_end = 300;
  constexpr std::string_view gap = " ... ";
  if (message.size() <= most) return printable(message);
  const auto splits = [&](std::size_t at) {
    return (static_cast<unsigned char>(message[at]) & 0xc0) == 0x80;
  };
  std::size_t begin = most - most_end - gap.size(), end = message.size() - most_end;
  while (begin > 0 && splits(begin)) --begin;  // whole characters of UTF-8
  while (end < message.size() && splits(end)) ++end;
  return printable(concat(message.substr(0, begin), gap, message.substr(end)));
}

/// Returns the values of all options by name, also of options not given. Ranks may differ in --threads, which
/// is left out.
std::map<std::string, std::string> values_of(const CLI::App& app) {
  std::map<std::string, std::string> values;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name() == "--threads") continue;
    values[option->get_name()] =
        option->empty() ? option->get_default_str() : joined(option->results(), {}, " ");
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

/// Throws InputError, the same on every rank, when something that rank 0 has printed is lost. Collective.
void require_printed(const Communicator& comm) {
  comm.agree([&] {
    if (comm.rank() != 0) return;
    const bool flushed = std::cout.flush().good() && std::fflush(stdout) == 0;
    require<InputError>(flushed && std::ferror(stdout) == 0,
                        "standard output: cannot write, expected a file or a program that takes every line");
  });
}

/// Returns an exit code if the program ends here: 0 after --help, --help-all and --version, 2 for wrong
/// usage. Throws InputError if the ranks have different options.
std::optional<int> parse(CLI::App& app, int argc, char** argv, const Communicator& comm) {
  std::optional<int> exit_code;
  std::ostringstream out, err;
  add_help_options(app);
  try {
    std::vector<std::string> words = joined_words(argc, argv);
    std::ranges::reverse(words);  // as CLI11 wants them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error, out, err) == 0 ? 0 : 2;
    if (*exit_code != 0 && app.remaining_size() > 0) {  // in place of what follows from an unknown option
      err.str("");
      app.exit(CLI::ValidationError(unknown_arguments(app)), out, err);
    }
  }
  const bool all_end = comm.all_reduce(exit_code ? 1 : 0, ReduceOp::min) == 1;
  comm.agree([&] {
    require<InputError>(all_end || !exit_code,
                        "only some ranks have got a command line that ends the program: ", out.str(),
                        err.str());
    if (!all_end) require_equal_options(comm, app);
  });
  if (exit_code && comm.rank() == 0)
    std::cout << out.str() << std::flush, std::cerr << message_text(err.str()) << std::flush;
  return exit_code;
}

int run_on_all_ranks(CLI::App& app, int argc, char** argv, FunctionRef<void(const Communicator&)> body) {
  try {
    const Communicator comm = Communicator::world();  // throws if the file of SAR_TRACE cannot be written
    return comm.agree([&]() -> int {
      const std::optional<int> exit_code = parse(app, argc, argv, comm);
      if (!exit_code) body(comm);
      require_printed(comm);
      return exit_code.value_or(0);
    });
  } catch (const std::exception& error) {  // the same on all ranks
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) std::cerr << app.get_name() << ": " << message_text(error.what()) << std::endl;
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

std::uint64_t max_resident_bytes(const Communicator& comm) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return comm.all_reduce(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024, ReduceOp::max);
}

std::string formatted(const char* format, double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

void print_notes(const GraphSource& source, const std::string& found) {
  say(source.comm(), found);
  for (const std::string& note : source.notes()) say(source.comm(), note);
}

}  // namespace sar::tools

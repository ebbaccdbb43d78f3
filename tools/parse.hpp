/// Reading a command line.
#pragma once

#include <sar/sar.hpp>

#include <CLI/CLI.hpp>

#include <iostream>
#include <optional>
#include <sstream>

namespace sar::examples {

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

}  // namespace sar::examples

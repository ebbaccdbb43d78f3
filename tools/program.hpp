// SPDX-License-Identifier: MIT

/// How a tool begins and ends.
///
/// Room tools: What the programs share: their begin and end, common options, heartbeat, costs of models.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/error.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/graph/data/graph_source.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <iostream>
#include <string>

namespace sar::tools {

/// Reads the command line into the options of `app`, then calls `body` with the communicator of all ranks.
/// Returns the exit code: 0; 2 for wrong usage; 1 when `body` throws on any rank, when an option differs
/// between the ranks (--threads may), and when the file of SAR_TRACE or a line of the output is lost. In
/// these cases rank 0 prints why, and no rank waits for one that has failed. MPI is initialized.
int run(CLI::App& app, int argc, char** argv, FunctionRef<void(const Communicator&)> body);

/// The main() of a program: reads the command line into options, which add_options(app, options) adds, and
/// calls body(comm, options) as run() does. Initializes MPI.
template <class Options, class Body>
int run(const std::string& description, const std::string& name, int argc, char** argv, const Body& body) {
  const Environment environment(argc, argv);
  CLI::App app(description, name);
  Options options;
  add_options(app, options);
  return run(app, argc, argv, [&](const Communicator& comm) { body(comm, options); });
}

/// Collective. Throws InputError, the same on every rank, when a rank's machine has less memory than
/// `bytes`, a lower bound of what that rank is going to need. `what` begins the message: "the model of
/// --layers 3 ...".
void require_memory(const Communicator& comm, double bytes, const std::string& what);

/// Local. Rank 0 prints the parts as a line, printable.
template <class... Parts>
void say(const Communicator& comm, const Parts&... parts) {
  if (comm.rank() == 0) std::cout << printable(concat(parts...)) << std::endl;
}

/// Collective. Returns the largest memory that a rank has had resident, in bytes.
std::uint64_t max_resident_bytes(const Communicator& comm);

template <class Number>
double megabytes(Number bytes) {
  return static_cast<double>(bytes) / 1e6;
}

/// Returns a number as std::printf writes it: formatted("%.4f", 0.5).
std::string formatted(const char* format, double number);

/// Local. Rank 0 prints a line that says what was found, then the notes of the source.
void print_notes(const GraphSource& source, const std::string& found);

}  // namespace sar::tools

/// How a tool begins and ends.
#pragma once

#include <sar/comm/communicator.hpp>
#include <sar/core/parallel.hpp>

#include <CLI/CLI.hpp>

namespace sar::tools {

/// Reads the command line into the options of `app`, then calls `body` with the communicator of all ranks.
/// Returns the exit code: 0; 2 for wrong usage; 1 when `body` throws on any rank, or an option differs between
/// the ranks (--threads may). In the last two cases rank 0 prints why, and no rank waits for one that has failed. MPI is initialized.
int run(CLI::App& app, int argc, char** argv, FunctionRef<void(const Communicator&)> body);

}  // namespace sar::tools

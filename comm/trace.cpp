// SPDX-License-Identifier: MIT
#include <sar/comm/mpi_objects.hpp>
#include <sar/comm/trace.hpp>
#include <sar/comm/trace_file.hpp>
#include <sar/core/error.hpp>

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

Trace::Trace(const Communicator& comm, std::string path) : comm_(comm), path_(std::move(path)) {
  try {
    comm.agree([&] {
      require<InputError>(!tracing(), path_, ": another trace is running, expected one at a time",
                          environment_trace_runs() ? " (SAR_TRACE is set)" : "");
      if (comm.rank() == 0) check_writable(path_);
      path_ = absolute_path(path_);
      running_ = start_trace(comm.common_time());
    });
  } catch (...) {
    if (running_) stop_trace();
    throw;
  }
}

void Trace::end() noexcept {
  if (!std::exchange(running_, false)) return;
  stop_trace();
  if (is_fork()) return;
  (void)write_trace(mpi_runs() ? comm_.handle() : MPI_COMM_NULL, comm_.rank(), comm_.size(), path_,
                    trace_patience);
}

void Trace::write() {
  comm_.agree([&] { require<InputError>(running_, path_, ": this trace was written already"); });
  running_ = false;
  stop_trace();
  comm_.agree([&] {
    const std::string text = trace_text(comm_.rank());
    std::optional<TraceFile> file;
    if (comm_.rank() == 0) file.emplace(path_).add(text);
    for (int q = 1; q < comm_.size(); ++q) {  // rank 0 holds the text of one rank at a time
      const std::size_t length = q == comm_.rank() ? text.size() : 0;
      std::vector<Index> counts(comm_.size(), 0);
      counts[0] = static_cast<Index>(length);
      const auto received = comm_.all_to_all_v(std::span(text).first(length), counts).values;
      if (file) file->add(std::string(received.begin(), received.end()));
    }
    if (!file) return;
    if (const std::exception_ptr failure = file->finish()) std::rethrow_exception(failure);
  });
}

bool environment_trace_is_lost() noexcept {
  return environment_trace_failed();
}

}}  // namespace sar

// SPDX-License-Identifier: MIT

/// Predicts the memory of a rank, and the traffic and time of an epoch, before a training; see --help.
///     plan parts --model sage --batch-norm --ranks 128 --link 100gbit --cores 36
///
/// Room tools/plan: The program `plan`.
#include "plan_options.hpp"
#include "plan_report.hpp"
#include "program.hpp"

#include <sar/core/files/file.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

namespace sar::tools {
namespace {

void plan(const Communicator& comm, const PlanOptions& o) {
  comm.agree([&] {
    if (comm.rank() == 0 && !o.json_file.empty()) check_writable(o.json_file);
  });
  Plan plan{.options = o, .shape = shape_of(comm, o), .rates = {}, .prediction = {}, .advice = {}};
  const GraphShape& shape = plan.shape;
  plan.rates = read_or_measure(comm, o.rates_file, o.train, shape.widths, shape.nodes / o.machine.ranks,
                               shape.edges / shape.nodes);
  comm.agree([&] {
    plan.prediction = predict(o, plan.rates, shape);
    plan.advice = advise(o, plan.rates, shape, plan.prediction);
    if (comm.rank() != 0) return;
    print_plan(plan);
    if (!o.json_file.empty()) write_plan(o.json_file, plan);
  });
}

}  // namespace
}  // namespace sar::tools

int main(int argc, char** argv) {
  return sar::tools::run<sar::tools::PlanOptions>(
      "Predicts memory, traffic and time of a training from the options of train and the machine.", "plan",
      argc, argv, sar::tools::plan);
}

// SPDX-License-Identifier: MIT
#include "plan_prediction.hpp"

#include <sar/core/error.hpp>
#include <sar/data.hpp>
#include <sar/models.hpp>

#include <algorithm>
#include <cmath>

namespace sar::tools {
namespace {

/// Returns the bytes that halo rows add to the peak of each pass.
struct Held {
  double forward = 0, backward = 0;
};

/// `again`: the backward pass of this forward pass reads its rows again.
Held held_rows(const TrainOptions& o, const Place& at, const EdgePass& pass, bool again) {
  constexpr double most_packed = 4 << 20, most_packets = 32;  // rows being sent at one time
  const double all = at.part.halo_nodes;
  if (at.ranks == 1 || all == 0) return {};
  const bool keeps = o.graph_options.mode != HaloMode::rematerialize;
  const bool exact = o.graph_options.halo_format == HaloFormat::exact;
  const double row_bytes = static_cast<double>(
      pass.width * bytes_of(o.mixed_precision ? NumberType::bfloat16 : NumberType::reals));
  const double depth = o.graph_options.pipeline_depth;
  const StageRows ahead = stages_of(o, at, row_bytes, false);
  const auto wire_row = static_cast<double>(wire_bytes(o, pass.width));
  const double packed = std::min({most_packed, most_packets * ahead.fetch * wire_row, all * wire_row});
  Held held;
  if (!pass.is_backward) {
    held.forward = packed;
    if (o.graph_options.mode == HaloMode::one_shot)
      held.forward += all * row_bytes;
    else if (!(keeps && again))  // else they are counted in `kept`
      held.forward += std::min(all, (depth + 1) * ahead.fetch) * row_bytes;
    // received rows are unpacked
    if (!exact) held.forward += std::min(all, (depth + 1) * ahead.fetch) * wire_row;
    return held;
  }
  const bool fetches = pass.fetches && !keeps;
  const StageRows back = stages_of(o, at, row_bytes, fetches && pass.pushes);
  if (pass.pushes) {
    const double each_way = depth * (fetches ? back.fetch / 2 : back.fetch);
    held.backward += (std::min(all, back.push) + 2 * std::min(all, each_way)) * row_bytes;
    if (!exact) held.backward += packed;  // gradients are packed
  }
  if (fetches) {
    const double in_flight = std::min(all, (depth + 1) * back.fetch);
    held.backward += in_flight * row_bytes + packed + (exact ? 0 : in_flight * wire_row);
  }
  return held;
}

double halo_index_bytes(const PartShape& part) {
  return 8 * listed_rows(part.nodes, part.cut_edges) + 8 * part.halo_nodes;
}

/// Seconds of one rank with the planned cores and memory.
struct Compute {
  double arithmetic = 0, memory = 0;

  [[nodiscard]] double seconds() const { return arithmetic + memory; }
};

/// Converts measured seconds, in which `bytes` were moved between memory and cores: cores divide the
/// arithmetic, the bandwidth of memory the bytes.
Compute on_machine(const Machine& machine, const Rates& rates, double seconds, double bytes) {
  const double more_cores = machine.cores / rates.threads;
  const double efficiency = more_cores > 1 ? machine.efficiency : 1;
  const double memory = std::min(seconds, bytes / rates.memory_rate());
  return {(seconds - memory) / (more_cores * efficiency),
          memory * rates.memory_rate() / memory_rate_of(machine, rates)};
}

double wire_seconds(const Machine& machine, const Pass& pass) {
  return machine.link_bytes > 0 ? pass.bytes / machine.link_bytes + pass.messages * machine.latency : 0;
}

/// Returns the seconds of the ring all-reduce of the parameters' gradients.
double gradient_seconds(const Machine& machine, double parameters, int ranks) {
  if (ranks == 1 || machine.link_bytes == 0) return 0;
  return 2 * sizeof(real) * parameters * (ranks - 1) / ranks / machine.link_bytes +
         2 * std::log2(ranks) * machine.latency;
}

/// Returns the seconds of exchange in a step or a part of a step: packing, copies, additions, additional
/// stages and synchronization. A measurement on one rank has no synchronization.
double exchange_seconds(const Rates& rates, const Pass& pass, int ranks, double share_of_step) {
  if (ranks == 1) return 0;
  const double meetings = rates.ranks > 1 ? std::log2(ranks) / std::log2(rates.ranks) : 0;
  return pass.unpacked * rates.byte_seconds + pass.added_to * rates.added_byte_seconds +
         share_of_step * meetings * rates.step_seconds;
}

double overlapped(double compute, double wire, double stages) {
  return std::max(compute, wire) + std::min(compute, wire) / stages;
}

void require_row(const TrainOptions& o, const Rates& rates) {
  Index widest = 0;
  for (const EdgePass& pass : rates.edges) widest = std::max(widest, pass.width);
  const Index least = widest * static_cast<Index>(sizeof(real)), budget = o.graph_options.max_halo_bytes;
  require<InputError>(budget == 0 || budget >= least, "--max-halo-bytes: ", budget, " bytes hold no row of ",
                      widest, " numbers, expected at least ", least);
}

/// Describes a change of the options in words.
std::string tell(const std::string& change, const Prediction& p) {
  return concat(change, ": ", std::round(p.memory.total() / 1e6), " MB a rank, ",
                std::round(p.seconds * 1e4) / 1e4, " s a training step");
}

}  // namespace

Memory memory_of(const TrainOptions& o, const Rates& rates, const Place& at) {
  const PartShape& part = at.part;
  const bool keeps = o.graph_options.mode != HaloMode::rematerialize;
  Held most;
  double kept = 0;  // halo rows that a backward pass reads, held until then
  for (const EdgePass& pass : rates.edges) {
    const bool again = std::ranges::any_of(rates.edges, [&](const EdgePass& other) {
      return other.is_backward && other.fetches && other.width == pass.width;
    });
    const Held held = held_rows(o, at, pass, again);
    most.forward = std::max(most.forward, held.forward);
    most.backward = std::max(most.backward, held.backward);
    if (at.ranks > 1 && pass.is_backward && pass.fetches && keeps)
      kept += part.halo_nodes * static_cast<double>(pass.width) * sizeof(real);
  }
  const double alone = rates.peak(part.nodes, part.in_edges);
  const double forward = rates.fetch(part.nodes, part.in_edges) + most.forward;
  const double backward = rates.push(part.nodes, part.in_edges) + most.backward;
  const double one_buffer = at.ranks > 1 ? sizeof(real) * rates.parameters : 0;  // of gather_grads
  const double rest = rates.rest(part.nodes, part.in_edges) + one_buffer;
  const double peak = std::max({alone, forward + kept, backward + kept, rest});
  Memory memory;
  memory.graph = rates.index(part.nodes, part.in_edges);
  memory.rows = alone - memory.graph;
  memory.parameters = 4.0 * sizeof(real) * rates.parameters;
  memory.stages = peak - alone;
  memory.graph += at.ranks > 1 ? halo_index_bytes(part) : 0;
  return memory;
}

double sent_bytes_of(const TrainOptions& o, const Rates& rates, const Place& at) {
  return pass_of(o, rates.edges, at, true).bytes + (at.ranks > 1 ? sizeof(real) * rates.parameters : 0);
}

// More cores than measured may share the measured bandwidth.
double memory_rate_of(const Machine& machine, const Rates& rates) {
  if (machine.memory_rate > 0) return machine.memory_rate;
  return rates.memory_rate() * std::min(1.0, machine.cores / rates.threads);
}

Prediction predict(const PlanOptions& o, const Rates& rates, const GraphShape& shape) {
  const ModelDescription model =
      o.train.model.with_widths(shape.widths.features, shape.widths.classes).checked("the model");
  const auto ranks = static_cast<int>(shape.parts.size());
  require_row(o.train, rates);
  Prediction most;
  double nodes_of_largest = 0;
  for (const PartShape& part : shape.parts) nodes_of_largest = std::max(nodes_of_largest, part.nodes);
  for (const PartShape& part : shape.parts) {
    const Place at{part, ranks, nodes_of_largest};
    const Memory memory = memory_of(o.train, rates, at);
    if (memory.total() > most.memory.total()) most.memory = memory;
    const Pass step = pass_of(o.train, rates.edges, at, true);
    const Pass forward = pass_of(o.train, rates.edges, at, false);
    const double share = step.bytes > 0 ? forward.bytes / step.bytes : 0;
    const auto compute = [&](double seconds, const Pass& pass, double share_of_step, bool with_backward) {
      return on_machine(o.machine, rates, seconds + exchange_seconds(rates, pass, ranks, share_of_step),
                        memory_bytes(model, rates.edges, part, pass, with_backward));
    };
    const double n = part.nodes, e = part.in_edges;
    const Compute of_step = compute(rates.forward(n, e) + rates.backward(n, e), step, 1, true);
    if (of_step.seconds() > most.compute) {
      most.compute = of_step.seconds();
      most.memory_seconds = of_step.memory;
    }
    most.wire = std::max(most.wire, wire_seconds(o.machine, step));
    most.stages = std::max(most.stages, step.stages);
    most.messages = std::max(most.messages, step.messages);
    most.received_bytes = std::max(most.received_bytes, step.bytes);
    most.evaluation_bytes = std::max(most.evaluation_bytes, forward.bytes);
    most.sent_bytes_all += sent_bytes_of(o.train, rates, at);
    most.evaluation =
        std::max(most.evaluation, overlapped(compute(rates.evaluation(n, e), forward, share, false).seconds(),
                                             wire_seconds(o.machine, forward), forward.stages));
  }
  most.seconds =
      overlapped(most.compute, most.wire, most.stages) + gradient_seconds(o.machine, rates.parameters, ranks);
  return most;
}

std::vector<std::string> advise(const PlanOptions& o, const Rates& rates, const GraphShape& shape,
                                const Prediction& now) {
  std::vector<std::string> list;
  const auto ranks = static_cast<int>(shape.parts.size());
  const auto with_ranks = [&](int number) { return predict(o, rates, divided(shape, number)); };
  const auto add = [&](const std::string& change, FunctionRef<void(GraphOptions&)> set) {
    PlanOptions other = o;
    set(other.train.graph_options);
    list.push_back(tell(change, predict(other, rates, shape)));
  };
  const auto most_ranks = static_cast<int>(std::min(shape.nodes, 65536.0));
  if (o.machine.memory > 0) {
    int least = 1;
    while (least < most_ranks && with_ranks(least).memory.total() > o.machine.memory) least *= 2;
    const bool fits = least <= most_ranks && with_ranks(least).memory.total() <= o.machine.memory;
    list.push_back(fits ? tell(concat("--ranks ", least, " is the least power of two that fits --memory"),
                               with_ranks(least))
                        : "no number of ranks fits --memory");
  }
  if (now.wire > now.compute) {
    const GraphShape random = divided({shape.name, shape.nodes, shape.edges, shape.widths, {}, {}}, ranks);
    if (shape.parts[0].cut_edges > 0.8 * random.parts[0].cut_edges && ranks > 1)
      list.push_back("the parts cut as many edges as random ones: partition with --method metis or ldg");
  }
  const std::vector<std::string> allowed = allowed_halo_formats(o.train.graph_options);
  for (const auto& [name, format] : halo_formats()) {
    const bool refused = format == HaloFormat::exact || std::ranges::find(allowed, name) == allowed.end();
    if (now.wire < now.compute || o.train.graph_options.halo_format != HaloFormat::exact || refused) continue;
    add("--halo-format " + name, [&](GraphOptions& other) { other.halo_format = format; });
  }
  const bool fetches_again =
      std::ranges::any_of(rates.edges, [](const EdgePass& pass) { return pass.is_backward && pass.fetches; });
  if (fetches_again && ranks > 1 && o.train.graph_options.mode == HaloMode::rematerialize)
    add("--mode sequential", [](GraphOptions& other) { other.mode = HaloMode::sequential; });
  if (now.memory.stages > 0.2 * now.memory.total()) {
    const double row = static_cast<double>(o.train.model.hidden + o.train.model.heads) * sizeof(real);
    const auto bytes = static_cast<Index>(std::max(row, shape.parts[0].nodes * row / 8));
    add(concat("--max-halo-bytes ", bytes), [&](GraphOptions& other) { other.max_halo_bytes = bytes; });
  }
  for (const int other : {ranks / 2, 2 * ranks})
    if (other >= 1 && other <= most_ranks) list.push_back(tell(concat("--ranks ", other), with_ranks(other)));
  return list;
}

}  // namespace sar::tools

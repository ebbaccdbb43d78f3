/// A failure on each rank at any place of each collective call is the same error on all ranks, and all goes
/// on afterwards.
#include "failures/calls.hpp"
#include "failures/collective_names.hpp"
#include "failures/injection.hpp"
#include "graph/data/dataset_files.hpp"

#include <doctest/doctest.h>
#include <sar/core/error.hpp>
#include <sar/core/memory/arena.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>

namespace sar::test {
namespace {

/// Ends the program when a call does not come back.
class Watchdog {
 public:
  Watchdog(const std::string& name, int failing, std::int64_t number) {
    std::snprintf(text_.data(), text_.size(),
                  "%s does not come back: rank %d fails at allocation %lld (0: wrong call)\n", name.c_str(),
                  failing, static_cast<long long>(number));
    std::signal(SIGALRM, [](int) {
      [[maybe_unused]] const auto written =
          ::write(2, text_.data(), std::char_traits<char>::length(text_.data()));
      ::_exit(3);
    });
    ::alarm(60);
  }
  ~Watchdog() { ::alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static inline std::array<char, 300> text_{};
};

struct Outcome {
  std::string error;             ///< empty: none
  bool of_library = true;        ///< a sar::Error, or nothing
  std::int64_t allocations = 0;  ///< of this rank, up to the end or the error
  std::vector<double> result = {};
};

/// Makes the call once; allocation `number` of rank `failing` fails, or with number 0 its call is wrong.
Outcome make(const Communicator& comm, const Call& call, int failing, std::int64_t number) {
  const Watchdog watchdog(call.name, failing, number);
  const bool mine = comm.rank() == failing;
  const std::size_t live = live_bytes();
  Outcome outcome;
  {
    const Attempt attempt = call.prepare(mine && number == 0);
    std::exception_ptr thrown;
    {
      const FailingAllocation injected(mine ? number : 0);
      try {
        attempt.call();
      } catch (...) {
        thrown = std::current_exception();
      }
      outcome.allocations = injected.count();
    }
    if (!thrown) outcome.result = attempt.result();
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      outcome.error = error.what();
    } catch (const std::exception& error) {
      outcome.error = error.what();
      outcome.of_library = false;
    }
  }
  CHECK(live_bytes() == live);
  CHECK(comm.all_reduce(1) == comm.size());
  return outcome;
}

/// All ranks have thrown the same error of the library; it names `failing`.
void check_error(const Communicator& comm, const Outcome& outcome, int failing, bool of_memory) {
  CAPTURE(outcome.error);
  CHECK(outcome.of_library);
  CHECK(!outcome.error.empty());
  CHECK(comm.broadcast(outcome.error, 0) == outcome.error);
  if (comm.size() > 1) CHECK(outcome.error.find("rank " + std::to_string(failing) + ": ") == 0);
  if (of_memory) CHECK(outcome.error.find("no memory") != std::string::npos);
}

/// Numbers of allocations to fail: the first ones, some in between, the last.
std::vector<std::int64_t> places(std::int64_t allocations) {
  std::vector<std::int64_t> numbers;
  const std::int64_t step = std::max<std::int64_t>(1, (allocations - 6) / 10);
  for (std::int64_t k = 1; k <= allocations; k += k < 6 ? 1 : step) numbers.push_back(k);
  if (allocations > 0 && numbers.back() != allocations) numbers.push_back(allocations);
  return numbers;
}

void check_call(const Communicator& comm, const Call& call) {
  CAPTURE(call.name);
  const Outcome right = make(comm, call, -1, 0);
  CHECK(right.error.empty());
  for (int failing = 0; failing < comm.size(); ++failing) {
    CAPTURE(failing);
    if (call.has_wrong && (failing > 0 || !call.compares))
      check_error(comm, make(comm, call, failing, 0), failing, false);
    std::int64_t allocations = right.allocations;
    comm.broadcast(std::span(&allocations, 1), failing);
    for (const std::int64_t number : places(allocations)) {
      CAPTURE(number);
      const Outcome outcome = make(comm, call, failing, number);
      // Messages arrive sooner or later, so that there may be fewer allocations this time; and the standard
      // library does without some of what it asks for.
      const bool nothing_thrown = comm.all_reduce(outcome.error.empty() ? 1 : 0, ReduceOp::min) == 1;
      if (nothing_thrown)
        CHECK(outcome.result == right.result);
      else
        check_error(comm, outcome, failing, true);
    }
    const Outcome again = make(comm, call, -1, 0);
    CHECK(again.error.empty());
    CHECK(again.result == right.result);
  }
}

std::vector<Call> all_calls(const Communicator& comm, const std::string& directory) {
  std::vector<Call> calls = communication_calls(comm, directory);
  for (auto&& more : {graph_calls(comm), file_calls(comm, directory), layer_calls(comm, directory)})
    calls.insert(calls.end(), more.begin(), more.end());
  return calls;
}

/// Collective functions that are not among the calls, each for a reason.
std::map<std::string, std::string> exceptions() {
  std::map<std::string, std::string> reasons;
  const std::string of_the_library = "for the library's own sources, inside of the calls";
  for (const char* name : {"comm/communicator.hpp Communicator::synchronize",
                           "comm/communicator.hpp Communicator::arguments_equal",
                           "comm/recorded_pass.hpp RecordedPass::run",
                           "comm/communicator.hpp Communicator::common_time",
                           "comm/status.hpp exchange_status",
                           "graph/message/agreement.hpp CollectiveCall::require_equal",
                           "graph/message/agreement.hpp collective",
                           "graph/message/degree_factors.hpp halo_degree_factors",
                           "graph/data/graph_view.hpp view_of_graph",
                           "comm/rows/distributed_rows.hpp fetch_values",
                           "graph/construct/edge_ends.hpp find_ends",
                           "graph/construct/edge_ends.hpp gather_book",
                           "graph/construct/edge_exchange.hpp exchange_edges",
                           "graph/message/held_rows.hpp HeldRows::fetch",
                           "graph/message/held_rows.hpp HeldRows::push",
                           "graph/construct/host_edge_order.hpp HostEdgeOrder::to_graph_order",
                           "graph/construct/host_edge_order.hpp bring_host_edges",
                           "graph/construct/host_edge_order.hpp host_nodes",
                           "graph/construct/layer_graph.hpp make_layer",
                           "graph/construct/layer_graph.hpp rows_of_seeds",
                           "graph/partition/ldg.hpp ldg_assignment",
                           "graph/partition/ldg.hpp balance_by_ldg",
                           "graph/partition/scotch.hpp scotch_assignment",
                           "graph/topology/sharded_graph.hpp ShardedGraph::holding_halo",
                           "graph/topology/graph_topology.hpp GraphTopology::with_halo",
                           "graph/topology/graph_topology.hpp share_halo",
                           "graph/partition/metis.hpp metis_assignment",
                           "graph/partition/neighbor_lists.hpp gather_neighbors",
                           "comm/files/new_directory.hpp NewDirectory",
                           "graph/data/node_data.hpp construct_full_graph",
                           "comm/files/new_directory.hpp NewDirectory::commit",
                           "graph/data/node_columns.hpp read_node_columns",
                           "graph/data/edge_columns.hpp read_edge_columns",
                           "graph/data/graph_view.hpp require_training_labels",
                           "comm/rows/node_directory.hpp NodeDirectory",
                           "comm/rows/node_directory.hpp NodeDirectory::find",
                           "comm/halo/halo_fetch.hpp HaloFetch::start",
                           "comm/halo/halo_plan.hpp number_halo_rows",
                           "graph/data/parts/partition_graph.hpp count_parts",
                           "graph/data/parts/partition_steps.hpp distribute_graph",
                           "graph/data/parts/partition_steps.hpp sort_edges",
                           "graph/data/parts/partition_steps.hpp partition_of_types",
                           "graph/data/parts/partition_steps.hpp order_nodes",
                           "graph/data/parts/partition_steps.hpp read_part_data",
                           "comm/rows/replace_ids.hpp replace_ids",
                           "nn/modules/rank_moments.hpp merge_over_ranks",
                           "comm/rows/replace_ids.hpp numbers_of_ids",
                           "graph/sampling/data_loader.hpp SeedBatches::at_hand",
                           "graph/construct/message_flow_graph.hpp make_layers",
                           "comm/rows/row_pull.hpp RowPull",
                           "comm/rows/row_route.hpp route_chunks",
                           "comm/rows/row_window.hpp RowWindow",
                           "comm/rows/stored_rows.hpp StoredRows",
                           "comm/rows/stored_rows.hpp StoredRows::start_pull",
                           "comm/rows/unique_ids.hpp require_permutation",
                           "graph/message/driver.hpp Driver::backward",
                           "graph/message/driver.hpp Driver::forward",
                           "comm/files/shared_npy.hpp SharedNpyFile",
                           "comm/files/shared_npy.hpp SharedNpyFile::commit",
                           "comm/rows/unique_ids.hpp require_unique_ids"})
    reasons[name] = of_the_library;
  reasons["graph/data/sources/dgl_partition.hpp load_dgl_partition"] =
      "on one and two ranks: the test's partition has two parts";
  reasons["graph/data/hetero_graphs.hpp construct_hetero_graphs"] =
      reasons["graph/data/sources/dgl_partition.hpp load_dgl_partition"];
  reasons["comm/communicator.hpp Communicator::self"] = "of one rank";
  reasons["graph/data/graph_source.hpp GraphSource::write_node_keys"] =
      "does nothing, unless a program's source has names";
  reasons["graph/data/graph_source.hpp GraphSource::read_listed_pairs"] =
      "does nothing, unless a program's source lists pairs";
  for (const char* name :
       {"comm/communicator.hpp Communicator::set_max_collective_size",
        "graph/data/graph_source.hpp GraphSource::num_nodes", "graph/data/graph_source.hpp GraphSource::num_edges",
        "graph/data/graph_source.hpp SourceTypes::num_edges",
        "graph/data/graph_source.hpp GraphSource::comm", "graph/data/graph_source.hpp SourceEdges::canonical_name",
        "graph/data/graph_source.hpp SourceTypes::node_type"})
    reasons[name] = "local";
  return reasons;
}

}  // namespace

TEST_CASE("a failure of one rank inside a collective call is the same error on all, and all goes on") {
  const Communicator comm = Communicator::world();
  const ThreadLimit one_thread(1);  // the same allocations each time
  const TemporaryDirectory directory(comm);
  for (const Call& call : all_calls(comm, directory.path())) check_call(comm, call);
}

TEST_CASE("a block goes back to the arena without memory for it, which a destructor could not do without") {
  Arena arena(std::size_t{256} << 20);
  const auto bytes = [](std::size_t k) { return (k % 7 + 1) * Arena::granularity; };
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    for (std::size_t k = 0; k < 200; ++k) blocks.push_back(arena.allocate(bytes(k)));
    const FailingAllocation any(1);
    for (const std::size_t odd : {1u, 0u})  // every second one first: no neighbours to merge with
      for (std::size_t k = odd; k < 200; k += 2) arena.deallocate(blocks[k], bytes(k));
    CHECK(any.count() == 0);
    blocks.clear();
  }
}

TEST_CASE("each collective function of the public headers is among the calls") {
  const Communicator comm = Communicator::world();
  const TemporaryDirectory directory(comm);
  std::set<std::string> covered;
  for (const Call& call : all_calls(comm, directory.path())) {
    std::istringstream names(call.name);
    for (std::string name; std::getline(names >> std::ws, name, ',');) covered.insert(name);
  }
  const auto reasons = exceptions();
  for (const std::string& name : collective_names(SAR_SOURCE_DIRECTORY)) {
    CAPTURE(name);
    CHECK((covered.contains(name) || reasons.contains(name)));
  }
}

}  // namespace sar::test

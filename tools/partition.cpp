/// Partitions a graph once, for many trainings; try --help.
///     mpirun -n 2 partition path/to/dataset --parts 8 --method metis --out parts
/// The number of ranks that partition and the number of parts are independent.
#include "formats/open_source.hpp"
#include "parse.hpp"
#include "partition_report.hpp"
#include "run.hpp"
#include "source_arguments.hpp"

#include <sar/graph/data/partition_graph.hpp>
#include <sar/sar.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

using namespace sar;

namespace {

/// A line for each phase: what, how much of it, seconds; and a word now and then while it lasts.
class Progress {
 public:
  explicit Progress(const Communicator& comm) : speaks_(comm.rank() == 0) {}

  void operator()(const std::string& phase, Index done, Index total) {
    if (!speaks_) return;
    const auto now = std::chrono::steady_clock::now();
    if (done == 0) begin_ = told_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    if (done == total) {
      std::printf("%-28s %12lld   %.1f s\n", phase.c_str(), static_cast<long long>(total), seconds);
    } else if (now - told_ > std::chrono::seconds(10)) {
      std::printf("  %s: %.0f %% after %.0f s\n", phase.c_str(),
                  100 * static_cast<double>(done) / static_cast<double>(total), seconds);
      told_ = now;
    }
    std::fflush(stdout);
  }

 private:
  bool speaks_;
  std::chrono::steady_clock::time_point begin_, told_;
};

struct Options {
  std::string input, out, report;
  formats::SourceOptions source;
  PartitionGraphOptions graph;
  examples::ModelSize model;
  int threads = 0;
};

/// The widths that the command line leaves to the graph. Collective.
void complete(examples::ModelSize& model, GraphSource& source) {
  const Communicator& comm = source.comm();
  for (const DataField& field : source.node_fields()) {
    if (model.features == 0 && (field.name == "features" || field.name == "feat"))
      model.features = field.row_size();
    if (model.classes == 0 && (field.name == "labels" || field.name == "label") && field.row_size() == 1) {
      const PartitionBook slices = PartitionBook::even(source.num_nodes(), comm.size());
      std::vector<Index> nodes(static_cast<std::size_t>(slices.num_nodes(comm.rank())));
      std::iota(nodes.begin(), nodes.end(), slices.begin(comm.rank()));
      const Tensor labels = source.read_node_data(field.name, nodes).to_tensor();
      real largest = 0;
      for (const real label : labels.values()) largest = std::max(largest, label);
      model.classes = static_cast<Index>(comm.all_reduce(largest, ReduceOp::max)) + 1;
    }
  }
}

int partition(const Communicator& comm, int argc, char** argv) {
  Options o;

  CLI::App app("Partitions a graph for training on any number of workers.", "partition");
  app.get_formatter()->column_width(40);
  app.option_defaults()->always_capture_default();
  app.add_option("input", o.input,
                 "dataset directory, OGB folder, edge list or Matrix Market file (.gz or not)")
      ->required()
      ->option_text("INPUT");
  app.add_option("--out", o.out, "the partition directory to make")->required()->option_text("DIR");
  app.add_option("--parts", o.graph.parts, "how many")->required()->check(CLI::PositiveNumber);
  const std::map<std::string, PartitionMethod> methods{{"contiguous", PartitionMethod::contiguous},
                                                       {"random", PartitionMethod::random},
                                                       {"metis", PartitionMethod::metis},
                                                       {"ldg", PartitionMethod::ldg}};
  app.add_option("--method", o.graph.method, "metis, ldg, random or contiguous")
      ->required()
      ->transform(CLI::CheckedTransformer(methods).description(""));
  const std::map<std::string, NodeOrder> orders{{"clusters", NodeOrder::clusters},
                                                {"original", NodeOrder::original}};
  app.add_option("--order", o.graph.order,
                 "of the nodes in a part: clusters (used together, lying together) or original")
      ->transform(CLI::CheckedTransformer(orders).description(""))
      ->default_str("clusters");
  app.add_option("--seed", o.graph.seed, "of the random, metis and ldg methods");
  app.add_flag("--add-reverse-edges", o.graph.add_reverse_edges, "every edge in both directions");
  app.add_flag("--add-self-loops", o.graph.add_self_loops, "an edge from every node to itself");
  app.add_flag("--drop-duplicates", o.graph.drop_duplicates, "parallel edges count once");
  app.add_flag("!--no-balance-edges", o.graph.balance_edges,
               "metis, ldg: parts need not have as many in-edges");
  app.add_flag("!--no-balance-training", o.graph.balance_training,
               "metis, ldg: parts need not have as many training nodes");
  examples::add_source_options(app, o.source);
  app.add_option("--model", o.model.kind, "predict memory and traffic of sage, gcn or gat")
      ->check(CLI::IsMember({"sage", "gcn", "gat"}));
  app.add_option("--layers", o.model.layers, "of the model")->check(CLI::PositiveNumber);
  app.add_option("--hidden", o.model.hidden, "its width, of all heads together")->check(CLI::PositiveNumber);
  app.add_option("--heads", o.model.heads, "gat: attention heads")->check(CLI::PositiveNumber);
  app.add_option("--features", o.model.features, "width of its input; 0: that of the graph's features")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--classes", o.model.classes, "width of its output; 0: largest label + 1")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--batch-norm", o.model.batch_norm, "batch norm between its layers");
  app.add_option("--report", o.report, "what is printed, as JSON")->option_text("FILE");
  app.add_option("--threads", o.threads,
                 "per rank; 0: the processors a rank is bound to, shared among the ranks bound to them")
      ->check(CLI::NonNegativeNumber);
  if (const auto exit_code = examples::parse(app, argc, argv, comm)) return *exit_code;

  const ThreadLimit threads(o.threads > 0 ? o.threads : default_num_threads(comm));
  comm.agree([&] {  // before the graph is read
    if (comm.rank() != 0) return;
    require<InputError>(!o.out.empty(), "the name of the output directory is empty");
    if (!o.report.empty()) check_writable(o.report);
    std::error_code error;
    require<InputError>(!std::filesystem::exists(std::filesystem::symlink_status(o.out, error)), o.out,
                        ": exists already, expected a directory that can be made");
    check_writable(std::filesystem::path(o.out + "/").parent_path().string());
  });
  const std::unique_ptr<GraphSource> source = formats::open_source(comm, o.input, o.source);
  if (comm.rank() == 0) std::cout << source->description() << std::endl;
  complete(o.model, *source);
  const auto begin = std::chrono::steady_clock::now();
  const PartitionReport report = partition_graph(*source, o.out, o.graph, Progress(comm));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const examples::Measured measured = examples::measured(comm, seconds.count());
  if (comm.rank() == 0) examples::print_report(report, o.model, measured);
  comm.agree([&] {
    if (comm.rank() == 0 && !o.report.empty())
      examples::write_report(o.report, report, o.graph, o.model, measured);
  });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Environment environment(argc, argv);
  return examples::run("partition", [&](const Communicator& comm) { return partition(comm, argc, argv); });
}

// SPDX-License-Identifier: MIT
#include "failures/collective_names.hpp"

#include <sar/core/error.hpp>

#include <filesystem>
#include <fstream>
#include <regex>
#include <vector>

namespace sar::test {
namespace {

bool has(const std::string& text, const char* pattern) {
  return std::regex_search(text, std::regex(pattern));
}

/// The lines of a comment, in one.
void add_comment(std::string& comment, const std::string& line) {
  comment.append(" ").append(std::regex_replace(line, std::regex("^ */// ?"), ""));
}

/// Reads declarations at the level of a file or of a class: those indented by 0 or 2 spaces.
void read_header(const std::filesystem::path& path, const std::string& header, std::set<std::string>& names) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  std::size_t i = 0;
  std::string about, comment, scope;
  for (; i < lines.size() && lines[i].starts_with("///"); ++i) add_comment(about, lines[i]);
  const bool all = has(about, "(very function|verything|All functions)( here)? (is|are) collective");
  bool hidden = false;
  for (; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) {
      comment.clear();
    } else if (line.starts_with("}")) {
      scope.clear();
      hidden = false;
    } else if (line.find("///") == indent) {
      if (indent <= 2) add_comment(comment, line);
    } else if (line == " public:" || line == " protected:" || line == " private:") {
      hidden = line != " public:";
    } else if (indent == 0 || indent == 2) {
      std::smatch found;
      if (std::regex_search(line, found, std::regex("^(?:class|struct) (\\w+)")) && line.back() != ';') {
        scope = found[1];
        if (has(comment, "\\bCollective\\b")) names.insert(concat(header, " ", scope));
        comment.clear();
        continue;
      }
      std::string said = comment;
      if (const auto behind = line.find("///<"); behind != std::string::npos) said += line.substr(behind);
      const std::string code = line.substr(0, line.find("///<"));
      const bool is_function =
          !code.starts_with("static_assert") && std::regex_search(code, found, std::regex("(~?\\w+)\\("));
      if (!is_function) {
        if (!has(code, "^ *(template|requires|\\[\\[nodiscard\\]\\]$)")) comment.clear();
        continue;
      }
      const std::string name = found[1];
      const bool collective = has(said, "\\bCollective\\b") || (all && !has(said, "\\b[Ll]ocal\\b"));
      const bool special =
          name.starts_with("~") || name == "static_assert" || has(code, "= (delete|default);");
      if (collective && !hidden && !special)
        names.insert(concat(header, " ", indent == 0 || name == scope ? "" : scope + "::", name));
      comment.clear();
    }
  }
}

}  // namespace

std::set<std::string> collective_names(const std::string& source_directory) {
  std::set<std::string> names;
  for (const std::string folder : {"comm", "graph", "nn"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_directory + "/" + folder))
      if (entry.path().extension() == ".hpp")
        read_header(entry.path(), relative(entry.path(), source_directory).string(), names);
  return names;
}

std::map<std::string, std::string> internal_names() {
  std::map<std::string, std::string> reasons;
  const std::string of_the_library = "for the library's own sources, inside of the calls";
  for (const char* name : {"comm/communicator.hpp Communicator::synchronize",
                           "comm/communicator_alone.hpp communicator_alone",
                           "comm/communicator.hpp Communicator::require_equal",
                           "comm/recorded_pass.hpp RecordedPass::run",
                           "comm/communicator.hpp Communicator::common_time",
                           "comm/status.hpp exchange_status",
                           "graph/message/agreement.hpp collective",
                           "graph/message/operation.hpp run_pass",
                           "graph/message/degree_factors.hpp halo_degree_factors",
                           "comm/rows/distributed_rows.hpp fetch_values",
                           "graph/construct/edge_exchange.hpp find_ends",
                           "comm/rows/partition_book.hpp gather_book",
                           "graph/construct/edge_exchange.hpp exchange_edges",
                           "comm/exact_sums.hpp exact_sum_over_ranks",
                           "graph/hetero/graph_types.hpp GraphTypes::make_shards",
                           "graph/hetero/graph_types.hpp GraphTypes::take_relations",
                           "graph/construct/layer_graph.hpp make_layer",
                           "graph/construct/layer_graph.hpp make_subgraph",
                           "graph/construct/layer_graph.hpp rows_of_seeds",
                           "graph/partition/ldg.hpp ldg_assignment",
                           "graph/partition/ldg.hpp balance_by_ldg",
                           "graph/partition/scotch.hpp scotch_assignment",
                           "nn/atoms/message_sums.hpp message_sums",
                           "graph/topology/sharded_graph.hpp ShardedGraph::holding_halo",
                           "graph/topology/graph_topology.hpp GraphTopology::with_halo",
                           "graph/topology/graph_topology.hpp make_topology",
                           "graph/topology/graph_topology.hpp count_uses",
                           "graph/sampling/candidate_edges.hpp check_probabilities",
                           "graph/sampling/candidate_edges.hpp find_sources",
                           "graph/topology/graph_topology.hpp share_halo",
                           "graph/partition/metis.hpp metis_assignment",
                           "graph/partition/ldg.hpp gather_neighbors",
                           "comm/rows/new_directory.hpp NewDirectory",
                           "graph/data/graph_data.hpp construct_full_graph",
                           "comm/rows/new_directory.hpp NewDirectory::commit",
                           "graph/data/columns.hpp read_node_columns",
                           "graph/data/columns.hpp read_edge_columns",
                           "graph/data/label_columns.hpp take_labels",
                           "graph/data/splits.hpp require_training_labels",
                           "comm/rows/node_directory.hpp NodeDirectory",
                           "comm/rows/node_directory.hpp NodeDirectory::find",
                           "comm/halo/halo_exchange.hpp HaloFetch::start",
                           "comm/halo/halo_exchange.hpp fetch_halo",
                           "comm/halo/halo_plan.hpp number_halo_rows",
                           "graph/data/partition_graph.hpp count_parts",
                           "graph/data/graph_steps.hpp read_edges",
                           "graph/data/graph_steps.hpp add_edges",
                           "graph/data/graph_steps.hpp number_nodes",
                           "graph/data/graph_steps.hpp send_edges",
                           "graph/data/graph_steps.hpp drop_edges",
                           "graph/data/columns.hpp for_each_range",
                           "graph/data/columns.hpp read_columns",
                           "graph/data/columns.hpp is_sparse_field",
                           "graph/data/columns.hpp read_sparse",
                           "graph/data/columns.hpp choose_sparse_fields",
                           "graph/data/partition_graph.hpp share_sizes",
                           "graph/data/partition_description.hpp share_partition_description",
                           "graph/partition/partition.hpp partition_of_types",
                           "comm/rows/node_directory.hpp replace_ids",
                           "nn/train/score_keys.hpp count_scores",
                           "comm/rows/node_directory.hpp numbers_of_ids",
                           "graph/sampling/data_loader.hpp SeedBatches::at_hand",
                           "graph/construct/message_flow_graph.hpp make_layers",
                           "comm/rows/row_route.hpp RowPull",
                           "comm/rows/row_route.hpp route_chunks",
                           "comm/rows/node_directory.hpp sort_targets",
                           "comm/rows/row_window.hpp RowWindow",
                           "comm/rows/distributed_tensor.hpp StoredRows",
                           "comm/rows/distributed_tensor.hpp StoredRows::start_pull",
                           "comm/rows/node_directory.hpp require_permutation",
                           "comm/communicator.hpp Communicator::agree_to_start",
                           "graph/message/driver.hpp BackwardPass::finish",
                           "graph/message/driver.hpp BackwardPass::start",
                           "graph/message/driver.hpp Driver::backward",
                           "graph/message/driver.hpp Driver::forward",
                           "graph/message/driver.hpp ForwardPass",
                           "graph/message/driver.hpp ForwardPass::discard",
                           "graph/message/driver.hpp ForwardPass::finish",
                           "graph/message/driver.hpp SourceRows::start",
                           "graph/message/operation.hpp SplitBackward::run",
                           "graph/message/started_sum.hpp StartedSum",
                           "comm/rows/shared_npy.hpp SharedNpyFile",
                           "comm/rows/shared_npy.hpp SharedNpyFile::commit",
                           "comm/rows/node_directory.hpp require_unique_ids"})
    reasons[name] = of_the_library;
  reasons["graph/data/dgl_partition.hpp load_dgl_partition"] =
      "on one and two ranks: the test's partition has two parts";
  reasons["graph/data/relation_data.hpp construct_hetero_graphs"] =
      reasons["graph/data/dgl_partition.hpp load_dgl_partition"];
  reasons["comm/communicator.hpp Communicator::self"] = "of one rank";
  reasons["graph/data/graph_source.hpp GraphSource::write_node_keys"] =
      "does nothing, unless a program's source has names";
  reasons["graph/data/graph_source.hpp GraphSource::read_listed_pairs"] =
      "does nothing, unless a program's source lists pairs";
  for (const char* name : {"comm/communicator.hpp CallScope", "comm/communicator.hpp CallScope::call",
                           "comm/communicator.hpp Communicator::set_max_collective_size",
                           "graph/data/graph_source.hpp GraphSource::num_nodes",
                           "graph/data/graph_source.hpp GraphSource::num_edges",
                           "graph/data/graph_source.hpp GraphSource::comm"})
    reasons[name] = "local";
  return reasons;
}

}  // namespace sar::test

#include "options.hpp"

#include <map>

namespace sar::tools {
namespace {

void read_separator(const std::string& word, std::optional<char>& separator) {
  static const std::map<std::string, std::optional<char>> words{
      {"auto", std::nullopt}, {"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"blank", ' '}};
  const auto found = words.find(word);
  if (found == words.end() && word.size() != 1)
    throw CLI::ValidationError("--separator", "'" + word + "', expected a word of --help or one sign");
  separator = found == words.end() ? word[0] : found->second;
}

}  // namespace

CLI::Option* add_pairs(CLI::App& app, const std::string& option, std::map<std::string, std::string>& pairs,
                       const std::string& form, const std::string& help) {
  const auto read = [&pairs, option, form](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const std::size_t sign = text.find('=');
      if (sign == std::string::npos || sign == 0 || sign + 1 == text.size())
        throw CLI::ValidationError(option, "'" + text + "', expected " + form);
      if (!pairs.emplace(text.substr(0, sign), text.substr(sign + 1)).second)
        throw CLI::ValidationError(option, text.substr(0, sign) + " is given twice");
    }
  };
  return app.add_option_function<std::vector<std::string>>(option, read, help)->option_text(form + " ...");
}

const Choices<PartitionMethod>& partition_methods() {
  static const Choices<PartitionMethod> methods{{"contiguous", PartitionMethod::contiguous},
                                                {"random", PartitionMethod::random},
                                                {"metis", PartitionMethod::metis},
                                                {"ldg", PartitionMethod::ldg},
                                                {"scotch", PartitionMethod::scotch}};
  return methods;
}

void add_sbm_options(CLI::App& app, SbmOptions& sbm, const std::string& prefix) {
  const auto positive = number_from<Index>(1);
  const auto share = number_from(0.0, 1.0);
  app.add_option("--nodes", sbm.nodes, prefix + "number of nodes")->transform(positive);
  app.add_option("--degree", sbm.degree, prefix + "average in-degree")->transform(number_from(1e-6, 1e9));
  app.add_option("--classes", sbm.classes, prefix + "number of classes")->transform(positive);
  app.add_option("--features", sbm.features, prefix + "width of the features")->transform(positive);
  app.add_option("--homophily", sbm.homophily, prefix + "share of edges inside a class")->transform(share);
  app.add_option("--train-share", sbm.train_share, prefix + "share of the training nodes")->transform(share);
}

std::vector<CLI::Option*> add_source_options(CLI::App& app, formats::SourceOptions& o) {
  const Choices<formats::NodeIds> node_ids{{"auto", formats::NodeIds::automatic},
                                           {"dense", formats::NodeIds::dense},
                                           {"names", formats::NodeIds::names}};
  return {
      add_pairs(app, "--node-data", o.node_data, "NAME=FILE.npy",
                "edge list, Matrix Market: features, labels, train_mask, ..., one row for each node"),
      add_choice(app, "--node-ids", o.node_ids, node_ids,
                 "edge list: auto, dense (numbers of nodes) or names (any words)"),
      app.add_option_function<std::string>(
             "--separator", [&o](const std::string& word) { read_separator(word, o.separator); },
             "edge list: auto, tab, comma, semicolon, blank or one sign")
          ->default_str("auto"),
      app.add_flag("--ignore-columns", o.ignore_data, "edge list: read the two nodes of a line only"),
      app.add_option("--split", o.split, "OGB folder: which one in split/; empty: the only one"),
  };
}

CLI::Validator not_empty() {
  return {[](const std::string& path) { return path.empty() ? std::string("the path is empty") : ""; }, ""};
}

void add_seed_option(CLI::App& app, std::uint64_t& seed, const std::string& help) {
  app.add_option("--seed", seed, help)->transform(number_from<std::uint64_t>(0));
}

CLI::Option* add_layers_option(CLI::App& app, int& layers, const std::string& help) {
  constexpr int most = 10000;
  return app.add_option("--layers", layers, help)->transform(number_from(1, most));
}

void add_threads_option(CLI::App& app, int& threads) {
  constexpr int most = 1024;
  app.add_option("--threads", threads,
                 "per rank; 0: the processors a rank is bound to, shared among the ranks bound to them")
      ->transform(number_from(0, most));
}

}  // namespace sar::tools

// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <sstream>

namespace sar::tools {
namespace {

const std::string help_group = "Help";
constexpr const char* self_loops_option = "--add-self-loops";

/// Writes an option as "--name TYPE    description [default]".
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::vector<std::string> common) : common_(std::move(common)) { column_width(32); }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = make_description(app) + make_usage(app, std::move(name)) + make_positionals(app);
    for (const std::string& group : app->get_groups()) {
      const auto options = app->get_options([&](const CLI::Option* option) {
        return option->get_group() == group && option->nonpositional() &&
               (mode == CLI::AppFormatMode::All || is_common(*option));
      });
      if (!options.empty()) text += make_group(group, false, options);
    }
    return text + (app->get_footer().empty() ? "" : "\n") + make_footer(app);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";  // a flag
    const std::string& form = option->get_option_text();
    return " " + (form.empty() ? option->get_type_name() : form);
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string value = option->get_type_size() > 0 ? option->get_default_str() : "";
    if (option->get_required()) return option->get_description() + " (required)";
    return option->get_description() + (value.empty() ? "" : " [" + value + "]");
  }

 private:
  [[nodiscard]] bool is_common(const CLI::Option& option) const {
    return option.get_group() == help_group || std::ranges::count(common_, option.get_name()) > 0;
  }

  std::vector<std::string> common_;
};

void read_separator(const std::string& word, std::optional<char>& separator) {
  static const std::map<std::string, std::optional<char>> words{
      {"auto", std::nullopt}, {"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"blank", ' '}};
  const auto found = words.find(word);
  if (found == words.end() && word.size() != 1)
    refuse_value("--separator", word, "auto, tab, comma, semicolon, blank or one character");
  separator = found == words.end() ? word[0] : found->second;
}

/// Adds an option that says what columns are: "key=new_id,labels=mature,features=days,views". An item without
/// a role has the role before it.
CLI::Option* add_roles(CLI::App& app, const std::string& option, const std::vector<std::string>& roles,
                       std::multimap<std::string, std::string>& columns, const std::string& help) {
  const auto read = [&columns, option, roles](const std::vector<std::string>& texts) {
    const auto refuse = [&](const std::string& item, const std::string& expected) {
      refuse_value(option, item, expected + "ROLE=COLUMN with a role of " + joined(roles));
    };
    for (const std::string& text : texts) {
      std::string role;
      for (std::string item : split_text(text, ',')) {
        const auto [before, after] = split_at(item, '=');
        const std::string given = before == "label" ? "labels" : before;
        const auto known =
            std::ranges::find_if(roles, [&](const std::string& name) { return is_name(given, name); });
        if (known != roles.end() && before.size() < item.size()) {
          role = *known;
          item = after;
        }
        if (role.empty() || item.empty()) refuse(item, "");
        const bool may_repeat = role == "features" || role == "one-hot";
        if (!may_repeat && columns.contains(role)) refuse(item, "one column for " + role + ", or ");
        columns.emplace(role, item);
      }
    }
  };
  return app.add_option_function<std::vector<std::string>>(option, read, help)
      ->allow_extra_args(false)
      ->option_text("ROLE=COLUMN,...");
}

/// Returns the least number of characters to insert, delete or replace that makes `a` into `b` (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // from the first i characters of a to the first j of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

/// Returns the option whose name is most like `given`, or begins with it or as it; empty if none is, or the
/// word does not begin as an option. A word without dashes has to be the name of an option.
std::string nearest_option(const CLI::App& app, const std::string& given) {
  const std::size_t dashes = std::min(given.find_first_not_of('-'), given.size());
  if (given.size() > 40 || given.size() < dashes + 2) return "";
  const std::string word = "--" + given.substr(dashes);
  std::string nearest, longer;
  std::size_t least = dashes == 0 ? 0 : word.size() / 3;  // characters
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool begins =
        name.starts_with(word) || word.starts_with(name + "-") || word.starts_with(name + "_");
    if (begins && dashes > 0 && (longer.empty() || name.size() < longer.size())) longer = name;
    if (const std::size_t distance = edit_distance(word, name); distance <= least) {
      if (distance < least || nearest.empty()) nearest = name;
      least = distance;
    }
  }
  return nearest.empty() ? longer : nearest;
}

CLI::Option* as_path(CLI::Option* option, const std::string& form) {
  const auto check = [](const std::string& given) {
    return given.empty() ? std::string("the path is empty") : "";
  };
  return option->check(CLI::Validator(check, ""))->option_text(form);
}

}  // namespace

Choices<std::string> named(const std::vector<std::string>& names) {
  Choices<std::string> choices;
  for (const std::string& name : names) choices.emplace_back(name, name);
  return choices;
}

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream rest(text + separator);
  for (std::string part; std::getline(rest, part, separator);) parts.push_back(part);
  return parts;
}

std::pair<std::string, std::string> split_at(const std::string& text, char sign) {
  const std::size_t end = std::min(text.find(sign), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

bool is_name(const std::string& given, const std::string& name) {
  const auto dashed = [](char c) { return c == '_' ? '-' : c; };
  return std::ranges::equal(given, name, {}, dashed, dashed);
}

void refuse_value(const std::string& option, const std::string& text, const std::string& expected) {
  throw CLI::ValidationError(option, "'" + text + "', expected " + expected);
}

void begin_group(CLI::App& app, const std::string& name) {
  app.option_defaults()->group(name);
}

void set_common_options(CLI::App& app, std::vector<std::string> names) {
  app.formatter(std::make_shared<HelpFormatter>(std::move(names)));
}

void add_help_options(CLI::App& app) {
  begin_group(app, help_group);
  app.set_help_flag("-h,--help", "shows the most used options");
  app.set_help_all_flag("--help-all", "shows all options");
  app.set_version_flag("--version",
                       concat("sar-", app.get_name(), " " SAR_VERSION ", ",
                              sizeof(real) == sizeof(double) ? "double" : "single", " precision, " SAR_MPI),
                       "shows the version, the precision and the MPI library");
}

std::vector<CLI::Option*> add_edge_options(CLI::App& app, DatasetOptions& o) {
  CLI::Option* reverse =
      app.add_flag("--add-reverse-edges", o.add_reverse_edges, "first: adds the reverse of every edge");
  const auto word = std::make_shared<std::string>();
  CLI::Option* loops =
      app.add_flag(self_loops_option, *word,
                   "second: adds an edge from every node to itself; remaining: if it has none")
          ->option_text("[remaining]")
          ->check([](const std::string& value) {  // "true": the option by itself
            const bool is_known = value == "true" || value == "all" || value == "remaining";
            return is_known ? std::string() : "'" + value + "', expected all or remaining";
          })
          ->each([&o, word](const std::string& value) {
            o.add_self_loops = true;
            o.remaining_self_loops = value == "remaining";
          });
  return {reverse, loops,
          app.add_flag("--drop-duplicates", o.drop_duplicates,
                       "third: keeps one of several edges with the same ends")};
}

CLI::Option* add_sparse_features_option(CLI::App& app, SparseFeatures& sparse) {
  return add_choice(
      app, "--sparse-features", sparse,
      {{"auto", SparseFeatures::automatic}, {"yes", SparseFeatures::yes}, {"no", SparseFeatures::no}},
      "keeps only values that are not 0; auto: if they are few");
}

std::vector<std::string> joined_words(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if ((word == "all" || word == "remaining") && i > 1 && argv[i - 1] == std::string(self_loops_option))
      words.back() += "=" + word;
    else
      words.push_back(word);
  }
  return words;
}

std::string unknown_arguments(const CLI::App& app) {
  const std::vector<std::string> given = app.remaining();
  std::vector<std::string> nearest;
  for (const std::string& argument : given) {
    const std::string option = nearest_option(app, argument.substr(0, argument.find('=')));
    if (!option.empty()) nearest.push_back(option);
  }
  return concat("unknown arguments: ", joined(given, {}, " "), nearest.empty() ? "" : "; did you mean ",
                joined(nearest), nearest.empty() ? "" : "?");
}

CLI::Option* add_pairs(CLI::App& app, const std::string& option, std::map<std::string, std::string>& pairs,
                       const std::string& form, const std::string& help) {
  const auto read = [&pairs, option, form](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      const auto [name, value] = split_at(text, '=');
      if (name.empty() || value.empty()) refuse_value(option, text, form);
      if (!pairs.emplace(name, value).second) throw CLI::ValidationError(option, name + " is given twice");
    }
  };
  return app.add_option_function<std::vector<std::string>>(option, read, help)->option_text(form + " ...");
}

const Choices<PartitionMethod>& partition_methods() {
  using enum PartitionMethod;
  static const auto methods = named({contiguous, random, metis, ldg, scotch, automatic});
  return methods;
}

std::vector<CLI::Option*> add_sbm_options(CLI::App& app, SbmOptions& sbm, const std::string& prefix) {
  return {add_number(app, "--nodes", sbm.nodes, prefix + "number of nodes", 1),
          add_number(app, "--degree", sbm.degree, prefix + "average in-degree", 1e-6, 1e9),
          add_number(app, "--classes", sbm.classes, prefix + "number of classes", 1),
          add_number(app, "--features", sbm.features, prefix + "width of the features", 1),
          add_number(app, "--homophily", sbm.homophily, prefix + "share of edges inside a class", 0, 1),
          add_number(app, "--train-share", sbm.train_share, prefix + "share of training nodes", 0, 1)};
}

std::vector<CLI::Option*> add_source_options(CLI::App& app, formats::SourceOptions& o) {
  const Choices<formats::NodeIds> node_ids{{"auto", formats::NodeIds::automatic},
                                           {"dense", formats::NodeIds::dense},
                                           {"from-1", formats::NodeIds::from_one},
                                           {"names", formats::NodeIds::names}};
  return {
      add_pairs(app, "--node-data", o.node_data, "NAME=FILE.npy",
                "graph file: rows of nodes (features, labels, train_mask), lists of nodes (train_nodes)"),
      add_path(app, "--node-table", o.node_table, "FILE",
               "graph file: table (.csv, .tsv) with a row for each node and a column of node ids"),
      add_roles(app, "--node-columns",
                {"key", "labels", "features", "one-hot", "train_mask", "val_mask", "test_mask", "split"},
                o.node_columns, "--node-table: key=id,labels=y,features=a,b,one-hot=c; masks, split")
          ->needs("--node-table"),
      app.add_option("--missing-label", o.missing_label, "--node-table: labels that are this word are none")
          ->needs("--node-table")
          ->option_text("WORD"),
      add_path(app, "--node-features", o.node_features, "FILE.json",
               "graph file: lists of features, {\"node\": [number, ...]}"),
      add_choice(app, "--feature-lists", o.feature_lists,
                 {{"auto", formats::FeatureLists::automatic},
                  {"values", formats::FeatureLists::values},
                  {"indices", formats::FeatureLists::indices}},
                 "--node-features: what the lists are")
          ->needs("--node-features"),
      add_path(app, "--node-keys", o.node_keys, "FILE",
               "edge list: ids of the nodes in the order of the rows of --node-data"),
      add_choice(app, "--node-ids", o.node_ids, node_ids, "edge list: what node ids are"),
      add_roles(app, "--columns", {"source", "target", "weight", "features", "split", "labels", "type"},
                o.columns, "edge list: columns by name or number, source=user,target=item,weight=w"),
      add_choice(app, "--header", o.header, {{"auto", std::nullopt}, {"yes", true}, {"no", false}},
                 "edge list: is the first line a header"),
      app.add_option_function<std::string>(
             "--separator", [&o](const std::string& word) { read_separator(word, o.separator); },
             "edge list: auto, tab, comma, semicolon, blank or one character")
          ->type_name("NAME")
          ->default_str("auto"),
      app.add_flag("--ignore-columns", o.ignore_data, "edge list: ignores columns after the two nodes"),
      app.add_option("--split", o.split,
                     "number of one of several splits; OGB folder: name of a folder in split/ [0]")
          ->type_name("N"),
  };
}

Index split_number(const std::string& path, const formats::SourceOptions& o) {
  std::error_code error;
  const bool is_ogb = std::filesystem::is_directory(path + "/raw", error) || path.ends_with(".zip");
  if (o.split.empty() || is_ogb) return 0;
  const std::optional<Index> number = to_signed_number<Index>(o.split);
  if (!number || *number < 0) refuse_value("--split", o.split, "the number of a split, from 0 on");
  return *number;
}

CLI::Option* add_path(CLI::App& app, const std::string& option, std::string& path, const std::string& form,
                      const std::string& help) {
  return as_path(app.add_option(option, path, help), form);
}

CLI::Option* add_paths(CLI::App& app, const std::string& option, std::vector<std::string>& paths,
                       const std::string& form, const std::string& help) {
  return as_path(app.add_option(option, paths, help), form);
}

CLI::Option* add_threads_option(CLI::App& app, int& threads) {
  return add_number(app, "--threads", threads,
                    "threads per rank; 0: all processors that the ranks are bound to", 0, 1024);
}

}  // namespace sar::tools

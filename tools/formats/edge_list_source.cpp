// SPDX-License-Identifier: MIT
#include "edge_list_source.hpp"

#include "edge_chunks.hpp"
#include "edge_list.hpp"
#include "field_data.hpp"
#include "first_lines.hpp"
#include "node_keys.hpp"
#include "other_formats.hpp"
#include "text.hpp"

#include <sar/comm/communicator.hpp>
#include <sar/core/error.hpp>
#include <sar/core/text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace sar::formats {
namespace {

/// Collective.
EdgeListFormat guess_from_file(const Communicator& comm, const std::string& path,
                               const SourceOptions& options) {
  return guess_from_first_lines(comm, path, "a text with an edge a line", [&](const FirstLines& first) {
    if (options.columns.empty()) refuse_other_formats(path, first);
    require<InputError>(!first.is_parquet || (!options.header && !options.separator), path,
                        ": columns of Parquet have names and no separator, expected no --header and no "
                        "--separator");
    EdgeListFormat format = guess_edge_list_format(first, options);
    format.first_id = options.node_ids == NodeIds::from_one ? 1 : 0;
    format.may_be_names = options.node_ids == NodeIds::automatic;
    return format;
  });
}

/// What a column of ends has, and the first word, or the first one for a missing node, if there is one.
struct EndsSeen {
  Index integers = 0, words = 0, missing = 0;
  Index line = std::numeric_limits<Index>::max();
  std::string word = {};

  void add(std::string_view end, Index of_line) {
    Index number = 0;
    const bool is_digits = read_digits(end, number), is_missing = !is_digits && is_missing_field(end);
    if (is_digits || (!is_missing && to_number(end))) {
      ++integers;
      return;
    }
    if (words == 0 || (is_missing && missing == 0)) {
      line = of_line;
      word = end;
    }
    ++words;
    missing += is_missing ? 1 : 0;
  }
};

/// Nodes are integers, or handles of NodeKeys that have become numbers.
class EdgeListFile {
 public:
  /// Reads everything. Collective; throws InputError, the same on every rank.
  EdgeListFile(const Communicator& comm, const std::string& path, const SourceOptions& options)
      : comm_(comm), path_(path), options_(options), format_(guess_from_file(comm, path, options)) {
    if (options.node_ids == NodeIds::names) {
      read_names();
    } else {
      try {
        read_integers();
        const bool is_sparse =
            options.node_ids == NodeIds::automatic && num_edges > 0 && largest_ / 4 >= num_edges;
        if (is_sparse || !options.node_keys.empty()) name_integers();
      } catch (const NotAnInteger&) {  // on all ranks
        if (options.node_ids != NodeIds::automatic) throw;
        std::array<EndsSeen, 2> seen;
        read_names(&seen);
      }
    }
    if (keys == nullptr) require_edge_in_first_line();
    add_notes();
    if (format_.width() > 0) add_edge_data();
  }

  /// The smallest node; -1: there is none, or nodes are names.
  [[nodiscard]] Index smallest() const noexcept { return keys == nullptr ? smallest_ : -1; }

  /// Whether the names of the nodes are integers, also where `keys` number them.
  [[nodiscard]] bool names_are_integers() const noexcept { return largest_ >= 0; }

  Index num_edges = 0;
  EdgeChunks chunks;
  FieldTable fields;               ///< of the edges
  std::unique_ptr<NodeKeys> keys;  ///< null: nodes are integers
  std::vector<std::string> notes;  ///< what was understood and what may be meant in another way, for people

 private:
  /// The file whose ids come first: SourceOptions::node_keys, or the table of the nodes; empty: none.
  [[nodiscard]] const std::string& key_file() const {
    return options_.node_keys.empty() ? options_.node_table : options_.node_keys;
  }
  void note(const std::string& text) { notes.push_back(concat(path_, ": ", text)); }

  void read_integers() {
    EdgeChunk edges;
    Index smallest = std::numeric_limits<Index>::max(), largest = -1;
    const TextCounts counts = read_lines(
        comm_, path_, format_.begin, options_.block_bytes,
        [&](std::string_view text) { return parse_edges(text, format_, edges); },
        [&](const BlockPlace& at) {
          for (const auto* ends : {&edges.src, &edges.dst})
            for (const Index node : *ends) {
              smallest = std::min(smallest, node);
              largest = std::max(largest, node);
            }
          comm_.agree([&] { chunks.add(at.first_row, edges.src, edges.dst, edges.data); });
        });
    num_edges = counts.rows;
    largest_ = comm_.all_reduce(largest, ReduceOp::max);
    smallest_ = num_edges > 0 ? comm_.all_reduce(smallest, ReduceOp::min) : -1;
    require<InputError>(largest_ < (Index{1} << 62), path_, ": a node is ", largest_,
                        ", expected less than 2^62 (unless nodes are names: --node-ids names)");
  }

  /// The numbers of the words that have been seen; the words of key_file() come first.
  void begin_names() {
    keys = std::make_unique<NodeKeys>(comm_);
    if (key_file().empty()) return;
    num_given_keys_ =
        read_node_keys(comm_, key_file(), options_, [&](std::span<const std::string_view> ids, Index first) {
          KeyWords keys_of_block(ids.size());
          for (std::size_t i = 0; i < ids.size(); ++i)
            if (const auto number = to_whole_number(ids[i]); number && smallest_ >= 0)
              keys_of_block.set(i, *number);
            else
              keys_of_block.set(i, ids[i]);
          static_cast<void>(keys->handles(keys_of_block.words(), first));
        });
  }

  /// Refuses a column of integers with a few words among them, by which all would count by their spelling.
  /// Collective.
  void require_names(EndsSeen& seen) {
    std::array<Index, 3> counts{seen.integers, seen.words, seen.missing};
    comm_.all_reduce(std::span<Index>(counts));
    const auto [integers, words, missing] = counts;
    const bool are_few = missing > 0 || words <= std::max<Index>(1, integers / 100);
    if (words == 0 || words >= integers || !are_few) return;
    if (missing > 0 && seen.missing == 0) seen.line = std::numeric_limits<Index>::max();
    const Index line = comm_.all_reduce(seen.line, ReduceOp::min);
    const int rank = comm_.all_reduce(line == seen.line ? comm_.rank() : -1, ReduceOp::max);
    throw InputError(concat(
        path_, ": line ", line + 1, ": a node is ", formats::in_quotes(comm_.broadcast(seen.word, rank)),
        ", and others of the column are integers, expected an integer, or --node-ids names"));
  }

  /// With `seen`, which gets the ends of both columns, a few words among integers are refused. Collective.
  void read_names(std::array<EndsSeen, 2>* seen = nullptr) {
    chunks = {};
    smallest_ = largest_ = -1;
    begin_names();
    KeyedEdges edges;
    const TextCounts counts = read_lines(
        comm_, path_, format_.begin, options_.block_bytes,
        [&](std::string_view text) { return parse_edges(text, format_, edges); },
        [&](const BlockPlace& at) {
          if (seen != nullptr)
            for (std::size_t i = 0; i < edges.ends.size(); ++i)
              (*seen)[i % 2].add(edges.ends[i], at.first_line + edges.lines[i / 2]);
          const std::vector<Index> handles = keys->handles(edges.ends, num_given_keys_ + 2 * at.first_row);
          comm_.agree([&] {
            Array<Index> src, dst;
            for (std::size_t i = 0; i < handles.size(); i += 2) {
              src.push_back(handles[i]);
              dst.push_back(handles[i + 1]);
            }
            chunks.add(at.first_row, src, dst, edges.data);
          });
        });
    num_edges = counts.rows;
    if (seen != nullptr)
      for (EndsSeen& column : *seen) require_names(column);
    replace_handles();
  }

  /// What has been read stays.
  void name_integers() {
    begin_names();
    chunks.for_each_round(comm_, [&](EdgeChunk& chunk) {
      KeyWords ends(2 * chunk.src.size());
      for (std::size_t i = 0; i < ends.words().size(); ++i)
        ends.set(i, i % 2 == 0 ? chunk.src[i / 2] : chunk.dst[i / 2]);
      const std::vector<Index> handles = keys->handles(ends.words(), num_given_keys_ + 2 * chunk.first_id);
      for (std::size_t i = 0; i < handles.size(); ++i)
        (i % 2 == 0 ? chunk.src : chunk.dst)[i / 2] = handles[i];
    });
    replace_handles();
  }

  void replace_handles() {
    keys->number(num_given_keys_ + 2 * num_edges);
    if (num_given_keys_ > 0) {
      const Index distinct = keys->count_before(num_given_keys_);
      require<InputError>(distinct == num_given_keys_, key_file(), ": there are ", num_given_keys_,
                          " ids, and ", distinct, " of them are different, expected each id once");
      const std::string unknown = keys->size() > num_given_keys_ ? keys->word(num_given_keys_) : "";
      require<InputError>(keys->size() == num_given_keys_, path_, ": node ", formats::in_quotes(unknown),
                          " and ", keys->size() - num_given_keys_ - 1, " others have no row in ", key_file(),
                          ", expected all nodes there");
    }
    chunks.for_each_round(comm_, [&](EdgeChunk& chunk) {
      keys->final_numbers(chunk.src);
      keys->final_numbers(chunk.dst);
    });
  }

  /// Refuses a first line that has counts, as those of METIS ("nodes edges") and of other programs, and is no
  /// edge.
  void require_edge_in_first_line() {
    if (format_.header_line >= 0 || options_.header || !options_.columns.empty() || num_edges < 3) return;
    std::array<Index, 2> first{-1, -1};  // known by one rank
    for (const EdgeChunk& chunk : chunks.chunks())
      if (chunk.first_id == 0) first = {chunk.src[0], chunk.dst[0]};
    for (Index& node : first) node = comm_.all_reduce(node, ReduceOp::max) + format_.first_id;
    if (first[1] != num_edges - 1) return;
    Index largest = -1;  // of the other lines
    for (const EdgeChunk& chunk : chunks.chunks())
      for (std::size_t e = chunk.first_id == 0 ? 1 : 0; e < chunk.src.size(); ++e)
        largest = std::max({largest, chunk.src[e], chunk.dst[e]});
    largest = comm_.all_reduce(largest, ReduceOp::max) + format_.first_id;
    require<InputError>(
        largest != first[0] && largest != first[0] - 1, path_, ": the first line is '", first[0], " ",
        first[1], "', and there are ", num_edges - 1, " others with nodes up to ", largest,
        ", so that it may have the numbers of nodes and edges, expected --header yes for these, --header "
        "no for an edge (the format of METIS is not read)");
  }

  /// Refuses integers that nobody calls weights, and that `real` cannot hold, as times. Collective.
  void require_exact_weights(std::span<const double> weights) {
    const Index column = static_cast<Index>(format_.place_of(ColumnRole::weight));
    if (!format_.columns[column].name.empty() || !options_.columns.empty() || format_.has_dictionaries ||
        !options_.edge_weights)
      return;
    double rounded = -1;
    bool are_whole = true;
    for (const double weight : weights) {
      are_whole = are_whole && weight == std::floor(weight);
      if (weight != static_cast<double>(static_cast<real>(weight)))
        rounded = std::max(rounded, std::abs(weight));
    }
    rounded = comm_.all_reduce(rounded, ReduceOp::max);
    const bool all_are_whole = comm_.all_reduce(are_whole ? 1 : 0, ReduceOp::min) == 1;
    const Index source = static_cast<Index>(format_.place_of(ColumnRole::source)),
                target = static_cast<Index>(format_.place_of(ColumnRole::target));
    require<InputError>(
        rounded < 0 || !all_are_whole, path_, ": column ", column + 1, " has integers such as ",
        exact_text(rounded),
        ", which single precision cannot hold as weights, expected --columns source=", source + 1,
        ",target=", target + 1, " (or weight=", column + 1, "), or train --ignore-edge-weights");
  }

  void add_edge_data() {
    const PartitionBook slices = PartitionBook::even(num_edges, comm_.size());
    const DataArray all = chunks.take_data(comm_, slices, format_.width());
    for (const auto& [name, slots] : field_slots(format_.columns)) {
      DataArray data = comm_.agree([&] { return take_columns(all, slots, slots.size() > 1); });
      if (name == "weight") require_exact_weights(doubles_in(data));
      double least = std::numeric_limits<double>::infinity(), most = -least;
      for (const double value : doubles_in(data)) {
        least = std::min(least, value);  // not NaN
        most = std::max(most, value);
      }
      least = comm_.all_reduce(least, ReduceOp::min);
      most = comm_.all_reduce(most, ReduceOp::max);
      if (least <= most)
        note(concat(name, " of the edges: from ", exact_text(least), " to ", exact_text(most)));
      fields.add(name, slices, std::move(data), path_);
    }
  }

  void add_notes() {
    note(format_.describe());
    if (keys == nullptr && num_edges > 0) {
      const std::string range = concat("node ids: integers from ", smallest_ + format_.first_id, " to ",
                                       largest_ + format_.first_id);
      note(range + (smallest_ == 1 && format_.first_id == 0
                        ? ", so that node 0 has no edges; --node-ids from-1 counts from 1"
                        : ""));
    } else if (num_given_keys_ > 0) {
      note(concat("node ids: in the order of ", key_file()));
    } else if (keys != nullptr && largest_ >= 0) {
      note(concat("node ids: ", keys->size(), " integers from ", smallest_, " to ", largest_,
                  ", numbered by first appearance; --node-ids dense takes them as numbers of nodes"));
    } else if (keys != nullptr) {
      note(concat("node ids: ", keys->size(), " names, numbered by first appearance"));
    }
    for (const std::string& warning : format_.warnings)
      notes.push_back(concat("WARNING: ", path_, ": ", warning));
  }

  const Communicator& comm_;
  const std::string& path_;
  const SourceOptions& options_;
  EdgeListFormat format_;
  Index smallest_ = -1, largest_ = -1;  // node, when they are integers
  Index num_given_keys_ = 0;
};

/// "author:writes:paper" -> its three names
EdgeTypeData type_named(const std::string& type) {
  const auto names = fields_of(type, ':');
  const bool right = names.size() == 3 && std::ranges::none_of(names, &std::string_view::empty);
  require<InputError>(right, "--edges: '", type, "', expected SOURCE:RELATION:DESTINATION");
  return {
      .src_type = std::string(names[0]), .name = std::string(names[1]), .dst_type = std::string(names[2])};
}

class EdgeListSource final : public FileSource {
 public:
  EdgeListSource(const Communicator& comm_of_source, const std::string& path, const SourceOptions& options)
      : FileSource(comm_of_source, options.relations.empty() ? "edge list" : "",
                   options.relations.empty() ? path : "edge lists") {
    const bool typed = !options.relations.empty();
    require<InputError>(!typed || options.node_keys.empty(), options.node_keys,
                        ": --node-keys are for one edge list, expected none with --edges");
    require<InputError>(!typed || options.node_ids != NodeIds::names,
                        "--node-ids: names are for one edge list, expected dense or from-1 with --edges");
    require<InputError>(options.node_keys.empty() || options.node_ids != NodeIds::from_one, options.node_keys,
                        ": --node-keys say which node has which id, expected no --node-ids from-1");
    if (!typed) read_edges_of({}, path, options);
    for (const auto& [name, file] : options.relations) {
      EdgeTypeData type;
      comm().agree([&] { type = type_named(name); });
      SourceOptions of_file = options;
      if (of_file.node_ids != NodeIds::from_one) of_file.node_ids = NodeIds::dense;
      read_edges_of(std::move(type), file, of_file);
    }
    comm().agree([&] {
      if (!typed) require_plausible_size(path);
      add_node_data(options);
      list_fields();
      require_plausible_sizes(path_);
    });
  }

  [[nodiscard]] NodeNames node_names() const override {
    return {keys_.get(), names_are_integers_, first_id_};
  }
  void write_node_keys(const std::string& directory) const override {
    if (keys_ != nullptr) keys_->write(directory + "/node_keys.txt");
  }
  [[nodiscard]] bool has_node_keys() const override { return keys_ != nullptr; }

 private:
  /// Adds a type of edges, and the types of their ends where they are new.
  void read_edges_of(EdgeTypeData type, const std::string& path, const SourceOptions& options) {
    EdgeListFile file(comm(), path, options);
    type.num_edges = file.num_edges;
    for (const auto& [name, ends] :
         {std::pair{type.src_type, &EdgeChunk::src}, {type.dst_type, &EdgeChunk::dst}}) {
      const Index num_names = file.keys != nullptr ? file.keys->size() : 0;
      const Index count =
          comm().all_reduce(std::max(num_names, file.chunks.count_nodes(ends)), ReduceOp::max);
      if (std::ranges::find(types_.node_types, name, &NodeTypeData::name) == types_.node_types.end())
        add_nodes(name);
      NodeTypeData& nodes = types_.node_types[types_.place_of(name)];
      nodes.book = slices_of(std::max(nodes.num_nodes(), count));
    }
    add_edges(std::move(type));
    chunks_.back() = std::move(file.chunks);
    edges_.back() = std::move(file.fields);
    keys_ = std::move(file.keys);
    smallest_node_ = file.smallest();
    names_are_integers_ = file.names_are_integers();
    first_id_ = options.node_ids == NodeIds::from_one ? 1 : 0;
    notes_.insert(notes_.end(), file.notes.begin(), file.notes.end());
  }

  /// Rows of node data tell of nodes without edges behind the last one that has some. Local.
  void add_node_data(const SourceOptions& options) {
    const bool typed = !options.relations.empty();
    require<InputError>(
        keys_ == nullptr || !options.node_keys.empty() || !options.node_table.empty() ||
            options.node_data.empty(),
        path_,
        ": the nodes are names or integers with gaps, numbered by first appearance, which does not say "
        "the row of a node in --node-data, expected --node-keys FILE with the ids in the order of the "
        "rows, or --node-ids dense, if ids are numbers of rows");
    std::string hint;
    if (!typed && smallest_node_ == 1)
      hint = "; the ids start at 1, and --node-ids from-1 counts from 1";
    else if (!typed && keys_ == nullptr)
      hint = "; if ids have gaps, --node-keys FILE says which row belongs to which id";
    for (const auto& [key, file] : lists_last(options.node_data)) {
      const std::size_t slash = typed ? key.find('/') : 0;
      require<InputError>(slash != std::string::npos, "--node-data: '", key,
                          "', expected TYPE/NAME=FILE.npy");
      if (typed)
        add_node_file(types_.place_of(key.substr(0, slash)), key.substr(slash + 1), file, true);
      else
        add_node_file(0, key, file, keys_ == nullptr, hint);
    }
  }

  std::unique_ptr<NodeKeys> keys_;
  Index smallest_node_ = -1, first_id_ = 0;
  bool names_are_integers_ = false;
};

}  // namespace

std::unique_ptr<GraphSource> open_edge_lists(const Communicator& comm, const std::string& path,
                                             const SourceOptions& options) {
  return std::make_unique<EdgeListSource>(comm, path, options);
}

}  // namespace sar::formats

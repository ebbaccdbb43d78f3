#include "train_pairs.hpp"

#include "formats/first_lines.hpp"
#include "formats/line_blocks.hpp"
#include "formats/node_keys.hpp"
#include "formats/text.hpp"
#include "train_predict.hpp"

#include <sar/core/error.hpp>
#include <sar/data.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sar::tools {
namespace {

constexpr Index rows_at_once = 1 << 16;

bool is_npy(const std::string& path) {
  return path.ends_with(".npy");
}

/// The rows of the file that this rank has read, row by row.
struct PairRows {
  Array<Index> numbers;  // of nodes from 0, and of the edge type
  Array<Index> rows;
};

/// Numbers the names of the nodes by their lines. Collective.
std::unique_ptr<formats::NodeKeys> read_names(const Communicator& comm, const std::string& path,
                                              Index block_bytes) {
  auto names = std::make_unique<formats::NodeKeys>(comm);
  std::vector<std::string_view> words;
  const auto parse = [&](std::string_view text) {
    words.clear();
    formats::Lines lines(text);
    while (lines.next()) words.push_back(lines.line());
    return formats::TextCounts{lines.count(), std::ssize(words)};
  };
  const formats::TextCounts counts =
      formats::read_lines(comm, path, {}, block_bytes, parse, [&](const formats::BlockPlace& place) {
        (void)names->handles(words, place.first_row);
      });
  names->number(counts.rows);
  return names;
}

/// A number from 0 in a field of a line.
Index number_in(std::string_view field, Index line) {
  const auto number = formats::to_whole_number(formats::unquoted(field));
  if (!number || *number < 0)
    throw formats::LineError(line, concat("there is ", formats::quoted(field), ", expected a number from 0"));
  return *number;
}

/// Reads text. Collective.
PairRows read_text_pairs(const Communicator& comm, const TrainOptions& o, Index columns) {
  const std::string& path = o.predict_pairs;
  const std::string beginning =
      formats::read_first_lines(comm, path, "a text with a pair of nodes in each line");
  char separator = formats::blanks;
  comm.agree([&] {
    try {
      separator = formats::guess_separator(formats::first_lines(beginning).lines);
    } catch (const formats::LineError& error) {
      throw InputError(concat(path, ": line ", error.line() + 1, ": ", error.what()));
    }
  });
  const auto names = o.node_names.empty() ? nullptr : read_names(comm, o.node_names, o.source.block_bytes);
  PairRows read;
  std::vector<Index> numbers;
  std::vector<std::string_view> words;
  const auto parse = [&](std::string_view text) {
    numbers.clear();
    words.clear();
    formats::Lines lines(text);
    Index rows = 0;
    while (lines.next()) {
      if (formats::is_comment(lines.line())) continue;
      formats::Fields fields(lines.line(), separator);
      Index column = 0;
      for (; fields.next(); ++column) {
        if (column < 2 && names != nullptr)
          words.push_back(formats::unquoted(fields.field()));
        else
          numbers.push_back(number_in(fields.field(), lines.number()));
      }
      if (column != columns)
        throw formats::LineError(lines.number(),
                                 concat("there are ", column, " fields, expected ", columns,
                                        columns == 2 ? ": two nodes" : ": two nodes and an edge type"));
      ++rows;
    }
    return formats::TextCounts{lines.count(), rows};
  };
  formats::read_lines(comm, path, {}, o.source.block_bytes, parse, [&](const formats::BlockPlace& place) {
    const Index first = place.first_row;
    std::vector<Index> found;
    if (names != nullptr) found = names->find(words);
    comm.agree([&] {
      const auto unknown = std::ranges::find(found, Index{-1});
      require<InputError>(
          unknown == found.end(), path, ": row ", first + (unknown - found.begin()) / 2,
          unknown == found.end()
              ? ""
              : concat(": there is no node ",
                       formats::quoted(words[static_cast<std::size_t>(unknown - found.begin())])),
          ", expected names as in ", o.node_names);
      const Index rows = names != nullptr ? std::ssize(words) / 2 : std::ssize(numbers) / columns;
      auto next = numbers.begin();
      for (Index i = 0; i < rows; ++i) {
        read.rows.push_back(first + i);
        for (Index c = 0; c < columns; ++c)
          read.numbers.push_back(c < 2 && names != nullptr ? found[static_cast<std::size_t>(2 * i + c)]
                                                           : *next++);
      }
    });
  });
  return read;
}

/// Reads an array, each rank an equal share of its rows. Collective.
PairRows read_array_pairs(const Communicator& comm, const TrainOptions& o, Index columns) {
  return comm.agree([&] {
    const NpyFile file(o.predict_pairs);
    require<InputError>(file.shape().size() == 2 && file.shape()[1] == columns, file.path(), ": shape is ",
                        shape_to_string(file.shape()), ", expected [pairs, ", columns, "]",
                        columns == 2 ? " of two nodes" : " of two nodes and an edge type");
    const PartitionBook slices = PartitionBook::even(file.num_rows(), comm.size());
    PairRows read;
    read.rows.resize(static_cast<std::size_t>(slices.num_nodes(comm.rank())));
    std::iota(read.rows.begin(), read.rows.end(), slices.begin(comm.rank()));
    read.numbers.resize(read.rows.size() * static_cast<std::size_t>(columns));
    file.read_rows<std::int64_t>(read.rows, {read.numbers.data(), read.numbers.size()});
    return read;
  });
}

/// Replaces ids of the dataset by global ids. Collective.
void replace_by_global_ids(const Communicator& comm, const NodeData& data, Array<Index>& nodes) {
  const PartitionBook slices = PartitionBook::even(data.num_nodes(), comm.size());
  DistributedTensor<std::int64_t> global_ids(comm, slices, Shape{data.num_nodes()});
  Array<std::int64_t> mine(data.original_ids.size());
  std::iota(mine.begin(), mine.end(), data.book.begin(comm.rank()));
  global_ids.push(data.original_ids, mine);
  global_ids.barrier();
  nodes = global_ids.pull_all(nodes);
}

/// Writes the rows of an array as lines. Local.
void write_as_text(const std::string& array, const std::string& text) {
  const NpyFile file(array);
  TemporaryFile out(text);
  std::vector<real> values;
  for (Index begin = 0; begin < file.num_rows(); begin += rows_at_once) {
    const Index end = std::min(file.num_rows(), begin + rows_at_once);
    values.resize(static_cast<std::size_t>((end - begin) * file.row_size()));
    file.read<real>(begin * file.row_size(), end * file.row_size(), values);
    std::string lines;
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::array<char, 32> digits{};
      const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), values[i]);
      lines.append(digits.data(), written.ptr);
      lines += static_cast<Index>(i + 1) % file.row_size() == 0 ? '\n' : ' ';
    }
    out.write(lines.data(), lines.size());
  }
  out.commit();
}

}  // namespace

GivenPairs read_given_pairs(const Communicator& comm, const TrainOptions& o, const NodeData& data,
                            Index num_types) {
  GivenPairs pairs;
  if (o.predict_pairs.empty()) return pairs;
  const bool typed = o.task.type == TaskType::link && has_relations(o.task.predictor);
  const Index columns = typed ? 3 : 2;
  const bool from_one = o.source.node_ids == formats::NodeIds::from_one;
  PairRows read =
      is_npy(o.predict_pairs) ? read_array_pairs(comm, o, columns) : read_text_pairs(comm, o, columns);
  comm.agree([&] {
    const Index nodes = data.num_nodes();
    for (std::size_t i = 0; i < read.rows.size(); ++i) {
      const Index* row = read.numbers.data() + static_cast<Index>(i) * columns;
      for (const Index given : {row[0], row[1]}) {
        const Index node = given - (from_one ? 1 : 0);
        require<InputError>(0 <= node && node < nodes, o.predict_pairs, ": row ", read.rows[i],
                            ": there is no node ", given, ", expected ",
                            from_one ? concat("1 to ", nodes) : index_range(nodes));
      }
      require<InputError>(!typed || (0 <= row[2] && row[2] < num_types), o.predict_pairs, ": row ",
                          read.rows[i], ": there is no edge type ", typed ? row[2] : 0, ", expected ",
                          index_range(num_types));
      pairs.src.push_back(row[0] - (from_one ? 1 : 0));
      pairs.dst.push_back(row[1] - (from_one ? 1 : 0));
      if (typed) pairs.types.push_back(row[2]);
    }
    const Index all = comm.all_reduce(std::ssize(read.rows));
    require<InputError>(all > 0, o.predict_pairs, ": there are no pairs, expected at least one");
  });
  replace_by_global_ids(comm, data, pairs.src);
  replace_by_global_ids(comm, data, pairs.dst);
  pairs.rows = std::move(read.rows);
  return pairs;
}

void write_pair_scores(const Communicator& comm, const TrainOptions& o, const GivenPairs& pairs,
                       const Tensor& numbers) {
  if (o.predict_pairs.empty()) return;
  const std::string path = o.predict + "/pair_scores.npy", text = o.predict + "/pair_scores.txt";
  const Index n = numbers.num_rows();
  write_predictions(comm, path, numbers.row_size() == 1 ? numbers.reshape({n}) : numbers, pairs.rows);
  comm.agree([&] {
    if (comm.rank() != 0) return;
    std::error_code ignored;
    std::filesystem::remove(text, ignored);  // of another start
    if (!is_npy(o.predict_pairs)) write_as_text(path, text);
  });
}

}  // namespace sar::tools

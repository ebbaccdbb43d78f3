// SPDX-License-Identifier: MIT

// Rank 0 parses the text into one list of numbers, sorts the rows by nodes, and sends each rank its slice: 8
// bytes a number on rank 0, 16 on the others' share.

#include "node_table.hpp"

#include "formats/arrays/csr_matrix.hpp"
#include "formats/packed/text_file.hpp"
#include "formats/text.hpp"
#include "node_join.hpp"

#include <sar/comm/rows/node_directory.hpp>
#include <sar/core/error.hpp>
#include <sar/core/text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sar::formats {
namespace {

constexpr Index most_features = Index{1} << 24;

/// The lists of rank 0, one behind the other.
struct FeatureRows {
  std::vector<std::string> keys;
  std::vector<std::size_t> begins{0};
  std::vector<double> numbers;
  bool has_fractions = false;

  [[nodiscard]] std::span<const double> row(std::size_t i) const {
    return std::span(numbers).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

/// Takes an object of lists of numbers, and nothing else.
class ListReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  ListReader(const std::string& path, FeatureRows& rows) : path_(path), rows_(rows) {}

  bool null() override { refuse("null"); }
  bool boolean(bool value) override { return add(value ? 1 : 0); }
  bool number_integer(number_integer_t value) override { return add(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    rows_.has_fractions = true;
    return add(value);
  }
  bool string(string_t& value) override { refuse(formats::in_quotes(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // never: JSON text has no binary values
  bool start_object(std::size_t /*size*/) override {
    if (depth_ > 0) refuse("an object");
    depth_ = 1;
    return true;
  }
  bool key(string_t& name) override {
    rows_.keys.push_back(name);
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*size*/) override {
    if (depth_ != 1) refuse("a list");
    depth_ = 2;
    return true;
  }
  bool end_array() override {
    depth_ = 1;
    rows_.begins.push_back(rows_.numbers.size());
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    throw InputError(concat(path_, ": the file is no JSON at its byte ", position, ", expected ", form));
  }

 private:
  static constexpr const char* form = "{\"node\": [number, ...], ...}";
  [[noreturn]] void refuse(const std::string& found) const {
    throw InputError(
        concat(path_, rows_.keys.empty() ? "" : concat(": node ", formats::in_quotes(rows_.keys.back())),
               ": there is ", found, ", expected ", form));
  }
  bool add(double value) {
    if (depth_ != 2) refuse(exact_text(value));
    rows_.numbers.push_back(value);
    return true;
  }

  const std::string& path_;
  FeatureRows& rows_;
  int depth_ = 0;
};

FeatureRows parse_feature_rows(const std::string& path) {
  FeatureRows rows;
  ListReader reader(path, rows);
  nlohmann::json::sax_parse(read_beginning(path, std::numeric_limits<Index>::max()), &reader);
  require<InputError>(!rows.keys.empty(), path,
                      ": there are no nodes, expected {\"node\": [number, ...], ...}");
  return rows;
}

/// Whether the lists are of indices. Throws InputError where nobody can know.
bool are_indices(const std::string& path, const FeatureRows& rows, FeatureLists lists) {
  const std::size_t length = rows.row(0).size();
  std::size_t unequal = 1;  // the first row of another length
  while (unequal < rows.keys.size() && rows.row(unequal).size() == length) ++unequal;
  const bool are_equal = unequal == rows.keys.size();
  if (lists == FeatureLists::automatic) {
    require<InputError>(!are_equal || rows.has_fractions, path, ": the lists have ", length,
                        " whole numbers each, which may be values, or indices of features that are set, "
                        "expected --feature-lists values or indices");
    lists = rows.has_fractions ? FeatureLists::values : FeatureLists::indices;
  }
  if (lists == FeatureLists::indices) return true;
  if (are_equal) return false;
  throw InputError(concat(path, ": node ", formats::in_quotes(rows.keys[unequal]), " has ",
                          rows.row(unequal).size(), " values, expected ", length, " as node ",
                          formats::in_quotes(rows.keys[0]),
                          " (--feature-lists indices: lists name the features that are set)"));
}

/// The number of features. Throws InputError for numbers that are no indices.
Index count_features(const std::string& path, const FeatureRows& rows, bool indices) {
  double largest = indices ? -1 : static_cast<double>(rows.row(0).size()) - 1;
  if (indices)
    for (std::size_t row = 0; row < rows.keys.size(); ++row)
      for (const double index : rows.row(row)) {
        if (index != std::floor(index) || !(0 <= index && index < static_cast<double>(most_features)))
          throw InputError(concat(path, ": node ", formats::in_quotes(rows.keys[row]),
                                  ": an index of a feature is ", exact_text(index),
                                  ", expected a whole number from 0 to ", most_features - 1));
        largest = std::max(largest, index);
      }
  require<InputError>(largest >= 0, path, ": there are no features, expected at least one");
  return static_cast<Index>(largest) + 1;
}

/// Sends each rank the rows of its nodes. Rank 0 has them all. Collective.
CsrMatrix send_matrix(const Communicator& comm, const NodeJoin& join, const FeatureRows& rows, bool indices,
                      Index num_columns) {
  std::vector<Index> lengths, columns;
  std::vector<Index> row_counts(static_cast<std::size_t>(comm.size()), 0), entry_counts = row_counts;
  std::vector<double> values;
  comm.agree([&] {
    for (const Index row : sorted_order(join.nodes())) {
      const std::span<const double> list = rows.row(static_cast<std::size_t>(row));
      std::vector<double> numbers(list.begin(), list.end());
      if (indices) {  // a set
        std::ranges::sort(numbers);
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
      }
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        columns.push_back(indices ? static_cast<Index>(numbers[i]) : static_cast<Index>(i));
        values.push_back(indices ? 1 : numbers[i]);
      }
      lengths.push_back(std::ssize(numbers));
      const int owner = join.slices().owner(join.nodes()[row]);
      ++row_counts[owner];
      entry_counts[owner] += std::ssize(numbers);
    }
  });
  CsrMatrix matrix{.num_rows = join.slices().num_nodes(), .num_columns = num_columns, .rows = join.slices()};
  const auto my_lengths = comm.all_to_all_v(std::span<const Index>(lengths), row_counts).values;
  const auto my_columns = comm.all_to_all_v(std::span<const Index>(columns), entry_counts).values;
  const auto my_values = comm.all_to_all_v(std::span<const double>(values), entry_counts).values;
  comm.agree([&] {
    matrix.offsets.push_back(0);
    for (const Index length : my_lengths) matrix.offsets.push_back(matrix.offsets.back() + length);
    matrix.columns.assign(my_columns.begin(), my_columns.end());
    matrix.values = DataArray(NpyType::float64, {}, std::ssize(my_values));
    const auto bytes = std::as_bytes(std::span(my_values));
    std::ranges::copy(bytes, matrix.values.bytes.begin());
  });
  matrix.entries = gather_book(comm, std::ssize(matrix.columns));
  return matrix;
}

}  // namespace

void add_json_features(FileSource& source, const SourceOptions& options) {
  const Communicator& comm = source.comm();
  const std::string& path = options.node_features;
  FeatureRows rows;
  struct {
    bool indices = false;
    Index num_columns = 0;
  } known;
  comm.agree([&] {
    if (comm.rank() != 0) return;
    rows = parse_feature_rows(path);
    known.indices = are_indices(path, rows, options.feature_lists);
    known.num_columns = count_features(path, rows, known.indices);
  });
  comm.broadcast(std::span(&known, 1), 0);
  NodeJoin join(source, path);
  const std::vector<std::string_view> keys(rows.keys.begin(), rows.keys.end());
  join.add(keys, {});
  join.finish();
  CsrMatrix matrix = send_matrix(comm, join, rows, known.indices, known.num_columns);
  const Index num_nodes = matrix.num_rows;
  FieldTable fields;
  comm.agree([&] {
    fields.add({"features", NpyType::float64, {known.num_columns}}, rows_of(std::move(matrix)), path);
  });
  source.add_node_fields(
      num_nodes, std::move(fields),
      known.indices ? concat(path, ": features: indices of those that are set, of ", known.num_columns)
                    : concat(path, ": features: lists of ", known.num_columns, " values"));
}

}  // namespace sar::formats

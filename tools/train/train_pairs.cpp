// SPDX-License-Identifier: MIT
#include "train_pairs.hpp"

#include "formats/rows/pair_rows.hpp"
#include "train_predict.hpp"

#include <sar/core/error.hpp>
#include <sar/core/memory/index_arrays.hpp>
#include <sar/core/text.hpp>
#include <sar/data.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace sar::tools {
namespace {

constexpr Index rows_at_once = 1 << 16;

/// Replaces ids of the dataset by global ids. Collective.
void replace_by_global_ids(const Communicator& comm, const NodeData& data, Array<Index>& nodes) {
  const PartitionBook slices = PartitionBook::even(data.num_nodes(), comm.size());
  DistributedTensor<std::int64_t> global_ids(comm, slices, Shape{data.num_nodes()});
  global_ids.push(data.original_ids,
                  consecutive(data.book.begin(comm.rank()), std::ssize(data.original_ids)));
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
      lines += exact_text(values[i]);
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
  formats::PairRows read = formats::read_pair_rows(
      comm, o.predict_pairs,
      {.columns = columns, .names = o.node_names, .block_bytes = o.source.block_bytes});
  comm.agree([&] {
    const Index nodes = data.num_nodes();
    const std::string expected = from_one ? concat("1 to ", nodes) : concat(index_range(nodes));
    for (std::size_t i = 0; i < read.rows.size(); ++i) {
      const Index* row = read.numbers.data() + static_cast<Index>(i) * columns;
      for (const Index given : {row[0], row[1]}) {
        const Index node = given - (from_one ? 1 : 0);
        require<InputError>(0 <= node && node < nodes, o.predict_pairs, ": row ", read.rows[i],
                            ": there is no node ", given, ", expected ", expected);
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
    if (comm.rank() == 0 && !formats::is_array_file(o.predict_pairs)) write_as_text(path, text);
  });
}

}  // namespace sar::tools

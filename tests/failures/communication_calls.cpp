// SPDX-License-Identifier: MIT
#include "failures/scene.hpp"
#include "graph/data/dataset_files.hpp"

#include <sar/comm/broadcast_texts.hpp>
#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/comm/trace.hpp>

namespace sar::test {
namespace {

template <class T>
std::vector<double> as_numbers(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

using Numbers = DistributedTensor<std::int32_t>;

/// Of 5 rows on each rank.
PartitionBook five_rows_each(const Communicator& comm) {
  return PartitionBook::even(5 * Index{comm.size()}, comm.size());
}

/// Calls of a distributed tensor whose row i is [i, i + 1].
void add_distributed_tensor(std::vector<Call>& calls, const Communicator& comm) {
  const PartitionBook book = five_rows_each(comm);
  const auto rows_of = [=] {
    Array<std::int32_t> rows;
    for (Index i = book.begin(comm.rank()); i < book.end(comm.rank()); ++i)
      for (const Index value : {i, i + 1}) rows.push_back(static_cast<std::int32_t>(value));
    return rows;
  };
  add_maker<Numbers>(
      calls,
      "comm/rows/distributed_tensor.hpp DistributedTensor, comm/rows/distributed_tensor.hpp "
      "DistributedTensor::borrow",
      true,
      [=](bool wrong) {
        return [=] {
          static std::vector<std::int32_t> memory(10);
          return Numbers::borrow(comm, book, std::span(memory), {wrong ? 4 : 5, 2});
        };
      },
      [](const Numbers& made) { return std::vector<double>{static_cast<double>(made.row_size())}; });
  const auto add_call = [&](const std::string& name, auto call) {
    calls.push_back({name, true, [=](bool wrong) -> Attempt {
                       auto tensor = std::make_shared<Numbers>(comm, book, rows_of(), Shape{5, 2});
                       auto result = std::make_shared<Array<std::int32_t>>();
                       std::vector<Index> ids{0, book.num_nodes() - 1, comm.rank(), 1};
                       if (wrong) ids.push_back(-1);
                       return {[=] { *result = call(*tensor, ids); },
                               [=] { return std::vector<double>(result->begin(), result->end()); }};
                     }});
  };
  add_call("comm/rows/distributed_tensor.hpp DistributedTensor::pull_all",
           [](const Numbers& tensor, const std::vector<Index>& ids) { return tensor.pull_all(ids); });
  add_call("comm/rows/distributed_tensor.hpp DistributedTensor::start_pull",
           [=](const Numbers& tensor, const std::vector<Index>& ids) {
             return comm.agree([&] {
               PendingRows<std::int32_t> pending = tensor.start_pull(ids);
               const std::vector<std::int32_t> some(3, comm.all_reduce(1));
               return pending.finish();
             });
           });
  add_call("comm/rows/distributed_tensor.hpp DistributedTensor::barrier",
           [=](const Numbers& tensor, const std::vector<Index>& ids) {
             return comm.agree([&] {
               const std::vector<std::int32_t> rows(2 * ids.size(), 7);
               tensor.push_add(ids, rows);
               tensor.barrier();
               return tensor.pull(ids);
             });
           });
}

/// Tensors of what a rank has loaded; where it is wrong, that has a row too many or another name.
void add_distributed_data(std::vector<Call>& calls, const Communicator& comm) {
  const std::string header = "graph/data/distributed_data.hpp ";
  const auto row_size = [](const auto& made) {
    return std::vector<double>{static_cast<double>(made.row_size())};
  };
  const auto add = [&]<class T>(const std::string& names, T, auto make) {
    add_maker<DistributedTensor<T>>(
        calls, names, true,
        [=](bool wrong) {
          auto data = std::make_shared<NodeData>(make_karate(comm));
          auto edges = std::make_shared<EdgeTypeData>(to_graph_data(*data).edge_types.front());
          edges->data[wrong ? "other" : "size"] = DataArray(NpyType::int32, {}, std::ssize(edges->edges.dst));
          if (wrong) data->features = Tensor::zeros({data->features.num_rows() + 1, 1});
          if (wrong) data->labels.push_back(0);
          return [=] { return make(*data, *edges); };
        },
        row_size);
  };
  add(header + "distributed_features", real(0),
      [=](const NodeData& data, const EdgeTypeData&) { return distributed_features(comm, data); });
  add(header + "distributed_labels", std::int64_t{0},
      [=](const NodeData& data, const EdgeTypeData&) { return distributed_labels(comm, data); });
  add(header + "distributed_field", std::int32_t{0}, [=](const NodeData&, const EdgeTypeData& edges) {
    return distributed_field<std::int32_t>(comm, edges, "size");
  });
}

}  // namespace

std::vector<Call> communication_calls(const Communicator& comm, const std::string& directory) {
  std::vector<Call> calls;
  const auto own = static_cast<Index>(comm.rank());
  const auto ranks = static_cast<std::size_t>(comm.size());
  add_maker<Communicator>(
      calls, "comm/communicator.hpp Communicator, comm/communicator.hpp Communicator::world", false,
      [=](bool) { return [] { return Communicator::world(); }; },
      [](const Communicator& made) { return std::vector<double>{static_cast<double>(made.size())}; });
  add_maker<std::vector<Index>>(
      calls, "comm/communicator.hpp Communicator::all_gather", false,
      [=](bool) {
        const std::vector<Index> mine(static_cast<std::size_t>(own + 1), own);
        return [=] { return comm.all_gather(std::span<const Index>(mine)); };
      },
      as_numbers<Index>);
  add_maker<std::vector<Index>>(
      calls, "comm/communicator.hpp Communicator::all_gather", false,
      [=](bool) { return [=] { return comm.all_gather(own); }; }, as_numbers<Index>);
  add_maker<std::string>(
      calls, "comm/communicator.hpp Communicator::broadcast", false,
      [=](bool) {
        const std::string text(100, 'x');
        return [=] { return comm.broadcast(text, 0); };
      },
      [](const std::string& text) { return std::vector<double>{static_cast<double>(text.size())}; });
  add_maker<Communicator::Received<Index>>(
      calls, "comm/communicator.hpp Communicator::all_to_all_v", true,
      [=](bool wrong) {
        const std::vector<Index> values(ranks, own), counts(ranks + (wrong ? 1 : 0), 1);
        return [=] { return comm.all_to_all_v(std::span<const Index>(values), counts); };
      },
      [](const Communicator::Received<Index>& received) { return as_numbers(received.values); });
  add_maker<std::vector<Index>>(
      calls, "comm/communicator.hpp Communicator::all_to_all_v", true,
      [=](bool wrong) {
        const std::vector<Index> values(ranks, own), counts(ranks + (wrong ? 1 : 0), 1), arriving(ranks, 1);
        return [=] { return comm.all_to_all_v(std::span<const Index>(values), counts, arriving); };
      },
      as_numbers<Index>);
  add_maker<std::vector<Index>>(
      calls, "comm/communicator.hpp Communicator::all_to_all", true,
      [=](bool wrong) {
        const std::vector<Index> counts(ranks + (wrong ? 1 : 0), own);
        return [=] { return comm.all_to_all(counts); };
      },
      as_numbers<Index>);
  add_maker<int>(
      calls,
      "comm/communicator.hpp Communicator::agree, comm/communicator.hpp Communicator::barrier, "
      "comm/communicator.hpp Communicator::all_reduce, comm/communicator.hpp Communicator::all_equal",
      true,
      [=](bool wrong) {
        return [=] {
          return comm.agree([&] {
            const std::vector<int> some(3, 1);
            comm.barrier();
            const std::string text = comm.broadcast(std::string(50, 'y'), 0);
            require<ShapeError>(!wrong, "a wrong number of characters");
            return comm.all_equal(4) ? comm.all_reduce(some[2]) : 0;
          });
        };
      },
      [](int sum) { return std::vector<double>{static_cast<double>(sum)}; });
  add_maker<int>(
      calls, "comm/environment.hpp default_num_threads", false,
      [=](bool) { return [=] { return default_num_threads(comm); }; },
      [](int threads) { return std::vector<double>{static_cast<double>(threads)}; });
  add_maker<std::vector<std::string>>(
      calls, "comm/broadcast_texts.hpp broadcast_texts", false,
      [=](bool) {
        auto texts = std::make_shared<std::vector<std::string>>(2, std::string(40, 'z'));
        return [=] { return broadcast_texts(comm, std::move(*texts)); };
      },
      [](const std::vector<std::string>& texts) {
        return std::vector<double>{static_cast<double>(texts.size())};
      });
  add_distributed_tensor(calls, comm);
  add_distributed_data(calls, comm);
  add_maker<bool>(
      calls, "comm/trace.hpp Trace, comm/trace.hpp Trace::write", false,
      [=](bool) {
        auto file = std::make_shared<std::string>(directory + "/trace");
        return [=] {
          Trace trace(comm, std::move(*file));
          trace.write();
          return true;
        };
      },
      [](bool) { return std::vector<double>{}; });
  return calls;
}

}  // namespace sar::test

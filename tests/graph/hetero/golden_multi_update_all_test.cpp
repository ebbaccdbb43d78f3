// SPDX-License-Identifier: MIT

/// multi_update_all against DGL, with each cross reduction, in all modes, on all partitions.
#include "graph/hetero/golden_typed_graph.hpp"

#include <doctest/doctest.h>

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>

#include <set>

using namespace sar;
using namespace sar::test;

namespace {

void check_case(const Communicator& comm, const Case& golden, CrossReduce op, const GraphOptions& options) {
  const TypedGraph typed = golden_typed_graph(golden);
  const int rank = comm.rank();
  for (const auto& books : typed_books(typed, comm.size())) {
    const Graph graph = shard(comm, typed, books, options);
    std::map<std::string, Variable> x, w;
    for (const auto& [type, size] : typed.nodes) {
      x[type] = Variable(rank_rows(golden.tensor("in." + type), books.at(type), rank), true);
      graph.ndata(type)["h"] = x.at(type);
    }
    for (const std::string relation : {"writes", "cites"}) {
      w[relation] =
          Variable(GoldenGraph::rows(golden.tensor("in." + relation), graph[relation].edge_ids()), true);
      graph.edata(relation)["w"] = w.at(relation);
    }
    Tape tape;
    graph.multi_update_all({{{"author", "knows", "author"}, {fn::copy_u("h", "m"), fn::sum("m", "y")}},
                            {{"author", "writes", "paper"}, {fn::u_mul_e("h", "w", "m"), fn::sum("m", "y")}},
                            {{"field", "of", "paper"}, {fn::copy_u("h", "m"), fn::mean("m", "y")}},
                            {{"paper", "about", "field"}, {fn::u_add_v("h", "h", "m"), fn::sum("m", "y")}},
                            {{"paper", "cites", "paper"}, {fn::u_mul_e("h", "w", "m"), fn::mean("m", "y")}},
                            {{"paper", "written_by", "author"}, {fn::copy_u("h", "m"), fn::max("m", "y")}}},
                           op);
    Variable total;
    for (const auto& [type, size] : typed.nodes) {
      const Variable& y = graph.ndata(type).at("y");
      CHECK(error_of_rows(y.value(), golden.tensor("out." + type), books.at(type), rank) < tolerance());
      const Variable part =
          sum(y * Variable(rank_rows(golden.tensor("grad_out." + type), books.at(type), rank)));
      total = total.defined() ? total + part : part;
    }
    tape.backward(total);
    for (const auto& [type, rows] : x)
      CHECK(error_of_rows(rows.grad(), golden.tensor("grad_in." + type), books.at(type), rank) < tolerance());
    for (const auto& [relation, column] : w) {
      const Tensor whole = golden.tensor("grad_in." + relation);
      CHECK(error_of_part(column.grad(), GoldenGraph::rows(whole, graph[relation].edge_ids()), whole) <
            tolerance());
    }
  }
}

}  // namespace

TEST_CASE("multi_update_all: golden vectors") {
  const Communicator comm = Communicator::world();
  const std::map<std::string, CrossReduce> reducers{{"sum", CrossReduce::sum},
                                                    {"mean", CrossReduce::mean},
                                                    {"min", CrossReduce::min},
                                                    {"max", CrossReduce::max},
                                                    {"stack", CrossReduce::stack}};
  for (const auto& [name, op] : reducers)
    for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot})
      for (const Index bytes : {Index{0}, Index{1}}) {
        CAPTURE(name);
        CAPTURE(static_cast<int>(mode));
        CAPTURE(bytes);
        check_case(comm, Case("hetero/multi_update_all__" + name), op,
                   {.mode = mode, .max_halo_bytes = bytes});
      }
}

// SPDX-License-Identifier: MIT

/// The classes of sar_cxx11.hpp, compiled as C++11: a training, its file, its checkpoint and its prediction;
/// edges, parameters, statistics; what is wrong on one rank is thrown on all. The argument is a folder for
/// files.
#include <sar_cxx11.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what);
}

const char* const sage =
    R"({"sar_model": 1, "type": "sage", "in_feats": 1, "hidden": 8, "out_feats": 2, "layers": 2})";

void trains(const std::string& folder) {
  const sar_cxx11::Comm comm(MPI_COMM_WORLD);
  const int rank = comm.rank(), size = comm.size(), nodes = 5;
  std::vector<std::int64_t> ids, src, dst, labels;
  std::vector<double> x;
  sar_cxx11::LocalToGlobal numbering{nodes, {}};
  std::vector<std::int32_t> local_src, local_dst;
  for (int i = 0; i < nodes; ++i) {  // a ring
    const std::int64_t node = rank * nodes + i;
    ids.push_back(node);
    src.push_back((node + size * nodes - 1) % (size * nodes));
    dst.push_back(node);
    local_src.push_back(i == 0 ? nodes : i - 1);
    local_dst.push_back(i);
    labels.push_back(node % 2);
    x.push_back(std::sin(static_cast<double>(node)));
  }
  numbering.global_ids = ids;
  numbering.global_ids.push_back(src[0]);
  if (size == 1) {  // the predecessor of the first node is no ghost
    numbering.global_ids.pop_back();
    local_src[0] = nodes - 1;
  }
  sar_cxx11::Graph graph(comm, ids, src, dst);
  const sar_cxx11::Graph same(comm, numbering, local_src, local_dst);
  expect(graph.sizes().edges == nodes && same.sizes().edges == nodes, "each node has an in-edge");
  const std::vector<double> lengths = graph.to_graph_order(x, 1);
  expect(lengths.size() == static_cast<std::size_t>(nodes), "a row for each edge");

  sar_cxx11::Model model(comm, sage, 3), twin(comm, sage, 3);
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "sgd", "lr": 0.5, "momentum": 0.5})");
  const sar_cxx11::Optimizer twins(twin, R"({"optimizer": "sgd", "lr": 0.5, "momentum": 0.5})");
  double first = 0, last = 0;
  bool equal = true;
  for (int step = 0; step < 20; ++step) {
    last = model.train_step(optimizer, graph, sar_cxx11::array(x, 1), labels);
    equal = equal && last == twin.train_step(twins, same, sar_cxx11::array(x, 1), labels);
    if (step == 0) first = last;
  }
  expect(last < first, "the loss falls");
  expect(equal, "both numberings give the same losses");

  // the mesh changes: edges go the other way around the ring, and then back
  const sar_cxx11::Predictor predictor(model, graph);
  const sar_cxx11::Graph reversed(comm, ids, dst, src);
  std::vector<double> once(2 * nodes), there(2 * nodes), wanted(2 * nodes), back(2 * nodes);
  sar_array out_once = sar_cxx11::array(once, 2), out_there = sar_cxx11::array(there, 2);
  sar_array out_wanted = sar_cxx11::array(wanted, 2), out_back = sar_cxx11::array(back, 2);
  predictor.run(sar_cxx11::array(x, 1), out_once);
  graph.rebuild(ids, dst, src);
  predictor.run(sar_cxx11::array(x, 1), out_there);
  sar_cxx11::Predictor(model, reversed).run(sar_cxx11::array(x, 1), out_wanted);
  graph.rebuild(numbering, local_src, local_dst);
  predictor.run(sar_cxx11::array(x, 1), out_back);
  expect(there == wanted && there != once, "the predictor follows the graph that is rebuilt");
  expect(back == once, "a graph that is rebuilt as it was predicts as it did");
  try {
    graph.rebuild(ids, src, std::vector<std::int64_t>(1));
    expect(false, "edges with fewer destinations than sources are refused");
  } catch (const sar_cxx11::Error& error) {
    expect(error.status() == SAR_ERROR_SHAPE, "the status of that error");
  }

  for (const std::string type : {"potential", "mace"}) {
    const sar_cxx11::Potential potential(comm, SAR_TEST_DATA "/weights/" + type + ".safetensors");
    std::vector<double> places(3 * nodes), forces(3 * nodes), flux(9 * nodes);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<double>(i * i % 7) / 3;
    const sar_array positions = sar_cxx11::array(places, 3);
    sar_array force_rows = sar_cxx11::array(forces, 3), flux_rows = sar_cxx11::array(flux, 9);
    const std::vector<std::int32_t> species(nodes, potential.species("b"));
    const sar_cxx11::PotentialValues at =
        potential.evaluate(graph, species, &positions, nullptr, &force_rows, nullptr, &flux_rows);
    const sar_cxx11::PotentialValues sure = potential.evaluate(graph, species, &positions, nullptr, nullptr,
                                                               nullptr, nullptr, /*force_deviations=*/true);
    expect(sure.energy == at.energy && sure.energy_deviation == 0 &&
               sure.force_deviations == std::vector<double>(species.size(), 0.0),
           "deviations of a potential without a committee");
    expect(potential.cutoff() == 4 && at.energies.size() == species.size() && at.energy != 0 &&
               forces[1] != 0 && flux[4] != 0,
           "energies, forces and virials of a potential");
  }

  const std::string file = folder + ".safetensors";
  model.save(file);
  const sar_cxx11::Model loaded = sar_cxx11::Model::load(comm, file);
  expect(loaded.description() == model.description(), "the file has the description");
  std::vector<double> y(2 * nodes), of_file(2 * nodes);
  sar_array out = sar_cxx11::array(y, 2), out_of_file = sar_cxx11::array(of_file, 2);
  sar_cxx11::Predictor(model, graph).run(sar_cxx11::array(x, 1), out);
  sar_cxx11::Predictor(loaded, graph).run(sar_cxx11::array(x, 1), out_of_file);
  expect(y == of_file, "the model of the file predicts the same");

  const sar_cxx11::Checkpoints checkpoints(comm, folder);
  checkpoints.save(1, model, optimizer);
  expect(checkpoints.load_latest(model, optimizer) == 1, "the epoch of the checkpoint");

  try {
    sar_cxx11::Model(comm, "{}", 1);
    expect(false, "an empty description is refused");
  } catch (const sar_cxx11::Error& error) {
    expect(error.status() == SAR_ERROR_INPUT && !std::string(error.what()).empty(),
           "the status of the error");
  }
}

using Ids = std::vector<std::int64_t>;
using Values = std::vector<double>;

/// A ring of 6 nodes on each rank, with an edge in each direction, and rows of its nodes and edges.
struct Ring {
  explicit Ring(const sar_cxx11::Comm& c) : comm(c), last(c.rank() == c.size() - 1) {
    const int nodes = 6, all = nodes * c.size();
    for (int i = 0; i < nodes; ++i) {
      const std::int64_t node = c.rank() * nodes + i;
      ids.push_back(node);
      for (const std::int64_t from : {(node + 1) % all, (node + all - 1) % all}) {
        src.push_back(from);
        dst.push_back(node);
        edge_ids.push_back(1000 + 2 * node + (from == (node + 1) % all ? 0 : 1));
        length.push_back(1 + 0.25 * static_cast<double>(from % 5));
      }
      x.push_back(100 * std::sin(static_cast<double>(node)));
      x.push_back(0.01 * std::cos(static_cast<double>(node)));
      y.push_back(1e4 + 100 * std::sin(static_cast<double>(node + 1)));
    }
  }
  const sar_cxx11::Comm& comm;
  bool last;
  Ids ids, src, dst, edge_ids;
  Values x, y, length;
};

/// Calls `function`, which all ranks must refuse with the same text. Returns the text.
template <class Function>
std::string refusal(const Function& function, int status, const char* what) {
  try {
    function();
  } catch (const sar_cxx11::Error& error) {
    expect(error.status() == status, what);
    char first[500] = "";
    std::snprintf(first, sizeof first, "%s", error.what());
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    expect(first == std::string(error.what()), "all ranks have the same text");
    return error.what();
  }
  expect(false, what);
  return "";
}

void wrong_on_one_rank(const Ring& ring) {
  const Ids shorter(ring.dst.begin() + 1, ring.dst.end());
  const Ids& dst = ring.last ? shorter : ring.dst;
  const auto says = [](const std::string& text, const char* part) {
    expect(text.find(part) != std::string::npos, (text + ": expected " + part).c_str());
  };
  says(refusal([&] { sar_cxx11::Graph(ring.comm, ring.ids, ring.src, dst); }, SAR_ERROR_SHAPE,
               "a destination too few"),
       "there are 12 sources of edges, 11 destinations");
  sar_cxx11::Graph graph(ring.comm, ring.ids, ring.src, ring.dst);
  refusal([&] { graph.rebuild(ring.ids, ring.src, dst); }, SAR_ERROR_SHAPE, "the same in a rebuild");
  const Ids few_ids(2);
  refusal(
      [&] {
        sar_cxx11::Graph(ring.comm, ring.ids, ring.src, ring.dst, "{}",
                         ring.last ? &few_ids : &ring.edge_ids);
      },
      SAR_ERROR_SHAPE, "too few ids of edges");
  const std::vector<std::int32_t> one(1), two(2);
  refusal(
      [&] {
        graph.rebuild(sar_cxx11::LocalToGlobal{6, ring.ids}, one, ring.last ? two : one);
      },
      SAR_ERROR_SHAPE, "local numbers");

  const char* const gcn =
      R"({"sar_model": 1, "type": "gcn", "in_feats": 2, "hidden": 4, "out_feats": 1, "layers": 2})";
  sar_cxx11::Model model(ring.comm, gcn, 3);
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "adam"})");
  const auto step = [&](std::int64_t fields) {
    return model.train_step(optimizer, graph, sar_cxx11::array(ring.x, ring.last ? fields : 2),
                            sar_cxx11::array(ring.y, 1));
  };
  says(refusal([&] { step(5); }, SAR_ERROR_SHAPE, "12 values have no rows of 5"),
       "12 values does not have rows of 5 fields");
  refusal([&] { step(0); }, SAR_ERROR_SHAPE, "no fields");
  refusal([&] { step(-2); }, SAR_ERROR_SHAPE, "fewer than no fields");
  refusal([&] { graph.to_graph_order(ring.length, ring.last ? 5 : 1); }, SAR_ERROR_SHAPE, "rows of edges");
  refusal(
      [&] { graph.to_given_order(ring.length, ring.last ? std::numeric_limits<std::int64_t>::max() : 1); },
      SAR_ERROR_SHAPE, "more fields than there is memory");
  const std::vector<std::uint8_t> short_mask(3, 1), mask(6, 1);
  refusal(
      [&] {
        model.evaluate(graph, sar_cxx11::array(ring.x, 2), sar_cxx11::array(ring.y, 1), SAR_LOSS_L1, nullptr,
                       ring.last ? &short_mask : &mask);
      },
      SAR_ERROR_SHAPE, "a short mask");
  sar_cxx11::Graph given(ring.comm, ring.ids, ring.src, ring.dst),
      taken(ring.comm, ring.ids, ring.src, ring.dst);
  if (ring.last) taken = sar_cxx11::Graph(std::move(given));
  refusal([&] { given.to_graph_order(ring.length, 1); }, SAR_ERROR_HANDLE, "a graph that was moved");
  refusal([&] { given.to_given_order(ring.length, 1); }, SAR_ERROR_HANDLE, "the same, the inverse order");
  expect(step(2) > 0, "all goes on");
}

void edges_and_parameters(const Ring& ring) {
  const sar_array weight = sar_cxx11::array(ring.length, 1);
  const sar_cxx11::Graph plain(ring.comm, ring.ids, ring.src, ring.dst);
  const sar_cxx11::Graph graph(ring.comm, ring.ids, ring.src, ring.dst, "{}", &ring.edge_ids, &weight);
  const Values ordered = graph.to_graph_order(ring.length, 1);
  const Ids ids = graph.edge_ids();
  expect(graph.to_given_order(ordered, 1) == ring.length, "the order of edges goes there and back");
  expect(ids.size() == ring.edge_ids.size() && Ids(ids) != plain.edge_ids(), "the ids of edges are ours");

  const char* const gcn =
      R"({"sar_model": 1, "type": "gcn", "in_feats": 2, "hidden": 4, "out_feats": 1, "layers": 2})";
  sar_cxx11::Model model(ring.comm, gcn, 3), twin(ring.comm, gcn, 4);
  const sar_array x = sar_cxx11::array(ring.x, 2), y = sar_cxx11::array(ring.y, 1);
  const double loss = model.evaluate(graph, x, y), of_plain = model.evaluate(plain, x, y);
  expect(loss != of_plain, "the model reads the weights of edges");
  expect(twin.evaluate(graph, x, y) != loss, "other weights have another loss");
  for (std::int64_t i = 0; i < model.num_parameters(); ++i) {
    expect(model.parameter(i).name == twin.parameter(i).name, "names of parameters");
    twin.set_parameter(i, model.get_parameter<float>(i));
    twin.set_parameter(i, model.get_parameter(i));
  }
  expect(twin.evaluate(graph, x, y) == loss, "parameters that are copied have the same loss");
  expect(model.feats().in == 2 && model.feats().out == 1 && model.feats().edges == 0, "widths of the model");
  try {
    twin.set_parameter(0, Values(1));
    expect(false, "a parameter of another size is refused");
  } catch (const sar_cxx11::Error& error) {
    expect(error.status() == SAR_ERROR_SHAPE, "the status of that error");
  }
  const Ids labels(6, 0);
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "sgd", "lr": 0.1})");
  const double of_labels = model.evaluate(graph, x, labels);
  expect(of_labels == model.train_step(optimizer, graph, x, labels),
         "the loss of labels, and before the step");

  const char* const in_bfloat16 = R"({"optimizer": "sgd", "lr": 0.1, "precision": "mixed"})";
  if (sar_precision() == SAR_FLOAT64)
    return (void)refusal([&] { sar_cxx11::Optimizer(model, in_bfloat16); }, SAR_ERROR_INPUT,
                         "mixed precision in double precision");
  const sar_cxx11::Optimizer mixed(model, in_bfloat16);
  const double full = model.evaluate(graph, x, y), rounded = model.train_step(mixed, graph, x, y);
  expect(rounded != full && std::fabs(rounded - full) < 0.05 * std::fabs(full), "a step in mixed precision");
}

// A loss that is finite, whose gradients overflow.
void refuses_gradients(const Ring& ring) {
  const sar_cxx11::Graph graph(ring.comm, ring.ids, ring.src, ring.dst);
  sar_cxx11::Model model(
      ring.comm,
      R"({"sar_model": 1, "type": "sage", "in_feats": 2, "hidden": 4, "out_feats": 1, "layers": 1})", 3);
  for (int i = 0; i < model.num_parameters(); ++i)
    model.set_parameter(i, Values(model.get_parameter(i).size(), 0));
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "sgd", "lr": 0.1})");
  const double large = sar_precision() == SAR_FLOAT64 ? 1e308 : 1e38;
  const Values x(ring.x.size(), large / 4), y(ring.y.size(), 1e10);
  const sar_array rows = sar_cxx11::array(x, 2), wanted = sar_cxx11::array(y, 1);
  const double before = model.evaluate(graph, rows, wanted);
  expect(std::isfinite(before), "a finite loss");
  const std::string text = refusal([&] { model.train_step(optimizer, graph, rows, wanted); }, SAR_ERROR_INPUT,
                                   "gradients that are not finite");
  expect(text.find("the gradient of ") != std::string::npos, text.c_str());
  expect(before == model.evaluate(graph, rows, wanted), "the model is as it was");
}

void normalizes(const Ring& ring, const std::string& folder) {
  const sar_cxx11::Graph graph(ring.comm, ring.ids, ring.src, ring.dst);
  const char* const mesh =
      R"({"sar_model": 1, "type": "mesh_graph_net", "in_feats": 2, "edge_feats": 1, "hidden": 8, "out_feats": 1,
          "layers": 2, "normalize": true})";
  sar_cxx11::Model model(ring.comm, mesh, 3), other(ring.comm, mesh, 3);
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "adam", "lr": 0.01, "clip_grad_norm": 1e6})");
  const Values ordered = graph.to_graph_order(ring.length, 1);
  const sar_array x = sar_cxx11::array(ring.x, 2), y = sar_cxx11::array(ring.y, 1);
  const sar_array edges = sar_cxx11::array(ordered, 1);
  const auto step = [&] { return model.train_step(optimizer, graph, x, y, SAR_LOSS_MSE, &edges); };
  refusal(step, SAR_ERROR_INPUT, "a step without statistics");
  model.update_statistics(x, edges, y);
  const double first = step();
  expect(first < 1e6, "results are near the mean of the targets, not near 0");
  double last = first;
  for (int i = 0; i < 40; ++i) last = step();
  expect(last < first / 2, "the loss falls");

  // one value that is not finite, on one rank, changes nothing
  Values broken = ring.x;
  if (ring.last) broken[5] = std::numeric_limits<double>::quiet_NaN();
  const double before = model.evaluate(graph, x, y, SAR_LOSS_MSE, &edges);
  const std::string text = refusal(
      [&] { model.train_step(optimizer, graph, sar_cxx11::array(broken, 2), y, SAR_LOSS_MSE, &edges); },
      SAR_ERROR_INPUT, "a value that is not finite");
  expect(text.find("the array 'x' has the value nan in row 2, field 1") != std::string::npos, text.c_str());
  expect(before == model.evaluate(graph, x, y, SAR_LOSS_MSE, &edges), "the model is as it was");

  const std::string file = folder + ".mesh.safetensors";
  model.save(file);
  const sar_cxx11::Model loaded = sar_cxx11::Model::load(ring.comm, file);
  expect(loaded.evaluate(graph, x, y, SAR_LOSS_MSE, &edges) == before, "the file has the statistics");
}

Values all_parameters(const sar_cxx11::Model& model) {
  Values all;
  for (std::int64_t i = 0; i < model.num_parameters(); ++i)
    for (const double value : model.get_parameter(i)) all.push_back(value);
  return all;
}

/// A step of SGD with the rate 1 moves the parameters by the clipped gradient. The gradients here are large.
void clips(const Ring& ring) {
  const sar_cxx11::Graph graph(ring.comm, ring.ids, ring.src, ring.dst);
  const char* const gcn =
      R"({"sar_model": 1, "type": "gcn", "in_feats": 2, "hidden": 4, "out_feats": 1, "layers": 2})";
  for (const std::string limit : {"clip_grad_norm", "clip_grad_value"}) {
    sar_cxx11::Model model(ring.comm, gcn, 3);
    const sar_cxx11::Optimizer optimizer(model,
                                         R"({"optimizer": "sgd", "lr": 1, ")" + limit + R"(": 0.001})");
    const Values before = all_parameters(model);
    model.train_step(optimizer, graph, sar_cxx11::array(ring.x, 2), sar_cxx11::array(ring.y, 1));
    const Values after = all_parameters(model);
    double squares = 0, largest = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const double moved = std::abs(after[i] - before[i]);
      squares += moved * moved;
      largest = std::max(largest, moved);
    }
    const double found = limit == "clip_grad_norm" ? std::sqrt(squares) : largest;
    expect(std::abs(found - 0.001) < 1e-6, limit.c_str());
    expect(limit == "clip_grad_norm" || squares > 2e-6, "each value is limited by itself");
  }
}

/// Two node types with the ids of the ring, coupled by a second type of edges.
void types(const Ring& ring) {
  sar_cxx11::Graph graph(ring.comm);
  refusal([&] { graph.sizes(); }, SAR_ERROR_INPUT, "a graph that is not built");
  const sar_cxx11::EdgeType along{"a", "along", "a"}, across{"b", "across", "a"};
  const Ids across_ids(ring.edge_ids.begin(), ring.edge_ids.begin() + 6);
  const sar_array weight = sar_cxx11::array(ring.length, 1);
  graph.add_nodes("a", ring.ids);
  graph.add_nodes("b", ring.ids);
  graph.add_edges(along, ring.src, ring.dst, nullptr, &weight);
  graph.add_edges(across, ring.ids, ring.ids, &across_ids);
  graph.build();
  const int ranks = ring.comm.size();
  const sar_cxx11::GraphSizes all = graph.sizes(), b = graph.sizes("b", "across");
  expect(all.nodes == 12 && all.global_nodes == 12 * ranks && all.given_edges == 18 &&
             all.global_edges == 18 * ranks,
         "sizes of all types");
  expect(b.nodes == 6 && b.edges == 6 && b.given_edges == 6 && b.global_edges == 6 * ranks,
         "sizes of one of the types");
  const Ids ids = graph.edge_ids(across.name());
  expect(ids == across_ids, "the ids of the edges of a type");
  expect(graph.edge_ids("along").size() == 12, "the ids of the other type");
  refusal([&] { graph.edge_ids(); }, SAR_ERROR_INPUT, "the ids of the edges of no type");
  const Values ordered = graph.to_graph_order(ring.length, 1, nullptr, "along");
  expect(graph.to_given_order(ordered, 1, false, along.name()) == ring.length,
         "the order of edges of a type");
  const std::string text = refusal([&] { graph.to_graph_order(ring.length, 1); }, SAR_ERROR_INPUT,
                                   "the order of edges of no type");
  expect(text.find("a:along:a, b:across:a") != std::string::npos, text.c_str());

  const char* const rgcn =
      R"({"sar_model": 1, "type": "rgcn", "in_feats": 2, "hidden": 4, "out_feats": 1, "layers": 2,
          "node_types": ["a", "b"], "edge_types": [["a", "along", "a"], ["b", "across", "a"]]})";
  sar_cxx11::Model model(ring.comm, rgcn, 3);
  const sar_cxx11::Optimizer optimizer(model, R"({"optimizer": "sgd", "lr": 0.001})");
  const sar_array x = sar_cxx11::array(ring.x, 2);
  Values y(6), wanted(6, 0.5);
  sar_array out = sar_cxx11::array(y, 1);
  refusal([&] { model.predict(graph, x, out, nullptr, "a"); }, SAR_ERROR_INPUT, "no rows of the other type");
  graph.set_rows("b", x);
  model.predict(graph, x, out, nullptr, "a");
  expect(model.evaluate(graph, x, out, SAR_LOSS_L1, nullptr, nullptr, "a") < 1e-4, "the loss of the results");
  const sar_array target = sar_cxx11::array(wanted, 1);
  const double loss = model.evaluate(graph, x, target, SAR_LOSS_MSE, nullptr, nullptr, "a");
  expect(model.train_step(optimizer, graph, x, target, SAR_LOSS_MSE, nullptr, nullptr, "a") == loss,
         "the loss before a step");
  const Ids labels(6, 0);
  const double of_labels = model.evaluate(graph, x, labels, nullptr, nullptr, "a");
  expect(model.train_step(optimizer, graph, x, labels, nullptr, nullptr, "a") == of_labels,
         "the loss of labels before a step");
  refusal([&] { model.predict(graph, x, out); }, SAR_ERROR_INPUT, "a prediction of no type");

  // of one type, nothing names it, and a predictor gives the same
  graph.rebuild(ring.ids, ring.src, ring.dst);
  const char* const gcn =
      R"({"sar_model": 1, "type": "gcn", "in_feats": 2, "hidden": 4, "out_feats": 1, "layers": 2})";
  const sar_cxx11::Model single(ring.comm, gcn, 3);
  Values of_predictor(6);
  sar_array run = sar_cxx11::array(of_predictor, 1);
  single.predict(graph, x, out);
  sar_cxx11::Predictor(single, graph).run(x, run);
  expect(y == of_predictor, "a predictor has the same results");
}

void the_library(const Ring& ring, const std::string& folder) {
  sar_cxx11::set_num_threads(ring.comm.default_num_threads());
  sar_cxx11::set_num_threads(0);
  expect(sar_cxx11::Comm::world().size() == ring.comm.size(), "the communicator of all ranks");
  sar_cxx11::memory_reset_peak();
  expect(sar_cxx11::memory_peak() >= sar_cxx11::memory_current(), "memory");
  sar_cxx11::memory_release();
  expect(sar_cxx11::version().find('.') != std::string::npos, "the version");
  const std::string file = folder + ".trace.json";
  sar_cxx11::Trace trace(ring.comm, file);
  const sar_cxx11::Graph graph(ring.comm, ring.ids, ring.src, ring.dst);
  trace.write();
  if (ring.comm.rank() == 0) expect(std::ifstream(file).good(), "the timeline is written");
}

}  // namespace

int main(int argc, char** argv) {
  sar_cxx11::check(sar_init());
  const std::string folder = argc > 1 ? argv[1] : "cxx11";
  trains(folder);
  {
    const sar_cxx11::Comm comm(MPI_COMM_WORLD);
    const Ring ring(comm);
    wrong_on_one_rank(ring);
    edges_and_parameters(ring);
    refuses_gradients(ring);
    normalizes(ring, folder);
    clips(ring);
    types(ring);
    the_library(ring, folder);
  }
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  sar_cxx11::check(sar_finalize());
  return all == 0 ? 0 : 1;
}

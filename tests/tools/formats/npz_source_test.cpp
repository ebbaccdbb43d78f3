// SPDX-License-Identifier: MIT
#include "source_file.hpp"
#include "zip_bytes.hpp"

#include <sar/graph/data/load_dataset.hpp>
#include <sar/graph/data/splits.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace sar;
using namespace sar::formats;
using sar::test::npy;
using sar::test::raw_npy;
using sar::test::SourceFile;
using sar::test::WholeSource;

namespace {

using Arrays = std::map<std::string, std::string>;
using Numbers = std::vector<double>;

constexpr Index nodes = 11, edges = 17, splits = 3, width = 4;

Index source_of(Index e) {
  return e * 5 % nodes;
}
Index target_of(Index e) {
  return (e * e + 3) % nodes;
}
double feature_of(Index v, Index j) {
  return (v * 3 + j) % 4 == 0 ? static_cast<double>(v + 1) / 2 : 0;
}
bool is_in_mask(int part, Index split, Index v) {
  return (v * 7 + split) % 3 == part;
}

Numbers numbers_of(Index count, const std::function<double(Index)>& number) {
  Numbers numbers;
  for (Index i = 0; i < count; ++i) numbers.push_back(number(i));
  return numbers;
}
Numbers features() {
  return numbers_of(nodes * width, [](Index i) { return feature_of(i / width, i % width); });
}
Numbers mask_by_split(int part) {
  return numbers_of(splits * nodes,
                    [&](Index i) { return is_in_mask(part, i / nodes, i % nodes) ? 1.0 : 0.0; });
}
Numbers mask_by_node(int part) {
  return numbers_of(splits * nodes,
                    [&](Index i) { return is_in_mask(part, i % splits, i / splits) ? 1.0 : 0.0; });
}
Numbers edges_by_edge() {
  return numbers_of(2 * edges, [](Index i) {
    return static_cast<double>(i % 2 == 0 ? source_of(i / 2) : target_of(i / 2));
  });
}
Numbers edges_by_column() {
  return numbers_of(2 * edges, [](Index i) {
    return static_cast<double>(i < edges ? source_of(i) : target_of(i - edges));
  });
}
Numbers labels() {
  return numbers_of(nodes, [](Index v) { return static_cast<double>(v % 3); });
}

Arrays platonov() {
  return {{"node_features", npy(NpyType::float32, {nodes, width}, features())},
          {"node_labels", npy(NpyType::int64, {nodes}, labels())},
          {"edges", npy(NpyType::int64, {edges, 2}, edges_by_edge())},
          {"train_masks", npy(NpyType::boolean, {splits, nodes}, mask_by_split(0))},
          {"val_masks", npy(NpyType::boolean, {splits, nodes}, mask_by_split(1), true)},
          {"test_masks", npy(NpyType::boolean, {nodes, splits}, mask_by_node(2))}};
}

/// Four arrays of a matrix in compressed rows.
void add_matrix(Arrays& arrays, const std::string& name, Index rows, Index columns, const Numbers& dense) {
  Numbers data, indices, indptr{0};
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      const double value = dense[static_cast<std::size_t>(i * columns + j)];
      if (value == 0) continue;
      data.push_back(value);
      indices.push_back(static_cast<double>(j));
    }
    indptr.push_back(static_cast<double>(data.size()));
  }
  const auto entries = static_cast<Index>(data.size());
  arrays[name + "data"] = npy(NpyType::float32, {entries}, data);
  arrays[name + "indices"] = npy(NpyType::int32, {entries}, indices);
  arrays[name + "indptr"] = npy(NpyType::int32, {rows + 1}, indptr);
  arrays[name + "shape"] =
      npy(NpyType::int64, {2}, {static_cast<double>(rows), static_cast<double>(columns)});
}
/// Entry (i, j) is i + 2 j, or 1, where there is one.
Numbers adjacency(bool ones) {
  Numbers dense(static_cast<std::size_t>(nodes * nodes), 0);
  for (Index e = 0; e < edges; ++e)
    dense[static_cast<std::size_t>(source_of(e) * nodes + target_of(e))] =
        ones ? 1 : static_cast<double>(source_of(e) + 2 * target_of(e) + 1);
  return dense;
}

std::string npz(const Arrays& arrays, bool deflated) {
  Arrays files;
  for (const auto& [name, bytes] : arrays) files[name + ".npy"] = bytes;
  return test::zip(files, deflated);
}

WholeSource read_npz(const Communicator& comm, const Arrays& arrays, bool deflated,
                     const SourceOptions& options = {}) {
  return SourceFile(comm, "graph.npz", npz(arrays, deflated)).read(options);
}
std::string error_of(const Communicator& comm, const Arrays& arrays, const SourceOptions& options = {}) {
  return SourceFile(comm, "graph.npz", npz(arrays, true)).error(options);
}
Arrays with(Arrays arrays, const std::string& name, const std::string& bytes) {
  arrays[name] = bytes;
  return arrays;
}
Arrays without(Arrays arrays, const std::string& name) {
  arrays.erase(name);
  return arrays;
}

void check_edges(const WholeSource& whole) {
  REQUIRE(std::ssize(whole.edges) == edges);
  for (Index e = 0; e < edges; ++e)
    CHECK(whole.edges[static_cast<std::size_t>(e)] == std::pair(source_of(e), target_of(e)));
}

}  // namespace

TEST_CASE("a dataset by the names of its arrays, with masks of several splits in any order") {
  const Communicator comm = Communicator::world();
  for (const bool deflated : {false, true}) {
    const WholeSource whole = read_npz(comm, platonov(), deflated);
    CHECK(whole.num_nodes == nodes);
    check_edges(whole);
    CHECK(whole.node_data.at("features") == features());
    CHECK(whole.node_data.at("labels") == labels());
    for (const auto& [name, part] : {std::pair{"train_mask", 0}, {"val_mask", 1}, {"test_mask", 2}})
      CHECK(whole.node_data.at(name) == mask_by_node(part));
  }
  // PyTorch Geometric's names: edges by column, one-hot labels, weights
  Numbers one_hot(static_cast<std::size_t>(nodes) * 3, 0);
  for (Index v = 1; v < nodes; ++v) one_hot[static_cast<std::size_t>(3 * v + v % 3)] = 1;
  const Arrays pyg{{"x", npy(NpyType::float64, {nodes, width}, features(), true)},
                   {"edge_index", npy(NpyType::float32, {2, edges}, edges_by_column())},
                   {"edge_weight", npy(NpyType::uint8, {edges}, Numbers(edges, 2))},
                   {"edge_attr", npy(NpyType::float16, {edges, 1}, Numbers(edges, 0.5))},
                   {"y", npy(NpyType::int32, {nodes, 3}, one_hot)},
                   {"train_mask", npy(NpyType::uint8, {nodes}, Numbers(nodes, 1))}};
  for (const bool deflated : {false, true}) {
    check_edges(read_npz(comm, pyg, deflated));
    const SourceFile file(comm, "graph.npz", npz(pyg, deflated));
    const NodeData data = load_dataset(*open_source(comm, file.path()));
    CHECK(data.num_classes == 3);
    CHECK(data.splits.count == 1);
    for (std::size_t i = 0; i < data.labels.size(); ++i)
      CHECK(data.labels[i] == (data.original_ids[i] == 0 ? -1 : data.original_ids[i] % 3));
    for (const real weight : data.edges.weight) CHECK(weight == 2);
  }
}

TEST_CASE("several splits, of which one is chosen at a time") {
  const Communicator comm = Communicator::world();
  const SourceFile file(comm, "graph.npz", npz(platonov(), true));
  const auto source = open_source(comm, file.path());
  CHECK(num_splits(*source) == splits);
  NodeData data = load_dataset(*source, {.split = 1});
  for (Index split = 0; split < data.splits.count; ++split) {
    if (split > 0) choose_split(data, split);
    const Index is = split == 0 ? 1 : split;  // as loaded
    CHECK(data.splits.chosen == is);
    for (std::size_t i = 0; i < data.labels.size(); ++i) {
      CHECK(data.train_mask[i] == (is_in_mask(0, is, data.original_ids[i]) ? 1 : 0));
      CHECK(data.val_mask[i] == (is_in_mask(1, is, data.original_ids[i]) ? 1 : 0));
      CHECK(data.test_mask[i] == (is_in_mask(2, is, data.original_ids[i]) ? 1 : 0));
    }
  }
  CHECK(test::thrown_by_all<InputError>(comm, [&] { choose_split(data, 3); }) ==
        "graph: there are 3 splits, expected split 0 to 2, not 3");
  CHECK(data.splits.chosen == 2);
}

TEST_CASE("lists of the nodes of a split become masks") {
  const Communicator comm = Communicator::world();
  const auto is_in = [](int part, Index v) { return is_in_mask(part, 0, v); };
  const auto list_of = [&](int part) {
    Numbers list;
    for (Index v = nodes - 1; v >= 0; --v)
      if (is_in(part, v)) list.push_back(static_cast<double>(v));
    return npy(NpyType::int64, {std::ssize(list)}, list);
  };
  const auto mask_of = [&](int part) {
    return numbers_of(nodes, [&](Index v) { return is_in(part, v) ? 1.0 : 0.0; });
  };
  Arrays listed = platonov();
  for (const char* mask : {"train_masks", "val_masks", "test_masks"}) listed.erase(mask);
  listed["train_idx"] = list_of(0);
  listed["idx_valid"] = list_of(1);
  const SourceFile test_nodes(comm, "test.npy", list_of(2));
  SourceOptions options;
  options.node_data = {{"test_nodes", test_nodes.path()}};
  for (const bool deflated : {false, true}) {
    const WholeSource whole = read_npz(comm, listed, deflated, options);
    CHECK(whole.node_data.at("train_mask") == mask_of(0));
    CHECK(whole.node_data.at("val_mask") == mask_of(1));
    CHECK(whole.node_data.at("test_mask") == mask_of(2));
  }

  const auto wrong = [&](const std::string& name, std::vector<Index> shape, const Numbers& numbers) {
    return error_of(comm, with(listed, name, npy(NpyType::int64, std::move(shape), numbers)));
  };
  CHECK(wrong("train_idx", {2}, {0, 11}) ==
        ": train_idx: element 1 is 11, expected the number of a node, 0 to 10");
  CHECK(wrong("train_idx", {2}, {-1, 0}).find(": train_idx: element 0 is -1, expected") == 0);
  CHECK(wrong("train_idx", {3}, {4, 1, 4}) ==
        ": train_idx: node 4 is listed twice, expected each node once; zeros and ones for all nodes are a "
        "mask, such as train_mask");
  CHECK(wrong("train_idx", {1, 2}, {0, 1}) ==
        ": train_idx: shape is (1, 2), expected a list of at most 11 nodes");
  CHECK(wrong("train_ids", {1}, {0}) ==
        ": there are several arrays that may be the train_nodes: train_idx, train_ids; expected one of them");
  CHECK(error_of(comm, with(platonov(), "train_idx", list_of(0)))
            .ends_with(": train_masks, too, expected it once"));
  CHECK(error_of(comm, with(without(listed, "train_idx"), "train_mask", list_of(0)))
            .ends_with("for the 11 nodes by node_features; a list of nodes has the name train_nodes"));
  options.node_data = {{"test_mask", test_nodes.path()}};
  CHECK(error_of(comm, listed, options).ends_with("; a list of nodes is --node-data train_nodes=FILE"));
}

TEST_CASE("matrices of edges and features in compressed rows, under several names") {
  const Communicator comm = Communicator::world();
  for (const bool deflated : {false, true})
    for (const std::string sign : {"_", "."})
      for (const bool ones : {true, false}) {
        Arrays arrays{{"labels", npy(NpyType::int8, {nodes}, labels())},
                      {"node_names", raw_npy("<U3", "(11,)", std::string(132, 'a'))},
                      {"attr_text", raw_npy("|O", "(2,)", "pickled")}};
        add_matrix(arrays, "adj" + sign, nodes, nodes, adjacency(ones));
        add_matrix(arrays, "attr" + sign, nodes, width, features());
        const WholeSource whole = read_npz(comm, arrays, deflated);
        CHECK(whole.num_nodes == nodes);
        CHECK(whole.node_data.at("features") == features());
        CHECK(whole.node_data.at("labels") == labels());
        CHECK(whole.edge_data.contains("weight") == !ones);
        Numbers dense(static_cast<std::size_t>(nodes * nodes), 0);
        for (std::size_t e = 0; e < whole.edges.size(); ++e)
          dense[static_cast<std::size_t>(whole.edges[e].first * nodes + whole.edges[e].second)] +=
              ones ? 1 : whole.edge_data.at("weight")[e];
        CHECK(dense == adjacency(ones));
      }
}

TEST_CASE("what scipy.sparse.save_npz writes is a graph without node data") {
  const Communicator comm = Communicator::world();
  const Numbers dense = adjacency(false);
  const auto format = [](const std::string& name) { return raw_npy("|S3", "()", name); };
  Arrays csr{{"format", format("csr")}}, csc{{"format", format("csc")}}, coo{{"format", format("coo")}};
  add_matrix(csr, "", nodes, nodes, dense);
  Numbers transposed(dense.size()), row, col, data;
  for (Index i = 0; i < nodes; ++i)
    for (Index j = 0; j < nodes; ++j) {
      const double value = dense[static_cast<std::size_t>(i * nodes + j)];
      transposed[static_cast<std::size_t>(j * nodes + i)] = value;
      if (value == 0) continue;
      row.push_back(static_cast<double>(i));
      col.push_back(static_cast<double>(j));
      data.push_back(value);
    }
  add_matrix(csc, "", nodes, nodes, transposed);
  const auto entries = static_cast<Index>(data.size());
  coo["row"] = npy(NpyType::int32, {entries}, row);
  coo["col"] = npy(NpyType::int64, {entries}, col);
  coo["data"] = npy(NpyType::float64, {entries}, data);
  coo["shape"] = csr["shape"];
  for (const bool deflated : {false, true})
    for (const Arrays& arrays : {csr, csc, coo}) {
      const WholeSource whole = read_npz(comm, arrays, deflated);
      CHECK(whole.num_nodes == nodes);
      CHECK(whole.node_data.empty());
      Numbers found(dense.size(), 0);
      for (std::size_t e = 0; e < whole.edges.size(); ++e)
        found[static_cast<std::size_t>(whole.edges[e].first * nodes + whole.edges[e].second)] =
            whole.edge_data.at("weight")[e];
      CHECK(found == dense);
    }
  CHECK(error_of(comm, with(csr, "format", format("bsr"))) ==
        ": the sparse matrix has the format bsr, expected csr, csc or coo: scipy.sparse.save_npz(path, "
        "matrix.tocsr())");
  CHECK(error_of(comm, with(csr, "shape", npy(NpyType::int64, {2}, {11, 12}))) ==
        ": shape: is (11, 12), expected a square matrix");
  CHECK(error_of(comm, without(csr, "indptr")).find("has no array indptr") != std::string::npos);
  CHECK(error_of(comm, without(coo, "row")).find("has no array row") != std::string::npos);
}

TEST_CASE("OGB's archive is read as it was downloaded, and has node data of its own") {
  const Communicator comm = Communicator::world();
  const std::map<std::string, std::string> members{{"small/", ""},
                                                   {"__MACOSX/small/raw/._edge.csv.gz", "no gzip"},
                                                   {"small/raw/num-node-list.csv.gz", test::gzip("3\n")},
                                                   {"small/raw/num-edge-list.csv.gz", test::gzip("2\n")},
                                                   {"small/raw/edge.csv.gz", test::gzip("0,1\n1,2\n")},
                                                   {"small/raw/node-feat.csv", "1,2\n3,4\n5,6\n"},
                                                   {"small/split/time/train.csv.gz", test::gzip("0\n")},
                                                   {"small/split/time/valid.csv.gz", test::gzip("1\n")},
                                                   {"small/split/time/test.csv.gz", test::gzip("2\n")}};
  for (const bool deflated : {false, true}) {
    const SourceFile file(comm, "small.zip", test::zip(members, deflated));
    const WholeSource whole = file.read();
    CHECK(whole.edges == std::vector<std::pair<Index, Index>>{{0, 1}, {1, 2}});
    CHECK(whole.node_data.at("features") == Numbers{1, 2, 3, 4, 5, 6});
    CHECK(whole.node_data.at("val_mask") == Numbers{0, 1, 0});
    SourceOptions table;
    table.node_table = "nodes.csv";
    CHECK(file.error(table) == ": has node data of its own, expected no --node-table and no --node-features");
  }
  std::map<std::string, std::string> wrong = members;
  wrong["small/raw/edge.csv.gz"] = test::gzip("0,1\n1,7\n");
  CHECK(SourceFile(comm, "small.zip", test::zip(wrong, true)).error() ==
        "/small/raw/edge.csv.gz: line 2: column 2 is '7', expected 0 to 2");
  wrong["other/raw/edge.csv.gz"] = "";
  CHECK(SourceFile(comm, "small.zip", test::zip(wrong, true)).error().find("several folders with raw/") !=
        std::string::npos);
}

TEST_CASE("pickles and files of other programs are refused with what converts them") {
  const Communicator comm = Communicator::world();
  const auto error = [&](const std::string& name, const std::string& bytes) {
    return SourceFile(comm, name, bytes).error();
  };
  const std::string pickle =
      ": a pickle of Python can run any program and is not read; export it in Python: ";
  CHECK(error("g.pkl", std::string("\x80\2}q\0.", 6))
            .find(pickle + "import numpy, pickle; data = pickle.load") == 0);
  CHECK(error("g", std::string("\x80\4}q\0.", 6)).find(pickle) == 0);
  CHECK(error("g.pt", test::zip({{"g/data.pkl", "x"}, {"g/version", "3"}}, false))
            .find(pickle + "import numpy, torch; data = torch.load") == 0);
  CHECK(error("g.npy", npy(NpyType::int64, {1}, Numbers{1})).find(": is one array, expected a graph") == 0);
  CHECK(error("g.mat", "MATLAB 5.0 MAT-file").find(": a file of MATLAB is not read") == 0);
  CHECK(error("g.h5", "\x89HDF\r\n").find(": HDF5 is not read") == 0);
}

TEST_CASE("each missing, doubled and wrongly shaped array is one sentence") {
  const Communicator comm = Communicator::world();
  const Arrays good = platonov();
  const auto numbers = [](NpyType type, std::vector<Index> shape, double value) {
    Index size = 1;
    for (const Index extent : shape) size *= extent;
    return npy(type, std::move(shape), Numbers(static_cast<std::size_t>(size), value));
  };
  const auto wrong = [&](const std::string& name, const std::string& bytes) {
    return error_of(comm, with(good, name, bytes));
  };
  CHECK(error_of(comm, without(good, "edges")).find(": there are no edges among the arrays (") == 0);
  CHECK(error_of(comm, {}) ==
        ": the zip archive has no folder raw/ and no .npy files, expected an OGB dataset as it is "
        "downloaded, or NumPy's arrays");
  CHECK(wrong("x", good.at("node_features")) ==
        ": there are several arrays that may be the features: node_features, x; expected one of them, or "
        "--fields features=NAME");
  CHECK(wrong("edge_index", good.at("edges")) ==
        ": there are several arrays that may be the edges: edges, edge_index; expected one of them");
  CHECK(wrong("edges", numbers(NpyType::int64, {3, 3}, 0)) ==
        ": edges: shape is (3, 3), expected (2, number of edges) or (number of edges, 2)");
  CHECK(wrong("edges", numbers(NpyType::int64, {4}, 0)).find(": edges: shape is (4,)") == 0);
  CHECK(wrong("edges", numbers(NpyType::int64, {3, 2}, -1)) ==
        ": edges: element (0, 0) is -1, expected the number of a node, from 0 on");
  CHECK(wrong("edges", numbers(NpyType::int64, {3, 2}, 11)) ==
        ": edges: edge 0 is (11, 11), but there is no node 11, expected 0 to 10");
  CHECK(wrong("edges", numbers(NpyType::float32, {3, 2}, 0.5)).find(": edges: element (0, 0) is 0.5") == 0);
  CHECK(wrong("node_labels", numbers(NpyType::int64, {10}, 0)) ==
        ": node_labels: shape is (10,), expected 11 rows, one for each node by node_features");
  CHECK(wrong("node_labels", raw_npy("<U2", "(11,)", std::string(88, 'a')))
            .find(": node_labels: the array has texts (dtype '<U2'), expected numbers; in Python: ") == 0);
  CHECK(wrong("node_features", raw_npy("|O", "(11, 4)", "pickled"))
            .find(": node_features: the array has pickled Python objects, which are not read; in Python: ") ==
        0);
  CHECK(wrong("train_masks", numbers(NpyType::boolean, {3, 10}, 0)) ==
        ": train_masks: shape is (3, 10), expected (11,), (11, splits) or (splits, 11) for the 11 nodes by "
        "node_features");
  CHECK(wrong("train_masks", numbers(NpyType::boolean, {11, 11}, 0)).find("does not say whether a row") !=
        std::string::npos);
  SourceOptions named;
  named.fields = {{"labels", "none"}};
  CHECK(
      error_of(comm, good, named).find(": there is no array none, expected one, which shall be the labels") ==
      0);

  const auto load_error = [&](const std::string& name, const std::string& bytes) {
    const SourceFile file(comm, "graph.npz", npz(with(good, name, bytes), true));
    const std::string text = test::thrown_by_all<InputError>(
        comm, [&] { static_cast<void>(load_dataset(*open_source(comm, file.path()))); });
    return text.substr(text.starts_with(file.path()) ? file.path().size() : 0);
  };
  CHECK(load_error("train_masks", numbers(NpyType::boolean, {2, nodes}, 0)) ==
        ": train_masks: the mask has 2 splits, expected 3 as another mask has, or one");
  CHECK(load_error("train_masks", numbers(NpyType::int8, {splits, nodes}, 2)).find(": train_masks: row ") ==
        0);
  CHECK(load_error("node_labels", numbers(NpyType::int8, {nodes, 2}, 1)).find("2 ones and 0 other numbers") !=
        std::string::npos);

  Arrays shchur{{"labels", npy(NpyType::int8, {nodes}, labels())}};
  add_matrix(shchur, "adj_", nodes, nodes, adjacency(true));
  add_matrix(shchur, "attr_", nodes, width, features());
  const auto csr_error = [&](const std::string& name, const std::string& bytes) {
    return error_of(comm, with(shchur, name, bytes));
  };
  CHECK(error_of(comm, without(shchur, "adj_shape")).find(": adj: the sparse matrix has no array shape") ==
        0);
  CHECK(error_of(comm, without(shchur, "adj_indptr")) ==
        ": adj: the sparse matrix has no array indptr, expected data, indices, indptr and shape, as "
        "scipy.sparse.save_npz writes them");
  CHECK(csr_error("adj_shape", npy(NpyType::int64, {2}, {10, 10})) ==
        ": adj_indptr: shape is (12,), expected (11,), one for each row of the matrix, and one more");
  CHECK(csr_error("attr_shape", npy(NpyType::int64, {2}, {11, 3})).find(": attr_indices: element ") == 0);
  CHECK(csr_error("attr_data", numbers(NpyType::float32, {3}, 1))
            .find(": attr_data: shape is (3,), expected (") == 0);
  Numbers offsets(nodes + 1, 0);
  offsets[3] = 5;
  CHECK(csr_error("attr_indptr", npy(NpyType::int32, {nodes + 1}, offsets)) ==
        ": attr_indptr: element 4 is 0, expected at least 5, the one before it");
  CHECK(csr_error("adj.data", shchur.at("adj_data"))
            .find("which have the same meaning, expected one of them") != std::string::npos);
}

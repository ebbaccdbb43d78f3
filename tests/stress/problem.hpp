// SPDX-License-Identifier: MIT

/// A random problem of the stress test: node types dealt out to the ranks at random, relations between
/// them, and the leaves of a computation that runs twice, here and in the reference.
#pragma once

#include "stress/dense_graph.hpp"

#include <sar/autograd/variable.hpp>
#include <sar/comm/communicator.hpp>
#include <sar/core/random.hpp>
#include <sar/graph/message/graph.hpp>
#include <sar/nn/modules/module.hpp>

#include <cstdint>
#include <initializer_list>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace sar::test {

/// Random choices, one after the other: the same on every rank.
class Draw {
 public:
  explicit Draw(const RandomKey& key) : random_(key) {}
  double uniform(double low = 0, double high = 1) { return low + (high - low) * random_.uniform(next_++); }
  /// low .. high
  Index integer(Index low, Index high) {
    return low + static_cast<Index>(uniform() * static_cast<double>(high - low + 1));
  }
  bool chance(double p) { return uniform() < p; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[integer(0, static_cast<Index>(values.size()) - 1)];
  }
  std::uint64_t bits() { return random_.bits(next_++); }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

/// The same rows twice: this rank's in the library, all of them in the reference.
struct Both {
  Variable ours;
  Matrix reference;
  [[nodiscard]] Index cols() const { return reference.cols(); }
  [[nodiscard]] bool defined() const { return reference.defined(); }
};

/// Nodes 0 .. n-1, dealt out to the ranks in any way.
struct NodeKind {
  PartitionBook book;
  std::vector<Index> new_id;  ///< global id of each node
  std::vector<Index> mine;    ///< this rank's nodes in the order of their global ids
  [[nodiscard]] Index size() const { return book.num_nodes(); }
};

struct Relation {
  std::size_t src_kind, dst_kind;
  DenseGraph dense;
  Graph graph;
};

class Problem {
 public:
  Problem(const Communicator& comm, std::uint64_t seed, std::uint64_t attempt);

  Draw draw;
  std::ostringstream says;  ///< what the problem is
  const Communicator& comm() const { return comm_; }
  std::vector<NodeKind> kinds;
  std::vector<Relation> relations;

  /// Random rows of a node type, and of a relation's edges; they want a gradient more often than not.
  Both node_rows(const NodeKind& kind, Index cols);
  Both edge_rows(const Relation& relation, Index cols, double low = -1, double high = 1);
  /// A parameter [rows, cols], the same on all ranks.
  Both parameter(Index rows, Index cols);
  /// The module's parameters at random values, by name; vectors are matrices of one row. Keeps the module.
  std::map<std::string, Matrix> adopt(const std::shared_ptr<Module>& module);
  /// Until the way back is over.
  void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }

  /// Goes back from sum(weight * rows) over all `rows`, and compares these and all gradients. What differs by
  /// more than the tolerance is in the text, which is empty when nothing does.
  std::string compare(const std::vector<std::pair<const NodeKind*, Both>>& results);

 private:
  struct Leaf {
    std::string name;
    Both rows;
    std::vector<Index> mine;  ///< rows of this rank; not used by parameters
    bool is_parameter;
  };
  Both leaf(std::string name, Matrix values, std::vector<Index> mine, bool is_parameter, bool wants_gradient);
  Matrix random_matrix(Index rows, Index cols, double low = -1, double high = 1);
  void draw_nodes();
  void draw_relation();

  const Communicator& comm_;
  std::list<Leaf> leaves_;
  std::vector<std::shared_ptr<const void>> kept_;
};

/// The given rows of a matrix as a tensor.
Tensor to_tensor(const Matrix& x, const std::vector<Index>& rows);

}  // namespace sar::test

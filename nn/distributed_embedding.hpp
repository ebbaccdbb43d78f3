/// DistributedEmbedding: learnable rows for the nodes of a graph that has no features, spread over all ranks.
///
///     DistributedEmbedding embedding("node", comm, data.book, data.original_ids, 64, gen);
///     SparseAdam sparse({embedding}, {.lr = 0.01});
///     ...
///     Tape tape;
///     const Variable loss = model(block, embedding(ids));      // ids: the nodes of a batch, of any rank
///     tape.backward(loss);
///     sparse.step();                                           // only rows of the batch change
///     sparse.zero_grad();
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/nn/init.hpp>

#include <span>
#include <string>
#include <vector>

namespace sar::inline SAR_PRECISION {

/// Some rows of a tensor.
struct SparseRows {
  Array<Index> ids;  ///< ascending, each once
  Tensor rows;       ///< [ids.size(), ...]
};

/// [N, width], N = book.num_nodes(), as DGL's DistEmbedding. The rows are no parameter of a Module: their
/// gradient has the rows of a batch only, and a sparse optimizer (sparse_optimizer.hpp) moves these rows at
/// their owners.
class DistributedEmbedding {
 public:
  /// original_ids[i] is the original id of row i of this rank. Rows are uniform in [-bound, bound], drawn for
  /// the original id: the same for any number of ranks and any partition. `name` is that of files and errors.
  /// Collective. Throws as DistributedTensor; ShapeError for another number of original ids than the book's.
  DistributedEmbedding(std::string name, const Communicator& comm, const PartitionBook& book,
                       std::span<const Index> original_ids, Index width, Generator& gen, double bound = 1);
  DistributedEmbedding(const DistributedEmbedding&) = delete;
  DistributedEmbedding& operator=(const DistributedEmbedding&) = delete;

  /// Row i of the result, [ids.size(), width], is row ids[i]; ids are global, may be repeated, and may be
  /// none. With a tape in scope, ids and the gradient of the result are kept until zero_grad(). Collective.
  [[nodiscard]] Variable operator()(std::span<const Index> ids);
  /// All rows of this rank, in their order, [rows of this rank, width], in memory of the embedding: for
  /// training on the whole graph. Otherwise as with ids. Local.
  [[nodiscard]] Variable operator()();
  /// The sum over all ranks of the gradients of this rank's rows, where there are some, since zero_grad();
  /// ids are global ids. Those of one row are added in the order of ranks, calls and ids. Collective.
  [[nodiscard]] SparseRows gradient() const;
  /// Forgets the gradients. Local.
  void zero_grad() { uses_.clear(); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const Communicator& comm() const noexcept { return rows_.comm(); }
  [[nodiscard]] const PartitionBook& book() const noexcept { return rows_.book(); }
  [[nodiscard]] std::span<const Index> original_ids() const noexcept { return original_ids_; }
  [[nodiscard]] Index width() const { return rows_.row_size(); }
  /// The values.
  [[nodiscard]] const DistributedTensor<>& rows() const noexcept { return rows_; }
  /// This rank's rows, [rows of this rank, width], in memory of the tensor: write to them as to
  /// DistributedTensor::mine_to_write(). Local.
  [[nodiscard]] Tensor mine() const { return mine_; }

 private:
  struct Use {
    Array<Index> ids;
    Variable rows;
  };

  std::string name_;
  Array<Index> original_ids_;
  Tensor mine_;
  DistributedTensor<> rows_;
  std::vector<Use> uses_;
};

}  // namespace sar::inline SAR_PRECISION

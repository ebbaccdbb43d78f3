// SPDX-License-Identifier: MIT

/// Embeddings: of rows of categories, and learnable rows for nodes without features.
#pragma once

#include <sar/autograd/variable.hpp>
#include <sar/comm/rows/distributed_tensor.hpp>
#include <sar/graph/sampling/graph_samples.hpp>
#include <sar/nn/modules/module.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {

// Embeddings of rows of categories, such as the atoms of molecules.

/// The sum of an embedding for each column (AtomEncoder and BondEncoder of OGB):
///
///     y_i = sum_c W_c[x_ic]
///
/// for integers x [n, C], of which column c has values from 0 to sizes[c] - 1.
///
/// Parameter: weight, the matrices W_c [sizes[c], width] one below another; each is initialized
/// Xavier-uniform, as OGB does.
///
/// @code
/// const CategoryEmbedding atoms({119, 5}, 16, gen);  // elements, and five chiralities
/// const Variable y = atoms(IntegerRows{2, Array<Index>{6, 0, 8, 1}});
/// @endcode
class CategoryEmbedding : public Module {
 public:
  /// Throws InputError unless there is a column, and widths and sizes are positive.
  CategoryEmbedding(std::vector<Index> sizes, Index width, Generator& gen);

  /// Local. x [n, C] -> [n, width]. Keeps the integers. Throws ShapeError for another number of columns and
  /// InputError for a value that is no category; the message begins with `place`.
  [[nodiscard]] Variable operator()(const IntegerRows& x, const std::string& place = "categories") const;

  [[nodiscard]] const std::vector<Index>& sizes() const noexcept { return sizes_; }
  [[nodiscard]] Index width() const { return weight_.shape()[1]; }

 private:
  std::vector<Index> sizes_;
  Array<Index> first_;  // row of the weight at which each column begins
  Variable weight_;
};

// DistributedEmbedding: learnable rows for nodes without features, distributed over all ranks.
//
//     DistributedEmbedding embedding("node", comm, data.book, data.original_ids, 64, gen);
//     SparseAdam sparse({embedding}, {.lr = 0.01});
//     ...
//     Tape tape;
//     const Variable loss = model(block, embedding(ids));      // ids: the nodes of a batch, on any rank
//     tape.backward(loss);
//     sparse.step();                                           // updates the rows of the batch only
//     sparse.zero_grad();

/// Some rows of a tensor, as a list of row ids and their values.
struct SparseRows {
  Array<Index> ids;  ///< ascending, without duplicates
  Tensor rows;       ///< [ids.size(), ...]
};

/// Learnable rows [N, width], N = book.num_nodes(), equivalent to DGL's DistEmbedding. The rows are not a
/// parameter of a Module: their gradient contains the rows of a batch only, and a sparse optimizer
/// (nn/train/optimizer.hpp) updates these rows at their owners.
///
/// @code
/// DistributedEmbedding embedding("node", comm, data.book, data.original_ids, /*width=*/16, gen);
/// SparseAdam optimizer({embedding}, {.lr = 0.01});
/// Tape tape;
/// const std::vector<Index> ids{0, 299};  // of any rank
/// tape.backward(sum(embedding(ids)));
/// optimizer.step();                      // updates these rows at their owners
/// optimizer.zero_grad();
/// @endcode
class DistributedEmbedding : NonCopyable {
 public:
  /// Collective. Creates rows that are uniform in [-bound, bound]. original_ids[i] is the original id of
  /// row i of this rank; it keys the random draws, so that values do not depend on the number of ranks or
  /// the partition. `name` appears in file names and error messages. Throws as DistributedTensor, and
  /// ShapeError if the number of original ids is not that of the book.
  DistributedEmbedding(std::string name, const Communicator& comm, const PartitionBook& book,
                       std::span<const Index> original_ids, Index width, Generator& gen, double bound = 1);

  /// Collective. Returns rows by global id: row i of the result, [ids.size(), width], is row ids[i]. Ids
  /// may repeat, and a rank may pass none. While a tape records, the ids and the gradient of the result are
  /// kept until zero_grad().
  [[nodiscard]] Variable operator()(std::span<const Index> ids);
  /// Local. Returns all rows of this rank in their order, [rows of this rank, width], without a copy, for
  /// training on the whole graph. Gradients as with ids.
  [[nodiscard]] Variable operator()();
  /// Collective. Returns the gradients of this rank's rows, summed over all ranks and all calls since
  /// zero_grad(). Contains the rows that have a gradient, by global id. Contributions to one row are added
  /// in the order of ranks, calls and ids.
  [[nodiscard]] SparseRows gradient() const;
  /// Local. Clears the gradients.
  void zero_grad() { uses_ = std::vector<Use>(); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const Communicator& comm() const noexcept { return rows_.comm(); }
  [[nodiscard]] const PartitionBook& book() const noexcept { return rows_.book(); }
  [[nodiscard]] std::span<const Index> original_ids() const noexcept { return original_ids_; }
  [[nodiscard]] Index width() const { return rows_.row_size(); }
  /// The values.
  [[nodiscard]] const DistributedTensor<>& rows() const noexcept { return rows_; }
  /// Local. Returns this rank's rows, [rows of this rank, width], as a view. Writing to it follows the
  /// rules of DistributedTensor::mine_to_write().
  [[nodiscard]] Tensor mine() const { return mine_; }

 private:
  struct Use {
    std::shared_ptr<const Array<Index>> ids;
    Variable rows;
  };

  std::string name_;
  Array<Index> original_ids_;
  Tensor mine_;
  DistributedTensor<> rows_;
  Recoverable<std::vector<Use>> uses_;  // since zero_grad()
};
}}  // namespace sar

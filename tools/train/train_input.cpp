// SPDX-License-Identifier: MIT
#include "train_input.hpp"

#include <sar/comm/rows/write_rows.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/files/npy.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

namespace sar::tools {
namespace {

/// The file of the learnable rows of a type, beside the file of weights.
std::string rows_file(const std::string& weights, const std::string& type) {
  return weights + ".rows." + escaped(type) + ".npy";
}

/// This rank's rows of a file. Local.
Tensor rows_of_file(const std::string& path, const DistributedEmbedding& embedding) {
  const NpyFile file(path);
  const std::vector<Index> expected{embedding.book().num_nodes(), embedding.width()};
  require<InputError>(file.shape() == expected, path, ": shape is ", shape_to_string(file.shape()),
                      ", expected ", shape_to_string(expected), ", the learnable rows of this run");
  Tensor rows(embedding.mine().shape());
  file.read_rows(embedding.original_ids(), std::span<real>(rows.values()));
  const auto bad = std::ranges::find_if_not(rows.values(), [](real x) { return std::isfinite(x); });
  require<InputError>(bad == rows.values().end(), path, ": a number is not finite, expected finite numbers");
  return rows;
}

/// Dense rows are gathered where they are read; of sparse rows, the stored values are copied.
Variable rows_of_features(const Variable& features, RowIds rows) {
  if (sparse_matrix(features) != nullptr) return gather_rows(features, std::move(rows));
  return deferred_gather_rows(features.rows(), std::move(rows));
}

}  // namespace

// The seed of learnable rows is another one than that of the model, so that both draw other numbers.
Variable bfloat16_features(const Communicator& comm, const Variable& features, const std::string& name) {
  if (sparse_matrix(features) != nullptr) return features;
  return comm.agree([&]() -> Variable {
    const Tensor& full = features.value();
    TypedRows rows(full, NumberType::bfloat16);
    constexpr Index grain = 1 << 16;
    parallel_for_each(full.size(), grain, [&](Index i) {
      const real x = full.data()[i];
      require<InputError>(!std::isfinite(x) || std::isfinite(bfloat16_to_float(rows.bfloat16()[i].bits)),
                          name, ": the features have the number ", x, " in row ", i / full.row_size(),
                          " of rank ", comm.rank(),
                          ", expected magnitudes below 3.39e38 for --bfloat16-features");
    });
    return rows;
  });
}

NodeInput::NodeInput(const Communicator& comm, const TrainOptions& o, NodeData& data,
                     const Variable& features)
    : gen_(~o.seed) {
  Type& type = types_.emplace_back("node", data.book.num_nodes(comm.rank()));
  if (o.embedding > 0) {
    width_ = o.embedding;
    add_learnable_rows(comm, type, data.book, data.original_ids, 1);
    make_optimizer(o);
    data.features = type.rows->mine();
  }
  type.features = features.defined() ? features : data.input();
  width_ = type.features.shape().row_size();
}

NodeInput::NodeInput(const Communicator& comm, const TrainOptions& o, std::span<const TypeRows> types,
                     Generator& gen)
    : gen_(~o.seed) {
  // A type without nodes and data has rows of any width: it changes nothing.
  const auto has_rows = [](const TypeRows& type) {
    return type.features.defined() || type.book.num_nodes() > 0;
  };
  const auto with_rows = std::ranges::find_if(types, has_rows);
  const Variable first = with_rows == types.end() ? Variable() : with_rows->features;
  const bool alike = std::ranges::all_of(types, [&](const TypeRows& type) {
    if (!has_rows(type)) return true;
    return first.defined() && type.features.defined() &&
           type.features.shape() == first.shape().with_rows(type.features.num_rows());
  });
  const bool all_learnable =
      std::ranges::none_of(types, [](const TypeRows& type) { return type.features.defined(); });
  width_ = alike ? first.shape().row_size() : all_learnable && o.embedding > 0 ? o.embedding : o.model.hidden;
  for (const TypeRows& each : types) {
    Type& type = types_.emplace_back(each.name, each.book.num_nodes(comm.rank()));
    type.features = has_rows(each) ? each.features : Tensor({Index{0}, width_});
    if (!type.features.defined()) {
      const double bound =
          init::relu_gain * std::sqrt(6 / static_cast<double>(each.book.num_nodes() + width_));
      add_learnable_rows(comm, type, each.book, each.original_ids, bound);
    } else if (!alike) {
      type.linear = std::make_unique<Linear>(type.features.shape().row_size(), width_, gen);
      register_module(module_name(type.name), *type.linear);
      has_parameters_ = true;
    }
  }
  make_optimizer(o);
}

void NodeInput::add_learnable_rows(const Communicator& comm, Type& type, const PartitionBook& book,
                                   std::span<const Index> original_ids, double bound) {
  type.rows =
      std::make_unique<DistributedEmbedding>(type.name, comm, book, original_ids, width_, gen_, bound);
}

// SparseAdam also for adamw, whose decay is for weights.
void NodeInput::make_optimizer(const TrainOptions& o) {
  EmbeddingRefs refs;
  for (const Type& type : types_)
    if (type.rows != nullptr) refs.emplace_back(*type.rows);
  if (refs.empty()) return;
  if (o.optimizer == OptimizerType::sgd)
    optimizer_ = std::make_unique<SparseSGD>(refs, SparseSGDOptions{.lr = o.lr});
  else
    optimizer_ = std::make_unique<SparseAdam>(refs, SparseAdamOptions{.lr = o.lr});
}

std::pair<Index, Index> NodeInput::stored_values() const {
  std::pair<Index, Index> values{0, 0};
  for (const Type& type : types_)
    if (const auto rows = sparse_matrix(type.features)) {
      values.first += rows->num_stored();
      values.second += rows->shape().size();
    }
  return values;
}

std::map<std::string, Index> NodeInput::widths() const {
  std::map<std::string, Index> widths;
  for (const Type& type : types_)
    if (type.linear != nullptr) widths[type.name] = type.features.shape().row_size();
  return widths;
}

bool NodeInput::is_sparse() const {
  return std::ranges::all_of(types_, [](const Type& type) {
    return type.linear == nullptr && sparse_matrix(type.features) != nullptr;
  });
}

Variable NodeInput::all() {
  std::vector<Variable> rows;
  for (Type& type : types_) rows.push_back(all_of(type));
  return rows.size() == 1 ? rows.front() : concat_rows(rows);
}

Variable NodeInput::all_of(Type& type) {
  if (type.rows != nullptr) return (*type.rows)();
  return type.linear != nullptr ? (*type.linear)(type.features) : type.features;
}

Variable NodeInput::rows_of(Type& type, Array<Index> rows) {
  if (type.rows != nullptr) {
    for (Index& row : rows) row += type.rows->book().begin(type.rows->comm().rank());
    return (*type.rows)(rows);
  }
  Variable features = rows_of_features(type.features, std::move(rows));
  return type.linear != nullptr ? (*type.linear)(std::move(features)) : features;
}

Variable NodeInput::of(const Array<Index>& local_rows) {
  if (types_.size() == 1 && types_.front().rows == nullptr && types_.front().linear == nullptr)
    return rows_of_features(types_.front().features, local_rows);
  std::vector<Array<Index>> rows(types_.size()), places(types_.size());
  for (std::size_t i = 0; i < local_rows.size(); ++i) {
    std::size_t type = 0;
    Index row = local_rows[i];
    while (row >= types_[type].num_rows) row -= types_[type++].num_rows;
    rows[type].push_back(row);
    places[type].push_back(static_cast<Index>(i));
  }
  std::vector<Variable> by_type;
  Array<Index> order(local_rows.size());
  Index next = 0;
  for (std::size_t t = 0; t < types_.size(); ++t) {
    for (const Index place : places[t]) order[place] = next++;
    by_type.push_back(rows_of(types_[t], std::move(rows[t])));
  }
  return by_type.size() == 1 ? by_type.front() : gather_rows(concat_rows(by_type), std::move(order));
}

void NodeInput::step(double lr) {
  if (optimizer_ == nullptr) return;
  optimizer_->set_lr(lr);
  optimizer_->step();
  optimizer_->zero_grad();
}

void NodeInput::save_rows(const std::string& weights) const {
  for (const Type& type : types_)
    if (type.rows != nullptr)
      write_npy_rows(type.rows->comm(), rows_file(weights, type.name), type.rows->mine(),
                     type.rows->original_ids(), npy_real);
}

void NodeInput::load_rows(const std::string& weights) {
  std::vector<std::pair<const DistributedEmbedding*, Tensor>> read;
  for (const Type& type : types_)
    if (type.rows != nullptr)
      type.rows->comm().agree([&] {
        read.emplace_back(type.rows.get(), rows_of_file(rows_file(weights, type.name), *type.rows));
      });
  for (const auto& [embedding, rows] : read) {
    std::ranges::copy(rows.values(), embedding->rows().mine_to_write().begin());
    embedding->rows().barrier();
  }
}

void NodeInput::save(const std::string& path) const {
  const Communicator comm =
      std::ranges::find_if(types_, [](const Type& type) { return type.rows != nullptr; })->rows->comm();
  std::error_code none_there;
  if (comm.rank() == 0) std::filesystem::remove_all(path, none_there);
  comm.barrier();
  optimizer_->save(path);
}

}  // namespace sar::tools

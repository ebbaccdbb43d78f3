// SPDX-License-Identifier: MIT

// A step, for each embedding: complete pushes, sum the gradients at the owners of the rows, gather these
// rows and their state, update the copies, and put them back; a barrier makes them visible. Time and
// memory grow with the rows that have a gradient, not with all rows. A failure before the rows are put
// back changes nothing.
#include <sar/comm/files/new_directory.hpp>
#include <sar/comm/files/write_rows.hpp>
#include <sar/core/error.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/number_text.hpp>
#include <sar/core/random/mix.hpp>
#include <sar/core/rows/optimizer_step.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/nn/train/optimizer_option.hpp>
#include <sar/nn/train/sparse_optimizer.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {
namespace {

constexpr const char* state_file = "/state.safetensors";

/// Sets x[rows[i]] = from[i].
void put_rows(const Tensor& from, std::span<const Index> rows, Tensor x) {
  const Index width = x.row_size();
  parallel_for(std::ssize(rows), 256, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) std::copy_n(from.row(i), width, x.row(rows[i]));
  });
}

/// Reads the rows of a file of save() in the order of `ids`. Local.
Tensor rows_of_file(const std::string& path, std::span<const Index> ids, Index num_rows, Index width) {
  const NpyFile file(path);
  const std::vector<Index> expected{num_rows, width};
  require<InputError>(file.shape() == expected && is_floating_point(file.type()), path, ": has ",
                      to_string(file.type()), " ", shape_to_string(file.shape()),
                      ", expected floating-point numbers ", shape_to_string(expected));
  Tensor rows({std::ssize(ids), width});
  file.read_rows(ids, rows.values());
  for (const real value : rows.values())
    require<InputError>(std::isfinite(value), path, ": has the value ", value, ", expected finite numbers");
  return rows;
}

/// Returns a checksum of the rows of all ranks and their ids, whichever rank has which. Collective.
std::uint64_t checksum_of(const Communicator& comm, const Tensor& rows, std::span<const Index> ids) {
  using Bits = std::conditional_t<sizeof(real) == 8, std::uint64_t, std::uint32_t>;
  std::uint64_t sum = 0;
  for (Index i = 0; i < rows.num_rows(); ++i) {
    auto hash = static_cast<std::uint64_t>(ids[i]);
    for (Index j = 0; j < rows.row_size(); ++j) {
      hash = (hash ^ std::bit_cast<Bits>(rows.row(i)[j])) * golden_ratio;  // odd: one to one
      hash ^= hash >> 32;
    }
    sum += hash;
  }
  return comm.all_reduce(sum);
}

/// Returns the metadata key of a file's checksum, which is of numbers in the precision that wrote them.
std::string checksum_key(const std::string& file) {
  return concat("checksum.", to_string(real_type), file.substr(file.rfind('/')));
}

}  // namespace

SparseOptimizer::SparseOptimizer(const EmbeddingRefs& embeddings, double lr,
                                 std::vector<std::string> state_names, double initial_state)
    : state_names_(std::move(state_names)), lr_(lr) {
  require_not_negative(lr, "lr");
  for (DistributedEmbedding& embedding : embeddings) {
    for (const Slot& slot : slots_)
      require<InputError>(slot.embedding->name() != embedding.name(), "two embeddings have the name '",
                          embedding.name(), "', expected different names");
    Slot slot{&embedding, {}, {}};
    for (std::size_t k = 0; k < state_names_.size(); ++k)
      slot.state.push_back(Tensor::full(embedding.mine().shape(), static_cast<real>(initial_state)));
    slots_.push_back(std::move(slot));
  }
}

std::vector<Tensor> SparseOptimizer::tensors_of(const Slot& slot) const {
  std::vector<Tensor> tensors{slot.embedding->mine()};
  tensors.insert(tensors.end(), slot.state.begin(), slot.state.end());
  return tensors;
}

void SparseOptimizer::step() {
  const TraceScope scope("sparse optimizer", TraceKind::compute);
  for (const Slot& slot : slots_) slot.embedding->rows().barrier();  // complete earlier pushes
  for (Slot& slot : slots_) {
    const Communicator& comm = slot.embedding->comm();
    std::vector<Tensor> all, moved;
    SparseRows gradient;
    comm.agree([&] {
      CollectiveCall call("SparseOptimizer::step");
      call.equal("kind of the optimizer", kind()).equal("lr", lr_.get());
      describe(call);
      const CallScope compared(comm, call);
      all = tensors_of(slot);
      gradient = slot.embedding->gradient();
      const Index first = slot.embedding->book().begin(comm.rank());
      for (Index& id : gradient.ids) id -= first;
      for (const Tensor& tensor : all)
        gather_rows(tensor, gradient.ids, moved.emplace_back(gradient.rows.shape()));
      std::vector<Tensor> state(moved.begin() + 1, moved.end());
      update(slot.steps + 1, moved[0], gradient.rows, state);
    });
    // No rank reads, and without an open transaction nothing can fail any more.
    ++slot.steps.change();
    if (Transaction::is_open())
      for (const Tensor& tensor : all)
        for (const Index row : gradient.ids) tensor.slice_rows(row, row + 1).save();
    for (std::size_t k = 0; k < all.size(); ++k) put_rows(moved[k], gradient.ids, all[k]);
    slot.embedding->rows().barrier();
  }
}

void SparseOptimizer::zero_grad() {
  for (Slot& slot : slots_) slot.embedding->zero_grad();
}

std::string SparseOptimizer::file_of(const std::string& path, const Slot& slot, std::size_t tensor) const {
  return concat(path, "/", escaped(slot.embedding->name()), ".",
                tensor == 0 ? "rows" : state_names_[tensor - 1], ".npy");
}

void SparseOptimizer::save(const std::string& path) const {
  if (slots_.empty()) return;
  const Communicator& comm = slots_.front().embedding->comm();
  comm.agree([&] {
    NewDirectory directory(comm, path);
    std::vector<Recoverable<std::uint64_t>> steps;
    for (const Slot& slot : slots_) steps.push_back(slot.steps);
    StateDict counters;
    std::map<std::string, std::string> metadata{{"optimizer", kind()}, {"lr", exact_text(lr_.get())}};
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::vector<Tensor> tensors = tensors_of(slots_[i]);
      const std::span<const Index> ids = slots_[i].embedding->original_ids();
      for (std::size_t k = 0; k < tensors.size(); ++k) {
        const std::string file = file_of(directory.path(), slots_[i], k);
        write_npy_rows(comm, file, tensors[k], ids, npy_real);
        metadata[checksum_key(file)] = std::to_string(checksum_of(comm, tensors[k], ids));
      }
      counters.counters.push_back({slots_[i].embedding->name() + ".step", &steps[i]});
    }
    save_state_dict(comm, directory.path() + state_file, counters, real_type, metadata);
    directory.commit();
  });
}

void SparseOptimizer::load(const std::string& path) {
  if (slots_.empty()) return;
  const Communicator& comm = slots_.front().embedding->comm();
  comm.agree([&] {
    const auto metadata = load_metadata(comm, path + state_file);
    const auto text = [&](const std::string& key) {
      return metadata.contains(key) ? metadata.at(key) : std::string();
    };
    const auto lr = to_number<double>(text("lr"));
    require<InputError>(text("optimizer") == kind() && lr && *lr >= 0 && std::isfinite(*lr), path, state_file,
                        ": the optimizer is '", text("optimizer"), "' with lr '", text("lr"), "', expected ",
                        kind(), " and a number");
    std::vector<Recoverable<std::uint64_t>> steps(slots_.size());
    StateDict counters;
    for (std::size_t i = 0; i < slots_.size(); ++i)
      counters.counters.push_back({slots_[i].embedding->name() + ".step", &steps[i]});
    load_state_dict(comm, path + state_file, counters);
    std::vector<std::vector<Tensor>> read(slots_.size());
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const DistributedEmbedding& embedding = *slots_[i].embedding;
      const std::span<const Index> ids = embedding.original_ids();
      for (std::size_t k = 0; k <= state_names_.size(); ++k) {
        const std::string file = file_of(path, slots_[i], k);
        read[i].push_back(rows_of_file(file, ids, embedding.book().num_nodes(), embedding.width()));
        const std::string expected = text(checksum_key(file));
        const std::string found = std::to_string(checksum_of(comm, read[i].back(), ids));
        require<InputError>(expected.empty() || found == expected, file, ": the rows have the checksum ",
                            found, ", expected ", expected);
      }
    }
    for (const Slot& slot : slots_) slot.embedding->rows().barrier();
    // nothing can fail any more, and no rank reads
    lr_ = *lr;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].steps = steps[i];
      std::vector<Tensor> tensors = tensors_of(slots_[i]);
      for (std::size_t k = 0; k < tensors.size(); ++k) {
        tensors[k].save();
        tensors[k].copy_from(read[i][k]);
      }
      slots_[i].embedding->rows().barrier();
    }
  });
}

SparseSGD::SparseSGD(const EmbeddingRefs& embeddings, const SparseSGDOptions& options)
    : SparseOptimizer(embeddings, options.lr, {}) {}

void SparseSGD::update(std::uint64_t, Tensor& rows, const Tensor& gradient, std::vector<Tensor>&) {
  Tensor no_buffer;
  sgd_step(rows, gradient, no_buffer, static_cast<real>(lr()), 0, 0);
}

SparseAdagrad::SparseAdagrad(const EmbeddingRefs& embeddings, const SparseAdagradOptions& options)
    : SparseOptimizer(embeddings, options.lr, {"sum"}, options.initial_accumulator),
      lr_decay_(options.lr_decay),
      eps_(options.eps) {
  require_not_negative(options.lr_decay, "lr_decay");
  require_not_negative(options.initial_accumulator, "initial_accumulator");
  require_not_negative(options.eps, "eps");
}

void SparseAdagrad::describe(CollectiveCall& call) const {
  call.equal("lr_decay", lr_decay_).equal("eps", eps_);
}

void SparseAdagrad::update(std::uint64_t step, Tensor& rows, const Tensor& gradient,
                           std::vector<Tensor>& state) {
  const double rate = lr() / (1 + (static_cast<double>(step) - 1) * lr_decay_);
  adagrad_step(rows, gradient, state[0], static_cast<real>(rate), static_cast<real>(eps_));
}

SparseAdam::SparseAdam(const EmbeddingRefs& embeddings, const SparseAdamOptions& options)
    : SparseOptimizer(embeddings, options.lr, {"exp_avg", "exp_avg_sq"}),
      beta1_(options.beta1),
      beta2_(options.beta2),
      eps_(options.eps) {
  require_not_negative(options.eps, "eps");
  require<InputError>(beta1_ >= 0 && beta1_ < 1 && beta2_ >= 0 && beta2_ < 1,
                      "the optimizer options beta1 and beta2 are ", beta1_, " and ", beta2_,
                      ", expected values from 0 to below 1");
}

void SparseAdam::describe(CollectiveCall& call) const {
  call.equal("beta1", beta1_).equal("beta2", beta2_).equal("eps", eps_);
}

void SparseAdam::update(std::uint64_t step, Tensor& rows, const Tensor& gradient,
                        std::vector<Tensor>& state) {
  const auto t = static_cast<double>(step);
  const AdamCoefficients c{
      .beta1 = static_cast<real>(beta1_),
      .rest1 = static_cast<real>(1 - beta1_),
      .beta2 = static_cast<real>(beta2_),
      .rest2 = static_cast<real>(1 - beta2_),
      .eps = static_cast<real>(eps_),
      .rate = static_cast<real>(lr() * std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t))),
      .root_of_correction = 1,
      .decay = 0,
      .keep = 1};
  adam_step(rows, gradient, state[0], state[1], c);
}

}}  // namespace sar

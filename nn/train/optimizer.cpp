// SPDX-License-Identifier: MIT
#include <sar/comm/rows/new_directory.hpp>
#include <sar/comm/rows/write_rows.hpp>
#include <sar/core/files/file.hpp>
#include <sar/core/random.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/optimizer_step.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/core/text.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/core/trace/trace.hpp>
#include <sar/nn/train/optimizer.hpp>
#include <sar/nn/train/state_dict.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <utility>

namespace sar { inline namespace SAR_PRECISION {

namespace {

bool covers(const std::string& selected, const std::string& parameter) {
  return parameter == selected || parameter.starts_with(selected + ".");
}

void require_lr(double lr) {
  require<InputError>(lr >= 0 && std::isfinite(lr), "a learning rate of ", lr,
                      ", expected a finite number of 0 or more");
}

void require_adam(double beta1, double beta2, double eps) {
  require_not_negative(eps, "eps");
  require<InputError>(beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1,
                      "the optimizer options beta1 and beta2 are ", beta1, " and ", beta2,
                      ", expected values from 0 to below 1");
}

AdamCoefficients adam_coefficients(double beta1, double beta2, double eps, double rate) {
  return {.beta1 = static_cast<real>(beta1),
          .rest1 = static_cast<real>(1 - beta1),
          .beta2 = static_cast<real>(beta2),
          .rest2 = static_cast<real>(1 - beta2),
          .eps = static_cast<real>(eps),
          .rate = static_cast<real>(rate)};
}

}  // namespace

void Optimizer::set_lr(double lr) {
  require_lr(lr);
  lr_ = lr;
}

Optimizer::Optimizer(std::vector<NamedParameter> parameters, double lr, double weight_decay,
                     const std::vector<std::string>& decay_only,
                     const std::map<std::string, double>& lr_factors, std::vector<std::string> state_names)
    : state_names_(std::move(state_names)), lr_(lr) {
  require_not_negative(lr, "lr");
  require_not_negative(weight_decay, "weight_decay");
  const auto require_parameter = [&](const std::string& selected, const char* what) {
    require<InputError>(
        std::ranges::any_of(parameters, [&](const auto& named) { return covers(selected, named.name); }),
        what, " is asked for '", selected, "', but there is no such parameter");
  };
  for (const std::string& selected : decay_only) require_parameter(selected, "weight decay");
  for (const auto& [selected, factor] : lr_factors) {
    require_parameter(selected, "a factor of the learning rate");
    require<InputError>(factor >= 0 && std::isfinite(factor), "the factor of the learning rate of '",
                        selected, "' is ", factor, ", expected a number of 0 or more");
  }
  const std::vector<NamedParameter> all = parameters;
  for (const NamedParameter& named : without_repetitions(std::move(parameters))) {
    const std::string& name = named.name;
    const Variable& parameter = named.parameter;
    require<InputError>(!parameter.value().read_only(), "the parameter '", name,
                        "' is in memory that was borrowed for reading, expected memory that can be written");
    const auto is_covered = [&](const std::string& selected) {
      return std::ranges::any_of(all, [&](const NamedParameter& each) {
        return each.parameter.gradient() == parameter.gradient() && covers(selected, each.name);
      });
    };
    const bool decays = decay_only.empty() || std::ranges::any_of(decay_only, is_covered);
    Slot slot{.name = name,
              .parameter = parameter,
              .weight_decay = decays ? weight_decay : 0,
              .steps = {},
              .state = {}};
    std::size_t longest = 0;
    for (const auto& [selected, factor] : lr_factors)
      if (selected.size() > longest && is_covered(selected)) {
        longest = selected.size();
        slot.lr_factor = factor;
      }
    for (std::size_t k = 0; k < state_names_.size(); ++k)
      slot.state.push_back(Tensor::zeros(parameter.shape()));
    slots_.push_back(std::move(slot));
  }
}

void Optimizer::step() {
  const TraceScope scope("optimizer", TraceKind::compute);
  for (Slot& slot : slots_) {
    const Tensor gradient = slot.parameter.grad();
    if (!gradient.defined()) continue;
    ++slot.steps.change();
    slot.parameter.value().save();
    for (const Tensor& tensor : slot.state) tensor.save();
    update(slot, gradient);
  }
}

void Optimizer::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.zero_grad();
}

std::vector<NamedBuffer> Optimizer::named_buffers() const {
  std::vector<NamedBuffer> found;
  for (const Slot& slot : slots_)
    for (std::size_t k = 0; k < state_names_.size(); ++k)
      found.push_back({slot.name + "." + state_names_[k], slot.state[k]});
  return found;
}

std::vector<NamedCounter> Optimizer::named_counters() {
  std::vector<NamedCounter> found;
  for (Slot& slot : slots_) found.push_back({slot.name + ".step", &slot.steps});
  return found;
}

SGD::SGD(std::vector<NamedParameter> parameters, const SGDOptions& options)
    : Optimizer(
          std::move(parameters), options.lr, options.weight_decay, options.decay_only, options.lr_factors,
          options.momentum != 0 ? std::vector<std::string>{"momentum_buffer"} : std::vector<std::string>{}),
      momentum_(options.momentum) {
  require_not_negative(options.momentum, "momentum");
}

void SGD::update(Slot& slot, const Tensor& gradient) {
  Tensor buffer = slot.state.empty() ? Tensor() : slot.state[0];
  sgd_step(slot.parameter.value(), gradient, buffer, static_cast<real>(lr_of(slot)),
           static_cast<real>(momentum_), static_cast<real>(slot.weight_decay));
}

Adam::Adam(std::vector<NamedParameter> parameters, const AdamOptions& options)
    : Adam(std::move(parameters), options, Decay::gradient) {}

Adam::Adam(std::vector<NamedParameter> parameters, const AdamOptions& options, Decay decay)
    : Optimizer(std::move(parameters), options.lr, options.weight_decay, options.decay_only,
                options.lr_factors, {"exp_avg", "exp_avg_sq"}),
      beta1_(options.beta1),
      beta2_(options.beta2),
      eps_(options.eps),
      decay_(decay) {
  require_adam(beta1_, beta2_, eps_);
}

void Adam::update(Slot& slot, const Tensor& gradient) {
  const double t = static_cast<double>(slot.steps.get());
  AdamCoefficients c = adam_coefficients(beta1_, beta2_, eps_, lr_of(slot) / (1 - std::pow(beta1_, t)));
  c.root_of_correction = static_cast<real>(std::sqrt(1 - std::pow(beta2_, t)));
  if (decay_ == Decay::gradient)
    c.decay = static_cast<real>(slot.weight_decay);
  else
    c.keep = static_cast<real>(1 - lr_of(slot) * slot.weight_decay);
  adam_step(slot.parameter.value(), gradient, slot.state[0], slot.state[1], c);
}

// clip_grad_norm() reads all gradients once, with sums in double precision, and writes new ones only if
// the norm is too large.

namespace {

/// Replaces each gradient by what change(gradient, out) writes; `out` may alias the gradient.
void change_gradients(const std::vector<Variable>& parameters,
                      FunctionRef<void(const Tensor& gradient, Tensor& out)> change) {
  for (const Variable& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    const Tensor gradient = parameter.grad();
    Tensor out(gradient.shape());
    change(gradient, out);
    parameter.gradient()->replace(std::move(out));
  }
}

}  // namespace

double clip_grad_norm(Module& module, double max_norm) {
  require<InputError>(max_norm >= 0, "clip_grad_norm: max_norm is ", max_norm, ", expected 0 or more");
  const std::vector<Variable> parameters = module.parameters();
  double squares = 0;
  for (const Variable& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (gradient.defined()) squares += sum_squares(gradient);
  }
  const double norm = std::sqrt(squares);
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1) return norm;  // false for NaN, which must spread
  change_gradients(parameters, [&](const Tensor& gradient, Tensor& out) {
    scale_shift(gradient, static_cast<real>(factor), 0, out);
  });
  return norm;
}

void clip_grad_value(Module& module, double clip_value) {
  require<InputError>(clip_value >= 0, "clip_grad_value: clip_value is ", clip_value, ", expected 0 or more");
  const auto limit = static_cast<real>(clip_value);
  change_gradients(module.parameters(),
                   [&](const Tensor& gradient, Tensor& out) { clamp(gradient, -limit, limit, out); });
}

// A step, for each embedding: complete pushes, sum the gradients at the owners of the rows, gather these
// rows and their state, update the copies, and put them back; a barrier makes them visible. Time and
// memory grow with the rows that have a gradient, not with all rows. A failure before the rows are put
// back changes nothing.

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

void SparseOptimizer::set_lr(double lr) {
  require_lr(lr);
  lr_ = lr;
}

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
  require_adam(beta1_, beta2_, eps_);
}

void SparseAdam::describe(CollectiveCall& call) const {
  call.equal("beta1", beta1_).equal("beta2", beta2_).equal("eps", eps_);
}

void SparseAdam::update(std::uint64_t step, Tensor& rows, const Tensor& gradient,
                        std::vector<Tensor>& state) {
  const auto t = static_cast<double>(step);
  const double rate = lr() * std::sqrt(1 - std::pow(beta2_, t)) / (1 - std::pow(beta1_, t));
  adam_step(rows, gradient, state[0], state[1], adam_coefficients(beta1_, beta2_, eps_, rate));
}
}}  // namespace sar

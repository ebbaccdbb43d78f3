// SPDX-License-Identifier: MIT

// A checkpoint is a .safetensors file of the tensors and counters `model.NAME` and `optimizer.NAME`; its
// metadata have the version, epoch, seed, precision, kind of the optimizer and rate, and the program's
// texts under `extra.` and the schedule's under `schedule.`. Rank 0 locks the directory, writes the file
// (or a thread of it writes a copy of the state, with `beside`) under a temporary name, flushes and renames
// it, and only then deletes older ones. To load, rank 0 verifies the checksum of the whole file before it
// reads the values, which it sends to all ranks.
#include <sar/core/error.hpp>
#include <sar/core/text.hpp>
#include <sar/nn/train/checkpoint.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "checkpoint-", suffix = ".safetensors";
constexpr std::string_view format_version = "1";
constexpr std::string_view extra_prefix = "extra.";
constexpr std::string_view schedule_prefix = "schedule.";

std::string file_name(int epoch) {
  std::string digits = std::to_string(epoch);
  digits.insert(0, 8 - std::min<std::size_t>(8, digits.size()), '0');
  return concat(prefix, digits, suffix);
}

std::vector<std::string> entries_of(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> names = names_in(directory, error);
  if (error) throw fs::filesystem_error("", error);
  return names;
}

/// Runs an action on files; what std::filesystem reports becomes an InputError about `path`.
template <class Action>
void on_files(const std::string& path, const Action& action) {
  try {
    action();
  } catch (const fs::filesystem_error& error) {
    throw InputError(concat(path, ": ", error.code().message(), ", expected a directory for checkpoints"));
  }
}

}  // namespace

std::map<int, std::string> checkpoints_in(const std::string& directory) {
  std::map<int, std::string> found;
  on_files(directory, [&] {
    for (const std::string& name : entries_of(directory)) {
      if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
      const auto epoch = to_number<int>(
          std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
      if (epoch && file_name(*epoch) == name) found[*epoch] = (fs::path(directory) / name).string();
    }
  });
  return found;
}

namespace {

void append_state(const std::string& whose, const std::vector<NamedBuffer>& tensors,
                  const std::vector<NamedCounter>& counters, StateDict& state) {
  for (const auto& [name, tensor] : tensors) state.tensors.push_back({whose + name, tensor});
  for (const auto& [name, value] : counters) state.counters.push_back({whose + name, value});
}

/// What a killed run has left.
void remove_unfinished(const std::string& directory) {
  for (const std::string& name : entries_of(directory))
    if (name.starts_with(prefix) && name.find(concat(suffix, ".tmp")) != std::string::npos)
      fs::remove(fs::path(directory) / name);
}

/// Throws InputError when a checkpoint of that epoch cannot be added to a directory.
void require_next(const std::string& directory, int epoch) {
  require<InputError>(epoch >= 0, "the epoch of a checkpoint is ", epoch, ", expected 0 or more");
  const std::map<int, std::string> existing = checkpoints_in(directory);
  const int last = existing.empty() ? 0 : existing.rbegin()->first;
  require<InputError>(last <= epoch, directory, ": there is a checkpoint of epoch ", last,
                      ", expected none after epoch ", epoch, ", which is to be saved");
}

/// The complete checkpoints beside a damaged one: "; complete are ...".
std::string others(const std::string& damaged) {
  std::vector<std::string> complete;
  const std::string directory = fs::path(damaged).parent_path().string();
  on_files(directory, [&] {
    for (const auto& [epoch, path] : checkpoints_in(directory.empty() ? "." : directory)) try {
        std::error_code absent;
        if (fs::equivalent(path, damaged, absent)) continue;
        SafetensorsFile(path).verify_checksum();
        complete.push_back(path);
      } catch (const InputError&) {  // this one is damaged as well
      }
  });
  return complete.empty() ? "; there is no other complete checkpoint" : "; complete are: " + joined(complete);
}

/// What the metadata of a checkpoint say.
struct Description {
  CheckpointInfo info;
  double lr = 0;
  std::map<std::string, std::string> schedule;  ///< "kind", and its state; empty: none
};

Description description_of(const std::map<std::string, std::string>& metadata, const std::string& path,
                           const std::string& optimizer, std::uint64_t seed) {
  const auto text = [&](const std::string& key) -> std::string {
    const auto found = metadata.find(key);
    require<InputError>(found != metadata.end(), path, ": the metadata have no '", key,
                        "', expected a checkpoint");
    return found->second;
  };
  const auto expect = [&](const std::string& key, std::string_view expected) {
    const std::string found = text(key);
    require<InputError>(found == expected, path, ": ", key, " is ", found, ", expected ", expected);
  };
  const auto number = [&]<class Number>(const std::string& key, Number least) {
    const auto found = to_number<Number>(text(key));
    require<InputError>(found && *found >= least && *found <= std::numeric_limits<Number>::max(), path, ": ",
                        key, " is '", text(key), "', expected a number of ", least, " or more");
    return *found;
  };
  expect("checkpoint_version", format_version);
  expect("optimizer", optimizer);
  expect("seed", std::to_string(seed));
  Description description;
  description.info.epoch = number("epoch", 0);
  description.lr = number("lr", 0.0);
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(extra_prefix)) description.info.extra[key.substr(extra_prefix.size())] = value;
    if (key.starts_with(schedule_prefix)) description.schedule[key.substr(schedule_prefix.size())] = value;
  }
  return description;
}

/// Throws InputError, naming the complete checkpoints beside it, if a file is damaged.
void require_complete(const std::string& path) try {
  SafetensorsFile(path).verify_checksum();
} catch (const InputError& error) {
  throw InputError(error.what() + others(path));
}

}  // namespace

Checkpointer::Checkpointer(const Communicator& comm, std::string directory,
                           const CheckpointerOptions& options)
    : comm_(comm), directory_(std::move(directory)), options_(options) {
  comm_.agree([&] {
    writing_ = std::make_shared<std::future<void>>();
    require<InputError>(options_.keep_last >= 1, "the number of checkpoints to keep is ", options_.keep_last,
                        ", expected 1 or more");
    comm_.require_equal(
        CollectiveCall("Checkpointer").equal("keep_last", options_.keep_last).equal("seed", options_.seed));
    if (comm_.rank() != 0) return;
    on_files(directory_, [&] {
      fs::create_directories(directory_);
      try {
        const DirectoryLock lock = lock_directory(directory_, std::chrono::milliseconds(0));
        if (lock.use_count() == 1) remove_unfinished(directory_);  // otherwise this process may write there
      } catch (const InputError&) {  // of a run that goes on; its checkpoints can be read
      }
    });
  });
}

void Checkpointer::lock() const {
  comm_.agree([&] {
    if (comm_.rank() == 0 && !lock_) lock_ = lock_directory(directory_, std::chrono::seconds(1));
  });
}

void Checkpointer::add_state(const std::string& whose, const StateDict& state) {
  append_state(whose, state.tensors, state.counters, added_);
}

StateDict Checkpointer::whole_state(const Module& model, Optimizer& optimizer) const {
  StateDict state;
  append_state("model.", state_dict(model).tensors, model.named_counters(), state);
  append_state("optimizer.", optimizer.named_buffers(), optimizer.named_counters(), state);
  append_state("", added_.tensors, added_.counters, state);
  return state;
}

CheckpointInfo Checkpointer::info(const std::string& path, const Optimizer& optimizer) const {
  return comm_.agree([&] {
    finish();
    if (comm_.rank() == 0) require_complete(path);
    return description_of(load_metadata(comm_, path), path, optimizer.kind(), options_.seed).info;
  });
}

void Checkpointer::write(int epoch, const Module& model, Optimizer& optimizer, const LRScheduler* schedule,
                         const std::map<std::string, std::string>& extra) const {
  comm_.agree([&] {
    const CallScope compared(comm_, CollectiveCall("Checkpointer::save")
                                        .equal("epoch", epoch)
                                        .equal("kind of the optimizer", optimizer.kind())
                                        .equal("lr", optimizer.lr())
                                        .equal("schedule", schedule != nullptr ? schedule->kind() : "none"));
    lock();
    if (comm_.rank() != 0) return;
    finish();
    on_files(directory_, [&] {
      require_next(directory_, epoch);
      std::map<std::string, std::string> metadata{{"checkpoint_version", std::string(format_version)},
                                                  {"epoch", std::to_string(epoch)},
                                                  {"seed", std::to_string(options_.seed)},
                                                  {"precision", sizeof(real) == 8 ? "double" : "single"},
                                                  {"optimizer", optimizer.kind()},
                                                  {"lr", exact_text(optimizer.lr())}};
      for (const auto& [key, value] : extra) metadata[concat(extra_prefix, key)] = value;
      if (schedule != nullptr) {
        metadata[concat(schedule_prefix, "kind")] = schedule->kind();
        for (const auto& [key, value] : schedule->state()) metadata[concat(schedule_prefix, key)] = value;
      }
      const StateDict state = whole_state(model, optimizer);
      const std::string path = (fs::path(directory_) / file_name(epoch)).string();
      std::vector<NamedTensor> tensors;
      for (const auto& [name, tensor] : state.tensors)
        tensors.push_back({name, options_.beside ? tensor.clone() : tensor});
      auto write = [directory = directory_, keep = options_.keep_last, path, metadata,
                    integers = integers_of(path, state.counters), tensors = std::move(tensors)]() mutable {
        const std::vector<NamedTensor> written = std::move(tensors);  // freed when they are
        on_files(directory, [&] {
          write_safetensors(path, written, integers, real_type, metadata);
          // The new one is on the disk: old ones may go.
          std::map<int, std::string> existing = checkpoints_in(directory);
          while (static_cast<int>(existing.size()) > keep) {
            fs::remove(existing.begin()->second);
            existing.erase(existing.begin());
          }
        });
      };
      if (!options_.beside) return write();
      try {
        *writing_ = std::async(std::launch::async, write);
      } catch (const std::system_error&) {  // no thread can be started
        write();
      }
    });
  });
}

void Checkpointer::wait() const {
  comm_.agree([&] { finish(); });
}

void Checkpointer::finish() const {
  if (writing_->valid()) writing_->get();
}

std::string Checkpointer::latest() const {
  return comm_.agree([&] {
    finish();
    std::string path;
    if (comm_.rank() == 0)
      on_files(directory_, [&] {
        const std::map<int, std::string> existing = checkpoints_in(directory_);
        if (!existing.empty()) path = existing.rbegin()->second;
      });
    return comm_.broadcast(path, 0);
  });
}

CheckpointInfo Checkpointer::read(const std::string& path, Module& model, Optimizer& optimizer,
                                  LRScheduler* schedule) const {
  return comm_.agree([&] {
    const CallScope compared(comm_, CollectiveCall("Checkpointer::load")
                                        .equal("kind of the optimizer", optimizer.kind())
                                        .equal("schedule", schedule != nullptr ? schedule->kind() : "none"));
    finish();
    if (comm_.rank() == 0) require_complete(path);
    const auto [info, lr, state] =
        description_of(load_metadata(comm_, path), path, optimizer.kind(), options_.seed);
    const double lr_before = optimizer.lr();
    const auto before = schedule != nullptr ? schedule->state() : state;
    try {
      optimizer.set_lr(lr);  // a schedule of epochs then sets the rate of its options
      if (schedule != nullptr) {
        const std::string kind = state.contains("kind") ? state.at("kind") : "none";
        require<InputError>(kind == schedule->kind(), path, ": the schedule is ", kind, ", expected ",
                            schedule->kind());
        try {
          schedule->load_state(state);
        } catch (const InputError& error) {
          throw InputError(concat(path, ": ", error.what()));
        }
      }
      load_state_dict(comm_, path, whole_state(model, optimizer));  // from here on nothing fails
    } catch (...) {
      if (schedule != nullptr) schedule->load_state(before);
      optimizer.set_lr(lr_before);
      throw;
    }
    return info;
  });
}

}}  // namespace sar

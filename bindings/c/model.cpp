// SPDX-License-Identifier: MIT
#include <sar/bindings/c/array.hpp>
#include <sar/bindings/c/status.hpp>
#include <sar/core/tensor/fingerprint.hpp>
#include <sar/nn/modules/module.hpp>

#include <limits>

using namespace sar;
using namespace sar::c_interface;

namespace {

const NamedParameter& parameter_of(const ModelObject& model, std::int64_t index) {
  const std::int64_t count = std::ssize(model.parameters);
  require<InputError>(0 <= index && index < count, "the parameter ", index, " is asked for, expected ",
                      index_range(count));
  return model.parameters[static_cast<std::size_t>(index)];
}

/// Returns the values of a parameter as sar.h has them: [rows, fields], in the same memory.
Tensor matrix_of(Variable parameter) {
  Tensor& values = parameter.value();
  return values.reshape({values.num_rows(), values.row_size()});
}

/// With the number of operations that have rounded halo rows.
Checkpointer of_whole_state(const Checkpointer& checkpoints, ModelObject& its) {
  Checkpointer all = checkpoints;
  all.add_state("halo.", {{}, {{"operations", &its.rounded_operations}}});
  return all;
}

/// Calls body(checkpointer, model, optimizer, call) of a training.
template <class Body>
int with_training(const char* name, sar_checkpoints checkpoints, sar_model model, sar_optimizer optimizer,
                  const Body& body) {
  return collective_call(name, {{checkpoints, "checkpoints"}, {model, "model"}, {optimizer, "optimizer"}},
                         [&](const Communicator&, CollectiveCall& call) {
                           const auto files = object<CheckpointsObject>(checkpoints, "checkpoints");
                           const auto found = object<ModelObject>(model, "model");
                           const auto its = object<OptimizerObject>(optimizer, "optimizer");
                           require_optimizer_of(*found, *its);
                           body(files->checkpointer, *found, *its->optimizer, call);
                         });
}

template <class Path>
int load_checkpoint(const char* name, sar_checkpoints checkpoints, sar_model model, sar_optimizer optimizer,
                    std::int32_t* epoch, const Path& path_of) {
  return with_training(
      name, checkpoints, model, optimizer,
      [&](const Checkpointer& from, ModelObject& its, Optimizer& steps, CollectiveCall& call) {
        require_pointer(epoch, "epoch");
        call.equal("description of the model", its.description);
        const std::string path = path_of(from, call);
        *epoch = path.empty() ? -1 : of_whole_state(from, its).load(path, its.network, steps).epoch;
        if (!path.empty()) its.set_parameters.clear();
      });
}

}  // namespace

int sar_model_create(sar_comm comm, const char* description, uint64_t seed, sar_model* model) {
  return make_object(
      "sar_model_create", {{comm, "comm"}}, model, [&](const Communicator& c, CollectiveCall& call) {
        object<CommObject>(comm, "comm");
        const ModelDescription wanted = ModelDescription::from_json(text_of(description, "description"));
        call.equal(wanted).equal("seed", seed);
        Generator gen(seed);
        return std::make_shared<ModelObject>(c, std::make_unique<GraphModel>(wanted, c, gen));
      });
}

int sar_model_load(sar_comm comm, const char* path, sar_model* model) {
  return make_from_path("sar_model_load", comm, path, model,
                        [](const Communicator& c, const std::string& from) {
                          return std::make_shared<ModelObject>(c, load_model(c, from));
                        });
}

int sar_model_save(sar_model model, const char* path) {
  return collective_call("sar_model_save", {{model, "model"}},
                         [&](const Communicator& c, CollectiveCall& call) {
                           const auto found = object<ModelObject>(model, "model");
                           const std::string to = text_of(path, "path");
                           call.equal(*found).equal("path", to);
                           save_model(c, to, *found->model);
                         });
}

int sar_model_description(sar_model model, const char** description) {
  return give(description, "description",
              [&] { return object<ModelObject>(model, "model")->description.c_str(); });
}

int sar_model_feats(sar_model model, int64_t* in_feats, int64_t* out_feats, int64_t* edge_feats) {
  return call([&] {
    require_pointer(in_feats, "in_feats");
    require_pointer(out_feats, "out_feats");
    require_pointer(edge_feats, "edge_feats");
    const ModelDescription& description = object<ModelObject>(model, "model")->plan;
    *in_feats = description.in_feats;
    *out_feats = description.out_feats;
    *edge_feats = description.edge_feats;
  });
}

int sar_model_num_parameters(sar_model model, int64_t* count) {
  return give(count, "count", [&] { return object<ModelObject>(model, "model")->parameters.size(); });
}

int sar_model_parameter(sar_model model, int64_t index, const char** name, int64_t* rows, int64_t* fields) {
  return call([&] {
    const std::shared_ptr<ModelObject> found = object<ModelObject>(model, "model");
    const NamedParameter& parameter = parameter_of(*found, index);
    const Tensor values = matrix_of(parameter.parameter);
    if (name != nullptr) *name = parameter.name.c_str();
    if (rows != nullptr) *rows = values.num_rows();
    if (fields != nullptr) *fields = values.row_size();
  });
}

int sar_model_get_parameter(sar_model model, int64_t index, sar_array* values) {
  return call([&] {
    const std::shared_ptr<ModelObject> found = object<ModelObject>(model, "model");
    const Tensor own = matrix_of(parameter_of(*found, index).parameter);
    check_array(values, {"values", own.num_rows(), own.row_size()});
    write_array(own, *values);
  });
}

int sar_model_set_parameter(sar_model model, int64_t index, const sar_array* values) {
  return call([&] {
    const std::shared_ptr<ModelObject> found = object<ModelObject>(model, "model");
    Tensor own = matrix_of(parameter_of(*found, index).parameter);
    const Tensor given = read_array(values, {"values", own.num_rows(), own.row_size()});
    std::uint64_t& set = found->set_parameters[index];
    own.copy_from(given);
    set = fingerprint(own);
  });
}

int sar_model_update_statistics(sar_model model, const sar_array* x, const sar_array* edges,
                                const sar_array* target) {
  std::shared_ptr<ModelObject> found;
  const auto update = [&](const Communicator&, CollectiveCall& call) {
    found = object<ModelObject>(model, "model");
    const ModelDescription& description = found->plan;
    MeshGraphNet* mesh = found->model == nullptr ? nullptr : found->model->mesh_graph_net();
    require<InputError>(mesh != nullptr && description.normalize,
                        "statistics of a model without \"normalize\": true, expected a description with it");
    call.equal(*found);
    mesh->update_statistics(read_array(x, {"x", -1, description.in_feats}),
                            read_array(edges, {"edges", -1, description.edge_feats}),
                            read_array(target, {"target", -1, description.out_feats}));
  };
  return after_comparison(collective_call("sar_model_update_statistics", {{model, "model"}}, update), found);
}

int sar_model_free(sar_model model) {
  return free_object<ModelObject>(model, "model");
}

int sar_optimizer_create(sar_model model, const char* description, sar_optimizer* optimizer) {
  return make_object("sar_optimizer_create", {{model, "model"}}, optimizer,
                     [&](const Communicator&, CollectiveCall& call) {
                       const std::shared_ptr<ModelObject> found = object<ModelObject>(model, "model");
                       call.equal("description of the model", found->description);
                       return make_optimizer(text_of(description, "description"), found, call);
                     });
}

int sar_optimizer_get_lr(sar_optimizer optimizer, double* lr) {
  return give(lr, "lr", [&] { return object<OptimizerObject>(optimizer, "optimizer")->optimizer->lr(); });
}

int sar_optimizer_set_lr(sar_optimizer optimizer, double lr) {
  return call([&] {
    const std::shared_ptr<OptimizerObject> found = object<OptimizerObject>(optimizer, "optimizer");
    require<InputError>(lr >= 0 && lr <= std::numeric_limits<double>::max(), "the learning rate is ", lr,
                        ", expected a number from 0 on");
    found->optimizer->set_lr(lr);
  });
}

int sar_optimizer_free(sar_optimizer optimizer) {
  return free_object<OptimizerObject>(optimizer, "optimizer");
}

int sar_checkpoints_create(sar_comm comm, const char* directory, int32_t keep_last, uint64_t seed,
                           sar_checkpoints* checkpoints) {
  return make_object("sar_checkpoints_create", {{comm, "comm"}}, checkpoints,
                     [&](const Communicator& c, CollectiveCall& call) {
                       object<CommObject>(comm, "comm");
                       const std::string folder = text_of(directory, "directory");
                       call.equal("directory", folder);
                       return std::make_shared<CheckpointsObject>(
                           c, folder, CheckpointerOptions{.keep_last = keep_last, .seed = seed});
                     });
}

int sar_checkpoints_save(sar_checkpoints checkpoints, int32_t epoch, sar_model model,
                         sar_optimizer optimizer) {
  return with_training("sar_checkpoints_save", checkpoints, model, optimizer,
                       [&](const Checkpointer& to, ModelObject& its, Optimizer& steps, CollectiveCall& call) {
                         require<InputError>(epoch >= 0, "the epoch is ", epoch, ", expected 0 or more");
                         call.equal(its);
                         to.lock();
                         of_whole_state(to, its).save(epoch, its.network, steps);
                       });
}

int sar_checkpoints_load_latest(sar_checkpoints checkpoints, sar_model model, sar_optimizer optimizer,
                                int32_t* epoch) {
  return load_checkpoint("sar_checkpoints_load_latest", checkpoints, model, optimizer, epoch,
                         [](const Checkpointer& from, CollectiveCall&) { return from.latest(); });
}

int sar_checkpoints_load(sar_checkpoints checkpoints, const char* path, sar_model model,
                         sar_optimizer optimizer, int32_t* epoch) {
  return load_checkpoint("sar_checkpoints_load", checkpoints, model, optimizer, epoch,
                         [&](const Checkpointer&, CollectiveCall& call) {
                           const std::string given = text_of(path, "path");
                           require<InputError>(!given.empty(), "the text 'path' is empty");
                           call.equal("path", given);
                           return given;
                         });
}

int sar_checkpoints_free(sar_checkpoints checkpoints) {
  return free_object<CheckpointsObject>(checkpoints, "checkpoints");
}

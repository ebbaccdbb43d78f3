// SPDX-License-Identifier: MIT
#include "support/golden_graph.hpp"

#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>
#include <sar/nn/conv/sage_conv.hpp>
#include <sar/nn/modules/module.hpp>
#include <sar/nn/modules/norms.hpp>
#include <sar/nn/train/distributed.hpp>
#include <sar/nn/train/loss.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace sar;
using namespace sar::test;

namespace {

struct Sage : Module {
  ModuleList<SAGEConv> convs;
  ModuleList<DistributedBN1D> bns;
  Dropout dropout;

  Sage(Index in_feats, Index hidden, Index classes, int layers, const Communicator& comm, Generator& gen)
      : dropout(0, gen) {
    register_module("convs", convs);
    register_module("bns", bns);
    register_module("dropout", dropout);
    for (int l = 0; l < layers; ++l) {
      const bool last = l == layers - 1;
      convs.emplace_back(l == 0 ? in_feats : hidden, last ? classes : hidden, gen);
      if (!last) bns.emplace_back(hidden, comm);
    }
  }

  Variable operator()(const Graph& graph, Variable h, std::vector<Tensor>* conv_outputs = nullptr) {
    for (std::size_t l = 0; l < convs.size(); ++l) {
      h = convs[l](graph, h);
      if (conv_outputs != nullptr) conv_outputs->push_back(h.value().clone());
      if (l + 1 < convs.size()) h = batch_norm_relu_dropout(std::move(h), bns[l], dropout, graph.dst_ids());
    }
    return h;
  }
};

template <class T>
std::vector<T> part_of(const std::vector<T>& whole, std::span<const Index> ids) {
  std::vector<T> mine;
  for (const Index id : ids) mine.push_back(whole[static_cast<std::size_t>(id)]);
  return mine;
}

}  // namespace

TEST_CASE("three SAGE layers with batch norm: golden vectors in the three modes") {
  const Communicator world = Communicator::world();
  const Case golden("model/three_layer_sage_bn");
  for (const HaloMode mode : {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot}) {
    CAPTURE(static_cast<int>(mode));
    const GoldenGraph part = golden_graph(world, golden, {.mode = mode});
    Generator gen(1);
    Sage model(static_cast<Index>(golden.number("in_feats")), static_cast<Index>(golden.number("hidden")),
               static_cast<Index>(golden.number("num_classes")), 3, world, gen);
    for (const auto& named : model.named_parameters())
      model.set_parameter(named.name, golden.tensor("param." + named.name));
    for (const auto& named : model.named_buffers())
      model.set_buffer(named.name, golden.tensor("buffer." + named.name));
    const auto check = [&](const Tensor& mine, const std::string& file) {
      CAPTURE(file);
      const Tensor whole = golden.tensor(file);
      CHECK(error_of_part(mine, part.dst_rows(whole), whole) < tolerance());
    };

    Variable feat(part.src_rows(golden.tensor("in.feat")), true);
    const auto labels = part_of(golden.indices("labels"), part.my_dst);
    const auto mask = part_of(golden.mask("mask"), part.my_dst);
    std::vector<Tensor> conv_outputs;
    Tape tape;
    const Variable logits = model(part.graph, feat, &conv_outputs);
    check(conv_outputs[0], "out.convs.0");
    check(conv_outputs[1], "out.convs.1");
    check(logits.value(), "out.logits");
    const Variable loss = cross_entropy(logits, labels, mask, world);
    CHECK(relative_error(loss.value(), golden.values("out.loss")) < tolerance());
    tape.backward(loss);
    gather_grads(world, model);
    check(feat.grad(), "grad_in.feat");

    // A bias in front of batch norm has gradient zero but for rounding: the scale is that of its neighbors'
    // gradients.
    double scale = 0;
    for (const auto& named : model.named_parameters())
      for (const double value : golden.values("grad_param." + named.name))
        scale = std::max(scale, std::abs(value));
    for (const auto& named : model.named_parameters()) {
      CAPTURE(named.name);
      const auto expected = golden.values("grad_param." + named.name);
      if (named.name == "convs.0.fc_self.bias" || named.name == "convs.1.fc_self.bias") {
        for (const real value : named.parameter.grad().values()) CHECK(std::abs(value) < tolerance() * scale);
      } else {
        CHECK(relative_error(named.parameter.grad(), expected) < tolerance());
      }
    }
    for (const auto& named : model.named_buffers())
      CHECK(relative_error(named.tensor, golden.values("out." + named.name)) < tolerance());

    model.eval();
    check(model(part.graph, feat.detach()).value(), "out.logits_eval");
  }
}

TEST_CASE(
    "between forward and backward, a hidden layer keeps one tensor, the input of its batch norm, from which "
    "its "
    "result is computed again") {
  const ThreadLimit one(1);  // each thread packs the operands of a product
  const Communicator world = Communicator::world();
  const Case golden("model/three_layer_sage_bn");
  const GoldenGraph part = golden_graph(world, golden, {});
  const Index in = golden.tensor("in.feat").row_size(), hidden = in + 20, classes = 7;
  Generator gen(1);
  Sage model(in, hidden, classes, 3, world, gen);
  const Tensor feat = part.src_rows(golden.tensor("in.feat"));
  const std::size_t row_bytes = feat.bytes() / in;  // of one column
  const std::size_t before = live_bytes();
  reset_peak_bytes();
  Tape tape;
  Variable logits = model(part.graph, feat);
  // two hidden layers; the first layer's aggregate, narrower than its output; the logits
  const std::size_t kept = row_bytes * (2 * hidden + in + classes);
  CHECK(live_bytes() - before <= kept + row_bytes);
  CHECK(live_bytes() - before >= kept);
  // in the backward pass, two more at a time: the gradients before and after the product
  Tensor seed = Tensor::full(logits.shape(), 1);
  reset_peak_bytes();
  tape.backward(logits, std::move(seed));
  std::size_t parameters = 0;
  for (const auto& named : model.named_parameters()) parameters += named.parameter.value().bytes();
  const std::size_t halo =
      2 * static_cast<std::size_t>(part.graph.num_global_nodes() * hidden) * sizeof(real);
  const std::size_t packed = row_bytes * hidden + static_cast<std::size_t>(hidden * hidden) * sizeof(real);
  CHECK(peak_bytes() - before <=
        kept + row_bytes * (2 * hidden + classes) + parameters + packed + (world.size() > 1 ? halo : 0));
}

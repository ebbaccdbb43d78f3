// SPDX-License-Identifier: MIT
#include <sar/autograd/tape.hpp>
#include <sar/comm/recorded_pass.hpp>
#include <sar/core/error.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/nn/models/predictor.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace sar { inline namespace SAR_PRECISION {
namespace {

/// While alive, a module and all below it are in evaluation mode.
class EvaluationMode : NonCopyable {
 public:
  /// `modes`: memory for those of now.
  EvaluationMode(Module& module, std::vector<bool>& modes) : module_(module), were_training_(modes) {
    were_training_.clear();
    module_.for_each_module([&](Module& part) { were_training_.push_back(part.is_training()); });
    module_.eval();
  }
  ~EvaluationMode() {
    auto was_training = were_training_.begin();
    module_.for_each_module([&](Module& part) { part.train(*was_training++); });  // those below come next
  }

 private:
  Module& module_;
  std::vector<bool>& were_training_;
};

bool overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& x) { return reinterpret_cast<std::uintptr_t>(x.data()); };
  return begin(a) < begin(b) + b.bytes() && begin(b) < begin(a) + a.bytes();
}

void require_shape(const Tensor& tensor, const Shape& expected, const char* what) {
  require<ShapeError>(tensor.defined(), "a prediction without ", what, ", expected one of shape ", expected);
  require<ShapeError>(tensor.shape() == expected, "a prediction with ", what, " of shape ", tensor.shape(),
                      ", expected ", expected);
}

}  // namespace

struct Predictor::Impl {
  void check(const Tensor& x, const Tensor& edges, const Tensor& out) const {
    require_shape(x, {graph.num_src_nodes(), widths.in_feats}, "x");
    require<ShapeError>(widths.edge_feats > 0 || !edges.defined(),
                        "a prediction with rows of edges of shape ", edges.shape(),
                        ", expected none, because the network reads none");
    if (widths.edge_feats > 0) require_shape(edges, {graph.num_edges(), widths.edge_feats}, "rows of edges");
    require_shape(out, {graph.num_dst_nodes(), widths.out_feats}, "an array for the result");
    out.require_writable();
  }

  /// `repeats`: the call makes the same requests for memory as the next ones will, if no loop makes them.
  void run(const Tensor& x, const Tensor& edges, Tensor& out, bool repeats) {
    if (overlap(out, x) || overlap(out, edges))
      workspace.start_pass();
    else
      workspace.start_pass(result_request, out.bytes(), out.data());
    {
      const Variable result = network(graph, x, edges);
      require<ShapeError>(result.defined() && result.shape() == out.shape(),
                          "a prediction of a network whose result has shape ", result.shape(), ", expected ",
                          out.shape());
      const Tensor& y = result.value();
      if (y.data() != out.data()) {
        out.copy_from(y);
        result_request = repeats ? workspace.request_of(y.data()) : Workspace::no_request;
      }
    }
    require(!workspace.holds_lent(), "a network keeps its result beyond a prediction");
  }

  Module& module;
  Network network;
  Widths widths;
  Graph graph;
  Workspace workspace;
  std::size_t result_request = Workspace::no_request;  // the request of a pass whose block is the result
  std::size_t taken_anew = 0;
  std::vector<bool> modes;  // training or not, of the parts of the module
  RecordedPass pass{graph.comm()};
};

Predictor::Predictor(GraphModel& model, const Graph& graph)
    : Predictor(
          model,
          [&model](const Graph& on, const Variable& x, const Variable& edges) { return model(on, x, edges); },
          {.in_feats = model.description().in_feats,
           .out_feats = model.description().out_feats,
           .edge_feats = model.description().edge_feats},
          graph) {}

Predictor::Predictor(Module& module, Network network, const Widths& widths, const Graph& graph)
    : impl_(graph.comm().agree(
          [&] {
            require<InputError>(static_cast<bool>(network),
                                "a predictor of an empty function, expected a network");
            require<InputError>(widths.in_feats > 0 && widths.out_feats > 0 && widths.edge_feats >= 0,
                                "a predictor of widths ", widths.in_feats, ", ", widths.edge_feats, " and ",
                                widths.out_feats,
                                " of x, of rows of edges and of the result, expected positive "
                                "ones, or 0 of rows of edges");
            auto made = std::make_unique<Impl>(module, std::move(network), widths, graph);
            std::size_t parts = 0;
            module.for_each_module([&](Module&) { ++parts; });
            made->modes.reserve(parts);  // before the calls, which allocate nothing
            return made;
          },
          "Predictor")) {}

Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

void Predictor::operator()(const Tensor& x, const Tensor& edges, Tensor& out) {
  Impl& p = *impl_;
  const NoTape no_tape;
  const EvaluationMode evaluation(p.module, p.modes);
  const Workspace::Use memory(p.workspace);
  const std::size_t before = p.workspace.taken_anew();
  p.pass.run(
      [&](bool repeats) {
        p.check(x, edges, out);
        p.run(x, edges, out, repeats);
      },
      "Predictor");
  p.taken_anew = p.workspace.taken_anew() - before;
}

std::size_t Predictor::allocations() const noexcept {
  return impl_->taken_anew;
}

}}  // namespace sar

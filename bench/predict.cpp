// SPDX-License-Identifier: MIT

/// What a prediction costs beside its arithmetic: microseconds and allocations per call.
///
///     mpirun -n 2 bench_predict [nodes width calls threads]      default 1000 64 300 1: nodes of each rank
///
/// Nodes form a strip 32 wide, with edges to the 8 neighbors. Networks: two layers of SAGE, and a
/// MeshGraphNet of two blocks. For each, rank 0 prints a JSON object with the microseconds of the fastest
/// call, the slowest rank counting,
///
///     arithmetic    the same products and gathers on arrays that are there, called one after the other
///     with_rows     the same, with one MPI_Isend and MPI_Irecv of the rows of each neighbor before a gather
///     forward       the network without a tape
///     predictor     Predictor
///     latency       a message of 40 bytes to another rank, half a ping-pong (0 on one rank)
///     all_reduce    MPI_Allreduce of 40 bytes, of which a prediction makes two
///     extra         (predictor - with_rows) / latency
///
/// and per call of the Predictor: news, calls of operator new on any thread; mallocs, other calls of malloc,
/// which are MPI's; taken, blocks that its workspace takes anew; account, the bytes by which the library's
/// account has grown over all calls; peak, the same of its peak.
///
/// Measured on two cores of an AMD EPYC, one thread a rank, width 64: on one rank of 1,000 nodes 1.00 times
/// the arithmetic for SAGE, 1.11 times for the MeshGraphNet; of 100,000 nodes 0.98 to 1.02 times forward, and
/// the same on two ranks of 50,000. On two ranks of 1,000 nodes, SAGE takes 9 to 13 us more than with_rows
/// in shared memory, and 38 us over TCP between two emulated hosts, 5 latencies: two all_reduce of 12 us, and
/// the work of two exchanges. news, taken and account are 0, mallocs 2 on two ranks: one in each
/// MPI_Allreduce.
#include "bench.hpp"

#include <sar/autograd/tape.hpp>
#include <sar/comm/environment.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/products/matmul.hpp>
#include <sar/core/rows/elementwise.hpp>
#include <sar/core/rows/layer_norm.hpp>
#include <sar/core/rows/rows.hpp>
#include <sar/graph/kernels/gather_sum.hpp>
#include <sar/nn/models/mesh_graph_net.hpp>
#include <sar/nn/models/predictor.hpp>

#include <mpi.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

std::atomic<long> news{0}, mallocs{0};

}  // namespace

#if defined(__GLIBC__)
extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void* malloc(std::size_t bytes) {
  mallocs.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
#endif
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  news.fetch_add(1, std::memory_order_relaxed);
  void* const block = std::malloc(bytes > 0 ? bytes : 1);
  mallocs.fetch_sub(1, std::memory_order_relaxed);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  news.fetch_add(1, std::memory_order_relaxed);
  mallocs.fetch_sub(1, std::memory_order_relaxed);
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}

namespace sar::bench {
namespace {

constexpr Index strip = 32;
constexpr Index reach = strip + 1;  // of the farthest neighbor
constexpr Index edge_feats = 3;
constexpr int blocks = 2;

/// The in-edges of this rank's nodes, by destination and source.
EdgeList strip_edges(const PartitionBook& book, int rank) {
  EdgeList edges;
  const Index all = book.num_nodes();
  for (Index v = book.begin(rank); v < book.end(rank); ++v)
    for (const Index step : {-reach, -strip, 1 - strip, Index{-1}, Index{1}, strip - 1, strip, reach}) {
      const Index u = v + step;
      if (u < 0 || u >= all) continue;
      edges.src.push_back(u);
      edges.dst.push_back(v);
      edges.id.push_back(8 * v + std::ssize(edges.id) % 8);
    }
  for (Index e = 0; e < edges.size(); ++e) edges.id[e] = 8 * book.begin(rank) + e;
  return edges;
}

/// The arrays of a program that does the arithmetic of a network and no more. Rows of the rank before come
/// first, then its own, then those of the rank behind.
class Plain {
 public:
  Plain(const Communicator& comm, const PartitionBook& book, const EdgeList& edges)
      : comm_(comm),
        n_(book.num_nodes(comm.rank())),
        before_(comm.rank() > 0 ? reach : 0),
        after_(comm.rank() + 1 < comm.size() ? reach : 0),
        num_edges_(edges.size()) {
    const Index first = book.begin(comm.rank());
    begin_.push_back(0);
    for (Index e = 0; e < num_edges_; ++e) {
      while (std::ssize(begin_) <= edges.dst[e] - first) begin_.push_back(static_cast<local_index>(e));
      src_.push_back(static_cast<local_index>(edges.src[e] - first + before_));
      src_rows_.push_back(src_.back());
      dst_rows_.push_back(edges.dst[e] - first);
      edge_.push_back(static_cast<local_index>(e));
    }
    while (std::ssize(begin_) <= n_) begin_.push_back(static_cast<local_index>(num_edges_));
    for (Index v = 0; v < n_; ++v)
      inverse_degree_.push_back(real{1} / static_cast<real>(std::max(begin_[v + 1] - begin_[v], 1)));
  }

  [[nodiscard]] Index num_nodes() const { return n_; }
  [[nodiscard]] Index num_edges() const { return num_edges_; }
  /// Rows with those of neighbors around.
  [[nodiscard]] Tensor with_halo(Index width) const {
    return Tensor::full({before_ + n_ + after_, width}, 1);
  }
  [[nodiscard]] Tensor own(const Tensor& rows) const { return rows.slice_rows(before_, before_ + n_); }

  void exchange(Tensor& rows) const {
    MPI_Request requests[4];
    int count = 0;
    const int bytes = static_cast<int>(reach * rows.row_size()) * static_cast<int>(sizeof(real));
    const int rank = comm_.rank();
    if (before_ > 0) {
      MPI_Irecv(rows.row(0), bytes, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, &requests[count++]);
      MPI_Isend(rows.row(before_), bytes, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, &requests[count++]);
    }
    if (after_ > 0) {
      MPI_Irecv(rows.row(before_ + n_), bytes, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD, &requests[count++]);
      MPI_Isend(rows.row(before_ + n_ - after_), bytes, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD,
                &requests[count++]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  }

  void mean(const Tensor& rows, Tensor& out) const {
    gather_sum(
        {.edges = {.num_rows = n_, .begin = begin_.data(), .end = begin_.data() + 1, .other = src_.data()},
         .row_scale = inverse_degree_.data(),
         .x = rows.data(),
         .x_rows = rows.num_rows(),
         .out = out.data(),
         .width = out.row_size()});
  }
  void sum_of_edges(const Tensor& rows, Tensor& out) const {
    gather_sum(
        {.edges = {.num_rows = n_, .begin = begin_.data(), .end = begin_.data() + 1, .other = edge_.data()},
         .x = rows.data(),
         .x_rows = rows.num_rows(),
         .out = out.data(),
         .width = out.row_size()});
  }
  void gather_ends(const Tensor& from, const Tensor& to, Tensor& out) const {
    gather_rows(from, src_rows_, out);
    gather_rows(to, dst_rows_, out, true);
  }

 private:
  Communicator comm_;
  Index n_, before_, after_, num_edges_;
  std::vector<local_index> begin_, src_, edge_;
  std::vector<Index> src_rows_, dst_rows_;
  std::vector<real> inverse_degree_;
};

Tensor parameter(const Module& module, const std::string& name) {
  for (const NamedParameter& p : module.named_parameters())
    if (p.name == name) return p.parameter.value();
  throw InputError("no parameter " + name);
}

/// Two layers of SAGE.
class PlainSage {
 public:
  PlainSage(const Plain& plain, const GraphModel& model, Index width)
      : plain_(plain),
        x_(plain.with_halo(width)),
        h_(plain.with_halo(width)),
        sums_({plain.num_nodes(), width}) {
    for (const std::string layer : {"convs.0.", "convs.1."})
      layers_.push_back({parameter(model, layer + "fc_self.weight"), parameter(model, layer + "fc_self.bias"),
                         parameter(model, layer + "fc_neigh.weight")});
  }
  void operator()(const Tensor& x, Tensor& out, bool exchanges) {
    Tensor own_x = plain_.own(x_), own_h = plain_.own(h_);
    own_x.copy_from(x);
    run(layers_[0], x_, own_x, own_h, exchanges);
    unary(Unary::relu, own_h, own_h);
    run(layers_[1], h_, own_h, out, exchanges);
  }

 private:
  struct Layer {
    Tensor self, bias, neigh;
  };
  void run(const Layer& layer, Tensor& rows, const Tensor& own, Tensor& out, bool exchanges) {
    if (exchanges) plain_.exchange(rows);
    plain_.mean(rows, sums_);
    matmul_nt(own, layer.self, out, {.bias = layer.bias});
    matmul_nt(sums_, layer.neigh, out, {.accumulate = true});
  }
  const Plain& plain_;
  Tensor x_, h_, sums_;
  std::vector<Layer> layers_;
};

/// A MeshGraphNet with two hidden layers in each network.
class PlainMesh {
 public:
  PlainMesh(const Plain& plain, const MeshGraphNet& model, Index width)
      : plain_(plain),
        h_({plain.num_nodes(), width}),
        from_(plain.with_halo(width)),
        to_(h_.shape()),
        a_(h_.shape()),
        b_(h_.shape()),
        e_({plain.num_edges(), width}),
        c_(e_.shape()),
        d_(e_.shape()),
        node_encoder_(model, "node_encoder"),
        edge_encoder_(model, "edge_encoder"),
        decoder_(model, "decoder") {
    for (int i = 0; i < blocks; ++i) {
      const std::string name = "processor." + std::to_string(i);
      blocks_.emplace_back(model, name, width);
    }
  }
  void operator()(const Tensor& x, const Tensor& edges, Tensor& out, bool exchanges) {
    matmul_nt(x, node_encoder_.weight[0], a_, {.bias = node_encoder_.bias[0]});
    node_encoder_.rest(a_, b_, h_);
    matmul_nt(edges, edge_encoder_.weight[0], c_, {.bias = edge_encoder_.bias[0]});
    edge_encoder_.rest(c_, d_, e_);
    for (const Block& block : blocks_) {
      Tensor own = plain_.own(from_);
      matmul_nt(h_, block.from, own);
      matmul_nt(h_, block.to, to_, {.bias = block.edge.bias[0]});
      if (exchanges) plain_.exchange(from_);
      plain_.gather_ends(from_, to_, c_);
      matmul_nt(e_, block.of_edge, c_, {.accumulate = true});
      block.edge.rest(c_, d_, d_);
      binary(BinaryOp::add, e_, d_, e_);
      plain_.sum_of_edges(e_, to_);
      matmul_nt(h_, block.of_node, a_, {.bias = block.node.bias[0]});
      matmul_nt(to_, block.of_sum, a_, {.accumulate = true});
      block.node.rest(a_, b_, b_);
      binary(BinaryOp::add, h_, b_, h_);
    }
    matmul_nt(h_, decoder_.weight[0], a_, {.bias = decoder_.bias[0]});
    decoder_.rest(a_, b_, out);
  }

 private:
  struct Network {
    Network(const Module& model, const std::string& name) {
      for (const char* layer : {".0", ".2", ".4"}) {
        weight.push_back(parameter(model, name + layer + ".weight"));
        bias.push_back(parameter(model, name + layer + ".bias"));
      }
      if (name == "decoder") return;
      norm_weight = parameter(model, name + ".5.weight");
      norm_bias = parameter(model, name + ".5.bias");
    }
    /// What follows the first product, which is in `a`; `b` for the hidden rows. `out` may be b.
    void rest(Tensor& a, Tensor& b, Tensor& out) const {
      unary(Unary::relu, a, a);
      matmul_nt(a, weight[1], b, {.bias = bias[1]});
      unary(Unary::relu, b, b);
      Tensor& last = norm_weight.defined() ? a : out;
      matmul_nt(b, weight[2], last, {.bias = bias[2]});
      if (norm_weight.defined()) layer_norm(a, norm_weight, norm_bias, 1e-5, out);
    }
    std::vector<Tensor> weight, bias;
    Tensor norm_weight, norm_bias;
  };
  struct Block {
    Block(const Module& model, const std::string& name, Index width)
        : edge(model, name + ".edge_mlp"), node(model, name + ".node_mlp") {
      const auto columns = [width](const Tensor& weight, Index i) {
        Tensor part({width, width});
        copy_columns(weight, i * width, part, 0, width);
        return part;
      };
      of_edge = columns(edge.weight[0], 0);
      from = columns(edge.weight[0], 1);
      to = columns(edge.weight[0], 2);
      of_node = columns(node.weight[0], 0);
      of_sum = columns(node.weight[0], 1);
    }
    Network edge, node;
    Tensor of_edge, from, to, of_node, of_sum;
  };
  const Plain& plain_;
  Tensor h_, from_, to_, a_, b_, e_, c_, d_;
  Network node_encoder_, edge_encoder_, decoder_;
  std::vector<Block> blocks_;
};

/// Half of a ping-pong of 40 bytes between ranks 0 and 1.
double latency(const Communicator& comm) {
  if (comm.size() == 1) return 0;
  constexpr int rounds = 200;
  char bytes[40] = {};
  double best = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < 20; ++repetition) {
    comm.barrier();
    const double seconds = seconds_of([&] {
      for (int i = 0; i < rounds && comm.rank() < 2; ++i)
        for (const int sender : {0, 1}) {
          if (comm.rank() == sender)
            MPI_Send(bytes, sizeof bytes, MPI_CHAR, 1 - sender, 1, MPI_COMM_WORLD);
          else
            MPI_Recv(bytes, sizeof bytes, MPI_CHAR, sender, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    });
    best = std::min(best, seconds / (2 * rounds));
  }
  return comm.all_reduce(comm.rank() == 0 ? best : 0.0, ReduceOp::max);
}

/// An MPI_Allreduce of 40 bytes, as a synchronization of the library has it.
double meeting(const Communicator& comm) {
  if (comm.size() == 1) return 0;
  constexpr int rounds = 200;
  std::array<std::int64_t, 5> values{};
  double best = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < 20; ++repetition) {
    comm.barrier();
    const double seconds = seconds_of([&] {
      for (int i = 0; i < rounds; ++i)
        MPI_Allreduce(MPI_IN_PLACE, values.data(), 5, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
    });
    best = std::min(best, seconds / rounds);
  }
  return comm.all_reduce(best, ReduceOp::max);
}

struct Runs {
  std::string name;
  FunctionRef<void(bool exchanges)> arithmetic;
  FunctionRef<void()> forward;
  FunctionRef<void()> predict;
  Predictor& predictor;
  const Tensor& of_arithmetic;
  const Tensor& of_predictor;
};

/// The largest difference of two tensors, to the largest element.
double difference(const Tensor& a, const Tensor& b) {
  double most = 0, largest = 0;
  for (Index i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a.data()[i]) - b.data()[i]));
    largest = std::max(largest, std::abs(static_cast<double>(a.data()[i])));
  }
  return largest > 0 ? most / largest : most;
}

void measure(const Communicator& comm, const Runs& runs, int calls, Index nodes, Index width) {
  std::array<double, 4> best;
  best.fill(std::numeric_limits<double>::infinity());
  const auto time = [&](std::size_t which, auto&& work) {
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = seconds_of(work);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    best[which] = std::min(best[which], seconds);
  };
  for (int i = 0; i < 5; ++i) runs.arithmetic(true), runs.forward(), runs.predict();
  const double error = difference(runs.of_arithmetic, runs.of_predictor);
  for (int i = 0; i < calls; ++i) {
    time(0, [&] { runs.arithmetic(false); });
    time(1, [&] { runs.arithmetic(true); });
    time(2, runs.forward);
    time(3, runs.predict);
  }
  const std::size_t live = live_bytes();
  reset_peak_bytes();
  const long news_before = news, mallocs_before = mallocs;
  for (int i = 0; i < calls; ++i) runs.predict();
  const double news_of_call = static_cast<double>(news - news_before) / calls;
  const double mallocs_of_call = static_cast<double>(mallocs - mallocs_before) / calls;
  const long account = static_cast<long>(live_bytes()) - static_cast<long>(live);
  const long peak = static_cast<long>(peak_bytes()) - static_cast<long>(live);
  const double one_way = latency(comm), all_reduce = meeting(comm);
  if (comm.rank() > 0) return;
  const auto us = [](double seconds) { return std::round(seconds * 1e8) / 100; };
  std::cout << "{\"network\":\"" << runs.name << "\",\"ranks\":" << comm.size()
            << ",\"threads\":" << num_threads() << ",\"nodes\":" << nodes << ",\"width\":" << width
            << ",\"arithmetic\":" << us(best[0]) << ",\"with_rows\":" << us(best[1])
            << ",\"forward\":" << us(best[2]) << ",\"predictor\":" << us(best[3])
            << ",\"to_arithmetic\":" << best[3] / best[0] << ",\"to_forward\":" << best[3] / best[2]
            << ",\"latency\":" << us(one_way) << ",\"all_reduce\":" << us(all_reduce)
            << ",\"extra\":" << (one_way > 0 ? (best[3] - best[1]) / one_way : 0)
            << ",\"news\":" << news_of_call << ",\"mallocs\":" << mallocs_of_call
            << ",\"taken\":" << runs.predictor.allocations() << ",\"account\":" << account
            << ",\"peak\":" << peak << ",\"difference\":" << error << "}\n";
}

void run(const Communicator& comm, Index nodes, Index width, int calls) {
  const PartitionBook book = PartitionBook::even(nodes * comm.size(), comm.size());
  const EdgeList edges = strip_edges(book, comm.rank());
  const Plain plain(comm, book, edges);
  const Graph graph(comm, book, book, edges, true);
  Generator gen(1);
  Tensor x({nodes, width});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<real>(i % 17) / 17;
  // all edges have the same features: the arithmetic alone has them in another order
  const Tensor of_edges = Tensor::full({graph.num_edges(), edge_feats}, real{0.5});
  Tensor plain_out({nodes, width}), out({nodes, width});
  const NoTape no_tape;

  GraphModel sage({.type = "sage", .in_feats = width, .hidden = width, .out_feats = width, .layers = 2}, comm,
                  gen);
  sage.eval();
  Predictor sage_predictor(sage, graph);
  PlainSage plain_sage(plain, sage, width);
  measure(comm,
          {.name = "sage",
           .arithmetic = [&](bool exchanges) { plain_sage(x, plain_out, exchanges); },
           .forward = [&] { (void)sage(graph, x); },
           .predict = [&] { sage_predictor(x, {}, out); },
           .predictor = sage_predictor,
           .of_arithmetic = plain_out,
           .of_predictor = out},
          calls, nodes, width);

  MeshGraphNet mesh(
      {.node_feats = width, .edge_feats = edge_feats, .out_feats = width, .hidden = width, .blocks = blocks},
      gen);
  mesh.eval();
  Predictor mesh_predictor(
      mesh,
      [&](const Graph& on, const Variable& rows, const Variable& rows_of_edges) {
        return mesh(on, rows, rows_of_edges);
      },
      {.in_feats = width, .out_feats = width, .edge_feats = edge_feats}, graph);
  PlainMesh plain_mesh(plain, mesh, width);
  measure(comm,
          {.name = "mesh_graph_net",
           .arithmetic = [&](bool exchanges) { plain_mesh(x, of_edges, plain_out, exchanges); },
           .forward = [&] { (void)mesh(graph, x, of_edges); },
           .predict = [&] { mesh_predictor(x, of_edges, out); },
           .predictor = mesh_predictor,
           .of_arithmetic = plain_out,
           .of_predictor = out},
          std::max(calls / 5, 3), nodes, width);
}

}  // namespace
}  // namespace sar::bench

int main(int argc, char** argv) {
  const sar::Environment environment(argc, argv);
  const auto argument = [&](int i, sar::Index otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  const sar::ThreadLimit threads(static_cast<int>(argument(4, 1)));
  sar::bench::run(sar::Communicator::world(), argument(1, 1000), argument(2, 64),
                  static_cast<int>(argument(3, 300)));
}

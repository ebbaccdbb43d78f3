// SPDX-License-Identifier: MIT

/// Built-in messages of every kind, update_all and apply_edges: golden vectors, and a loop over the edges of
/// the whole graph.
#include "graph/message_formula.hpp"
#include "graph/test_graphs.hpp"
#include "support/golden_graph.hpp"
#include "support/reference.hpp"
#include "support/rows.hpp"

#include <doctest/doctest.h>
#include <sar/autograd/gradcheck.hpp>
#include <sar/autograd/ops.hpp>
#include <sar/autograd/tape.hpp>
#include <sar/core/error.hpp>
#include <sar/graph/message/graph.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

using namespace sar;
using namespace sar::test;

namespace {

using Op = Message::Op;
constexpr HaloMode modes[] = {HaloMode::rematerialize, HaloMode::sequential, HaloMode::one_shot};
constexpr MessageTarget targets[] = {MessageTarget::u, MessageTarget::v, MessageTarget::e};
constexpr const char* names[] = {"u", "v", "e"};

Message make_message(Op op, MessageTarget lhs, MessageTarget rhs, const std::array<Variable, 3>& operands) {
  Message message{.op = op, .lhs = lhs, .rhs = rhs, .u = {}, .v = {}, .e = {}};
  for (const MessageTarget t : targets)
    if (message.reads(t)) message.operand(t) = operands[static_cast<std::size_t>(t)];
  return message;
}

// ---- golden vectors

MessageTarget target_of(const std::string& name) {
  return name == "u" ? MessageTarget::u : name == "v" ? MessageTarget::v : MessageTarget::e;
}

void check_golden(const Communicator& comm, const std::string& name, const GraphOptions& options) {
  CAPTURE(name);
  CAPTURE(static_cast<int>(options.mode));
  CAPTURE(options.max_halo_bytes);
  const Case golden(name);
  const std::string word = golden.arg("message");
  const bool copies = word.starts_with("copy");
  const MessageTarget lhs = target_of(copies ? word.substr(5) : word.substr(0, 1));
  const MessageTarget rhs = copies ? lhs : target_of(word.substr(word.size() - 1));
  const std::string op_name = copies ? "copy" : word.substr(2, 3);
  const auto* const row =
      std::ranges::find_if(message_op_names, [&](const auto& known) { return op_name == known.name; });
  REQUIRE(row != std::end(message_op_names));
  const Op op = row->value;

  const GoldenGraph g = golden_graph(comm, golden, options);
  const auto rows_of = [&](MessageTarget t, const Tensor& whole) {
    return t == MessageTarget::u   ? g.src_rows(whole)
           : t == MessageTarget::v ? g.dst_rows(whole)
                                   : g.edge_rows(whole);
  };
  std::array<Variable, 3> operands;
  for (const MessageTarget t : targets) {
    const std::string file = std::string("in.") + names[static_cast<std::size_t>(t)];
    if (golden.has(file))
      operands[static_cast<std::size_t>(t)] = Variable(rows_of(t, golden.tensor(file)), true);
  }
  const Message message = make_message(op, lhs, rhs, operands);
  Tape tape;
  Variable out;
  MessageTarget result = MessageTarget::e;
  if (golden.arg("group") == "update_all") {
    const std::string reduce = golden.arg("reduce");
    result = MessageTarget::v;
    out = g.graph.update_all(message, reduce == "sum"    ? fn::sum
                                      : reduce == "mean" ? fn::mean
                                      : reduce == "max"  ? fn::max
                                                         : fn::min);
  } else {
    out = g.graph.apply_edges(message);
  }
  const auto compare = [&](const Tensor& mine, MessageTarget t, const std::string& file) {
    CAPTURE(file);
    const Tensor whole = golden.tensor(file);
    CHECK(error_of_part(mine, rows_of(t, whole), whole) < tolerance());
  };
  compare(out.value(), result, "out");
  tape.backward(out, rows_of(result, golden.tensor("grad_out")));
  for (const MessageTarget t : targets)
    if (message.reads(t))
      compare(operands[static_cast<std::size_t>(t)].grad(), t,
              std::string("grad_in.") + names[static_cast<std::size_t>(t)]);
}

// ---- by the definition, in double precision

using Dims = std::vector<Index>;

Index size_of(const Dims& dims) {
  Index n = 1;
  for (const Index d : dims) n *= d;
  return n;
}

Shape shape_of(Index rows, const Dims& dims) {
  std::vector<Index> extents{rows};
  extents.insert(extents.end(), dims.begin(), dims.end());
  return Shape(std::span<const Index>(extents));
}

struct Sample {
  const char* name;
  Op op;
  MessageTarget lhs, rhs;
  Dims a, b;                     ///< rows of the operands
  std::optional<Reduce> reduce;  ///< none: apply_edges
  Dims out;                      ///< rows of the message
};

const std::vector<Sample>& samples() {
  using enum MessageTarget;
  static std::vector<Sample> all = {
      {"u_mul_e sum, heads", Op::mul, u, e, {3, 4}, {3, 1}, Reduce::sum, {3, 4}},
      {"e_mul_u mean, one number", Op::mul, e, u, {}, {5}, Reduce::mean, {5}},
      {"e_mul_u mean, wider e", Op::mul, e, u, {2, 3}, {1}, Reduce::mean, {2, 3}},
      {"u_add_v mean, other numbers of dimensions", Op::add, u, v, {4}, {3, 1}, Reduce::mean, {3, 4}},
      {"v_sub_u max", Op::sub, v, u, {6}, {6}, Reduce::max, {6}},
      {"u_sub_e sum", Op::sub, u, e, {2, 1}, {1, 3}, Reduce::sum, {2, 3}},
      {"v_div_u sum", Op::div, v, u, {2, 1, 3}, {2, 1}, Reduce::sum, {2, 2, 3}},
      {"u_div_e min, heads", Op::div, u, e, {2, 17}, {2, 1}, Reduce::min, {2, 17}},
      {"u_dot_v sum, heads", Op::dot, u, v, {3, 19}, {3, 19}, Reduce::sum, {3, 1}},
      {"e_dot_u max, one vector", Op::dot, e, u, {5}, {3, 5}, Reduce::max, {3, 1}},
      {"v_dot_u mean against one number", Op::dot, v, u, {2, 1}, {2, 4}, Reduce::mean, {2, 1}},
      {"copy_e max", Op::copy, e, e, {3}, {3}, Reduce::max, {3}},
      {"copy_e mean", Op::copy, e, e, {}, {}, Reduce::mean, {}},
      {"copy_u min", Op::copy, u, u, {2, 2}, {2, 2}, Reduce::min, {2, 2}},
      {"e_div_v sum", Op::div, e, v, {4, 1}, {2}, Reduce::sum, {4, 2}},
      {"v_add_e max", Op::add, v, e, {3, 1}, {3, 2}, Reduce::max, {3, 2}},
      {"v_sub_e sum", Op::sub, v, e, {3}, {3}, Reduce::sum, {3}},
      {"u_add_e sum, both one number", Op::add, u, e, {}, {}, Reduce::sum, {}},
      {"copy_u edges", Op::copy, u, u, {3}, {3}, std::nullopt, {3}},
      {"u_dot_v edges", Op::dot, u, v, {2, 5}, {2, 5}, std::nullopt, {2, 1}},
      {"v_mul_e edges", Op::mul, v, e, {2, 1}, {4}, std::nullopt, {2, 4}},
      {"e_div_u edges", Op::div, e, u, {3}, {2, 3}, std::nullopt, {2, 3}},
  };
  static const bool with_each_operation = [] {  // those above vary shapes, these go through the tables
    for (const auto& reduce : reduce_names) {
      all.push_back({reduce.name, Op::copy, u, u, {3}, {3}, reduce.value, {3}});
      all.push_back({reduce.name, Op::mul, u, v, {2, 3}, {2, 3}, reduce.value, {2, 3}});
    }
    for (const auto& op : message_op_names)
      for (const std::optional<Reduce> reduce : {std::optional(Reduce::sum), std::optional<Reduce>()}) {
        if (op.value == Op::copy) continue;
        all.push_back({op.name, op.value, u, v, {2, 3}, {2, 3}, reduce, {2, op.value == Op::dot ? 1 : 3}});
        all.push_back({op.name, op.value, e, u, {2, 3}, {2, 3}, reduce, {2, op.value == Op::dot ? 1 : 3}});
      }
    return true;
  }();
  CHECK(with_each_operation);
  return all;
}

struct Values {
  std::vector<double> a, b, g;  ///< operands and the gradient of the result
  std::vector<double> out, grad_a, grad_b;
};

Index rows_of(const WholeGraph& g, MessageTarget t) {
  return t == MessageTarget::u   ? g.num_src
         : t == MessageTarget::v ? g.num_dst
                                 : static_cast<Index>(g.src.size());
}

Index row_of_edge(const WholeGraph& g, MessageTarget t, std::size_t k) {
  return t == MessageTarget::u ? g.src[k] : t == MessageTarget::v ? g.dst[k] : static_cast<Index>(k);
}

/// Away from zero, for divisors.
std::vector<double> operand_values(Index n, std::uint64_t stream) {
  std::vector<double> values = random_values(n, stream);
  for (double& x : values) x = static_cast<real>(x + (x < 0 ? -0.4 : 0.4));
  return values;
}

Values by_definition(const WholeGraph& g, const Sample& s) {
  const auto padded = [](Dims dims) {
    dims.insert(dims.begin(), 3 - dims.size(), 1);
    return dims;
  };
  const Dims a = padded(s.a), b = padded(s.b), o = padded(s.out);
  Dims common(3);
  for (std::size_t d = 0; d < 3; ++d) common[d] = std::max(a[d], b[d]);
  const auto at = [](const Dims& dims, const Dims& i) {
    Index flat = 0;
    for (std::size_t d = 0; d < 3; ++d) flat = flat * dims[d] + (dims[d] == 1 ? 0 : i[d]);
    return flat;
  };
  const Index width_a = size_of(a), width_b = size_of(b), width = size_of(o);
  const Index result_rows = s.reduce ? g.num_dst : static_cast<Index>(g.src.size());
  Values x;
  x.a = operand_values(rows_of(g, s.lhs) * width_a, 1);
  x.b = s.op == Op::copy ? x.a : operand_values(rows_of(g, s.rhs) * width_b, 2);
  x.g = random_values(result_rows * width, 3);
  x.out.assign(x.g.size(), 0);
  x.grad_a.assign(x.a.size(), 0);
  x.grad_b.assign(x.b.size(), 0);
  std::vector<double> degree(static_cast<std::size_t>(g.num_dst), 0);
  for (const Index v : g.dst) degree[static_cast<std::size_t>(v)] += 1;

  /// visit(index in the message, derivatives, indices in a and b)
  const auto for_elements = [&](std::size_t k, const auto& visit) {
    Dims i(3);
    for (i[0] = 0; i[0] < common[0]; ++i[0])
      for (i[1] = 0; i[1] < common[1]; ++i[1])
        for (i[2] = 0; i[2] < common[2]; ++i[2])
          visit(at(o, i), static_cast<std::size_t>(row_of_edge(g, s.lhs, k) * width_a + at(a, i)),
                static_cast<std::size_t>(row_of_edge(g, s.rhs, k) * width_b + at(b, i)));
  };
  std::vector<std::ptrdiff_t> winner(x.out.size(), -1);
  const bool extremum = s.reduce && is_extremum(*s.reduce);
  const auto factor = [&](std::size_t k) {
    return s.reduce ? factor_of_sum(*s.reduce, degree[static_cast<std::size_t>(g.dst[k])]) : 1;
  };
  for (std::size_t k = 0; k < g.src.size(); ++k) {
    std::vector<double> m(static_cast<std::size_t>(width), 0);
    for_elements(k, [&](Index j, std::size_t p, std::size_t q) {
      const double y = x.a[p], z = x.b[q];
      m[static_cast<std::size_t>(j)] += message_element(s.op, y, z);
    });
    for (Index j = 0; j < width; ++j) {
      const Index row = s.reduce ? g.dst[k] : static_cast<Index>(k);
      const auto to = static_cast<std::size_t>(row * width + j);
      const double value = m[static_cast<std::size_t>(j)];
      if (!extremum) {
        x.out[to] += value * factor(k);
      } else if (winner[to] < 0 || (s.reduce == Reduce::max ? value > x.out[to] : value < x.out[to])) {
        x.out[to] = value;
        winner[to] = static_cast<std::ptrdiff_t>(k);
      }
    }
  }
  for (std::size_t k = 0; k < g.src.size(); ++k) {
    for_elements(k, [&](Index j, std::size_t p, std::size_t q) {
      const auto from = static_cast<std::size_t>((s.reduce ? g.dst[k] : static_cast<Index>(k)) * width + j);
      if (extremum && winner[from] != static_cast<std::ptrdiff_t>(k)) return;
      const double grad = x.g[from] * (extremum ? 1 : factor(k));
      const double y = x.a[p], z = x.b[q];
      x.grad_a[p] += grad * derivative_a(s.op, y, z);
      if (s.op != Op::copy) x.grad_b[q] += grad * derivative_b(s.op, y, z);
    });
  }
  return x;
}

/// This rank's part of whole values.
std::vector<double> part(const std::vector<double>& whole, MessageTarget t, Index width, const Books& books,
                         const Graph& graph) {
  if (t != MessageTarget::e)
    return slice(whole, t == MessageTarget::u ? books.src : books.dst, graph.comm().rank(), width);
  std::vector<double> mine;
  for (const Index id : graph.edge_ids())
    mine.insert(mine.end(), whole.begin() + id * width, whole.begin() + (id + 1) * width);
  return mine;
}

/// max |mine - expected| relative to the largest element of the whole.
double error_of(const Tensor& mine, const std::vector<double>& expected, const std::vector<double>& whole) {
  if (mine.size() != static_cast<Index>(expected.size())) return 1e300;
  double scale = 1e-300, error = 0;
  for (const double x : whole) scale = std::max(scale, std::abs(x));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double x = mine.data()[i];
    if (!std::isfinite(x)) return 1e300;
    error = std::max(error, std::abs(x - expected[i]));
  }
  return error / scale;
}

enum class Wants { both, lhs, rhs };

void check_sample(const Sample& s, const Values& want, const Books& books, const Graph& graph, Wants wants) {
  CAPTURE(s.name);
  CAPTURE(static_cast<int>(graph.options().mode));
  CAPTURE(graph.options().max_halo_bytes);
  CAPTURE(static_cast<int>(wants));
  const auto local = [&](const std::vector<double>& whole, MessageTarget t, const Dims& dims) {
    const auto mine = part(whole, t, size_of(dims), books, graph);
    return to_tensor(mine, shape_of(static_cast<Index>(mine.size()) / size_of(dims), dims));
  };
  std::array<Variable, 3> operands;
  operands[static_cast<std::size_t>(s.lhs)] = Variable(local(want.a, s.lhs, s.a), wants != Wants::rhs);
  if (s.op != Op::copy)
    operands[static_cast<std::size_t>(s.rhs)] = Variable(local(want.b, s.rhs, s.b), wants != Wants::lhs);
  const Message message = make_message(s.op, s.lhs, s.rhs, operands);
  const MessageTarget result = s.reduce ? MessageTarget::v : MessageTarget::e;
  Tape tape;
  const Variable out = s.reduce ? graph.update_all(message, *s.reduce) : graph.apply_edges(message);
  CHECK(out.shape() == shape_of(s.reduce ? graph.num_dst_nodes() : graph.num_edges(), s.out));
  const Index width = size_of(s.out);
  CHECK(error_of(out.value(), part(want.out, result, width, books, graph), want.out) < tolerance());
  tape.backward(out, local(want.g, result, s.out));
  if (wants != Wants::rhs)
    CHECK(error_of(message.operand(s.lhs).grad(), part(want.grad_a, s.lhs, size_of(s.a), books, graph),
                   want.grad_a) < tolerance());
  if (s.op != Op::copy && wants != Wants::lhs)
    CHECK(error_of(message.operand(s.rhs).grad(), part(want.grad_b, s.rhs, size_of(s.b), books, graph),
                   want.grad_b) < tolerance());
}

}  // namespace

TEST_CASE("golden vectors of every message: update_all") {
  const Communicator comm = Communicator::world();
  if (comm.size() > 4) return;  // 8 ranks are for the graphs below
  const auto cases = golden_cases("update_all");
  CHECK(cases.size() == 153);
  for (const std::string& name : cases)
    for (const HaloMode mode : modes)
      for (const Index max_halo_bytes : {0, 1})
        check_golden(comm, name, {.mode = mode, .max_halo_bytes = max_halo_bytes});
}

TEST_CASE("golden vectors of every message: apply_edges") {
  const Communicator comm = Communicator::world();
  if (comm.size() > 4) return;  // 8 ranks are for the graphs below
  const auto cases = golden_cases("apply_edges");
  CHECK(cases.size() == 41);
  for (const std::string& name : cases)
    for (const HaloMode mode : modes)
      for (const Index max_halo_bytes : {0, 1})
        check_golden(comm, name, {.mode = mode, .max_halo_bytes = max_halo_bytes});
}

TEST_CASE("messages agree with the definition for every mode, cut and partition") {
  const Communicator comm = Communicator::world();
  for (const WholeGraph& whole : test_graphs()) {
    CAPTURE(whole.name);
    for (const Sample& sample : samples()) {
      const Values want = by_definition(whole, sample);
      for (const Books& books : test_books(whole, comm.size())) {
        check_sample(sample, want, books,
                     shard(comm, whole, books, {.max_halo_bytes = 1, .edge_chunk = 5, .reproducible = true}),
                     Wants::both);
        for (const HaloMode mode : modes) {
          check_sample(sample, want, books, shard(comm, whole, books, {.mode = mode}), Wants::both);
          const Graph cut =
              shard(comm, whole, books, {.mode = mode, .pipeline_depth = 3, .max_halo_bytes = 1});
          check_sample(sample, want, books, cut, Wants::both);
          check_sample(sample, want, books, cut, Wants::lhs);
          if (sample.op != Op::copy) check_sample(sample, want, books, cut, Wants::rhs);
        }
      }
    }
  }
}

TEST_CASE("one variable may be both ends") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const Variable h(to_tensor(part(operand_values(whole.num_src * 3, 1), MessageTarget::u, 3, books, graph),
                             Shape{graph.num_nodes(), 3}),
                   true);
  GradcheckOptions options;
  options.directions = 3;
  options.sum_over_ranks = [&](double x) { return comm.all_reduce(x); };
  CHECK_NOTHROW(gradcheck(
      [&](const std::vector<Variable>& x) {
        return add(graph.update_all(fn::u_mul_v(x[0], x[0]), fn::mean),
                   graph.update_all(fn::u_sub_v(x[0], x[0]), fn::sum));
      },
      {h}, options));
}

TEST_CASE("results have the same bits with one thread and with several") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("threads", 2000, 2000, 40000, 9);
  const Books books = test_books(whole, comm.size()).front();
  for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
    std::vector<std::vector<real>> results;
    for (const int threads : {1, 2, 4}) {
      const ThreadLimit limit(threads);
      const Graph graph = shard(comm, whole, books, {.max_halo_bytes = 10000});
      const auto rows = [&](Index n, std::uint64_t stream) {
        return Variable(
            to_tensor(part(random_values(n * 24, stream),
                           n == whole.num_src ? MessageTarget::u : MessageTarget::e, 24, books, graph),
                      Shape{n == whole.num_src ? graph.num_nodes() : graph.num_edges(), 24}),
            true);
      };
      const Variable u = rows(whole.num_src, 1), v = rows(whole.num_src, 2),
                     e = rows(static_cast<Index>(whole.src.size()), 3);
      Tape tape;
      const Variable out =
          add(graph.update_all(fn::u_mul_e(u, e), reduce), graph.update_all(fn::u_div_v(u, v), reduce));
      tape.backward(out, v.value());
      std::vector<real> bits(out.value().values().begin(), out.value().values().end());
      for (const Tensor& t : {u.grad(), v.grad(), e.grad()})
        bits.insert(bits.end(), t.values().begin(), t.values().end());
      results.push_back(std::move(bits));
    }
    for (const auto& other : results) CHECK(other == results.front());
  }
}

TEST_CASE("communication of every kind of message is what its gradients need") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("bytes", 200, 200, 3000, 5);
  const Books books = test_books(whole, comm.size()).front();
  const Index width = 8;
  const auto [sends, reads] = halo_traffic(whole, books, comm);
  const std::uint64_t row = width * sizeof(real);
  for (const HaloMode mode : modes) {
    const Graph graph = shard(comm, whole, books, {.mode = mode});
    const auto operand = [&](Index rows, bool wanted) {
      return Variable(Tensor::full(Shape{rows, width}, 1), wanted);
    };
    const auto check = [&](const std::string& what, const auto& run, bool u_read, bool u_wanted,
                           bool u_again) {
      CAPTURE(what);
      CAPTURE(static_cast<int>(mode));
      Tape tape;
      std::uint64_t before = comm_bytes(graph);
      const Variable out = run();
      CHECK(comm_bytes(graph) - before == (u_read ? sends * row : 0));
      before = comm_bytes(graph);
      tape.backward(out, Tensor::full(out.shape(), 1));
      CHECK(comm_bytes(graph) - before ==
            (u_wanted ? reads * row : 0) + (u_again && mode == HaloMode::rematerialize ? sends * row : 0));
    };
    for (const Reduce reduce : {Reduce::sum, Reduce::max}) {
      for (const bool wants_u : {true, false}) {
        const Variable u = operand(graph.num_src_nodes(), wants_u);
        const Variable v = operand(graph.num_dst_nodes(), true), e = operand(graph.num_edges(), true);
        const auto all = [&](const Message& m) { return [&, m] { return graph.update_all(m, reduce); }; };
        if (wants_u) check("copy_u", all(fn::copy_u(u)), true, true, false);
        check("u_add_v", all(fn::u_add_v(u, v)), true, wants_u, false);
        check("e_sub_u", all(fn::e_sub_u(e, u)), true, wants_u, false);
        check("u_mul_e", all(fn::u_mul_e(u, e)), true, wants_u, true);
        check("u_dot_v", all(fn::u_dot_v(u, v)), true, wants_u, true);
        check("v_div_u", all(fn::v_div_u(v, u)), true, wants_u, true);
        if (wants_u) {  // factors that want nothing: values of u are not needed, but where it divides
          check("u_mul_e, constant e", all(fn::u_mul_e(u, e.detach())), true, true, false);
          check("u_div_v, constant v", all(fn::u_div_v(u, v.detach())), true, true, false);
          check("e_div_u, constant e", all(fn::e_div_u(e.detach(), u)), true, true, true);
        }
        check("copy_e", all(fn::copy_e(e)), false, false, false);
        check("v_mul_e", all(fn::v_mul_e(v, e)), false, false, false);
      }
    }
    const Variable u = operand(graph.num_src_nodes(), true), v = operand(graph.num_dst_nodes(), true);
    check(
        "u_sub_v on edges", [&] { return graph.apply_edges(fn::u_sub_v(u, v)); }, true, true, false);
    check(
        "u_dot_v on edges", [&] { return graph.apply_edges(fn::u_dot_v(u, v)); }, true, true, true);
  }
}

TEST_CASE("wrong operands of one rank are the same error on all, and the graph works afterwards") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = random_graph("shapes", 50, 50, 100, 5);
  const Books books = test_books(whole, comm.size()).front();
  const Graph graph = shard(comm, whole, books, {});
  const bool bad = comm.rank() == comm.size() - 1;
  const Index n = graph.num_nodes(), m = graph.num_edges();
  const auto ones = [](const Shape& shape) { return Variable(Tensor::full(shape, 1)); };
  const auto text_of = [&](const Message& message, bool edges) {
    try {
      if (edges)
        (void)graph.apply_edges(message);
      else
        (void)graph.update_all(message, fn::max);
    } catch (const ShapeError& error) {
      return "shape: " + std::string(error.what());
    } catch (const InputError& error) {
      return "input: " + std::string(error.what());
    }
    return std::string("no error");
  };
  const auto works = [&] {
    const Tensor sum = graph.update_all(fn::u_add_e(ones({n, 2}), ones({m, 2})), fn::sum).value();
    for (Index v = 0; v < graph.num_dst_nodes(); ++v)
      CHECK(sum.row(v)[1] == static_cast<real>(2 * graph.in_degrees()[static_cast<std::size_t>(v)]));
  };
  const auto fails = [&](const Message& message, const std::string& kind, const std::string& words) {
    for (const bool edges : {false, true}) {
      const std::string text = text_of(message, edges);
      CAPTURE(text);
      CHECK(text.find(kind) == 0);
      CHECK(text.find(words) != std::string::npos);
      CHECK(comm.broadcast(text, 0) == text);
      works();
    }
  };
  fails(fn::u_mul_v(ones({n, 3}), ones({n, bad ? 2 : 3})), "shape: ", "do not broadcast: 3 against 2");
  fails(fn::u_dot_v(ones({n, 2, 3}), ones({n, bad ? 4 : 1, 3})), "shape: ", ", 2, 3] and [");
  fails(fn::u_add_e(ones({n, 2}), ones({bad ? m + 1 : m, 2})),
        "shape: ", "the message's edge rows have shape");
  fails(fn::copy_e(bad ? Variable() : ones({m})), "shape: ", "the message's edge rows have shape");
  fails(fn::e_sub_v(ones({m, 2}), ones({bad ? n + 2 : n, 2})), "shape: ", "destination rows have shape");
  if (comm.size() > 1) {
    fails(bad ? fn::u_mul_e(ones({n, 2}), ones({m})) : fn::u_div_e(ones({n, 2}), ones({m})),
          "input: ", "different message on different ranks");
    fails(bad ? fn::e_sub_u(ones({m, 2}), ones({n, 2})) : fn::u_sub_e(ones({n, 2}), ones({m, 2})),
          "input: ", "different left operand on different ranks");
    fails(fn::u_add_v(ones({n, 2}), ones({n, bad ? 1 : 2})), "input: ",
          "different shape of the destination rows on different ranks: [*, 2] on rank 0, [*, 1] on rank " +
              std::to_string(comm.size() - 1));
  }
  Message twice = fn::u_add_v(ones({n, 2}), ones({n, 2}));
  twice.rhs = MessageTarget::u;
  fails(twice, "input: ", "operands of two kinds");
  CHECK_THROWS_AS((void)graph.update_all(fn::copy_u(ones({n, 2})), fn::sum, ones({n, bad ? 3 : 2})),
                  ShapeError);
  works();
}

TEST_CASE("edge data given by edge id lands in edge order") {
  const Communicator comm = Communicator::world();
  const WholeGraph whole = test_graphs().front();
  const Books books = test_books(whole, comm.size()).back();
  const Graph graph = shard(comm, whole, books, {});
  const auto count = static_cast<Index>(whole.src.size());
  const auto values = random_values(count * 2, 1);
  const Tensor mine = graph.local_edge_rows(to_tensor(values, Shape{count, 2}));
  CHECK(relative_error(mine, part(values, MessageTarget::e, 2, books, graph)) == 0);
  CHECK(mine.shape() == Shape{graph.num_edges(), 2});
  // Only one rank has the last edge; all are told.
  CHECK_THROWS_AS((void)graph.local_edge_rows(Tensor::zeros(Shape{count - 1, 2})), ShapeError);
  CHECK(relative_error(graph.local_edge_rows(to_tensor(values, Shape{count, 2})), mine) == 0);

  // the same rows when each rank has those of a range of ids, the first rank none
  std::vector<Index> ends{0, comm.size() == 1 ? count : 0};
  for (int p = 1; p < comm.size(); ++p) ends.push_back(count * p / (comm.size() - 1));
  const PartitionBook ids(ends);
  const auto own = [&](const PartitionBook& book, Index width) {
    const Index begin = book.begin(comm.rank()), rows = book.num_nodes(comm.rank());
    return to_tensor({values.begin() + 2 * begin, values.begin() + 2 * begin + width * rows},
                     Shape{rows, width});
  };
  const Tensor fetched = fetch_edge_rows(graph, ids, own(ids, 2));
  CHECK(fetched.shape() == mine.shape());
  CHECK(relative_error(fetched, mine) == 0);
  --ends.back();  // the last edge has no row
  if (comm.size() > 1 && ends.back() < ends[ends.size() - 2]) return;
  const PartitionBook fewer(ends);
  CHECK_THROWS_AS((void)fetch_edge_rows(graph, fewer, own(fewer, 2)), InputError);
  CHECK_THROWS_AS((void)fetch_edge_rows(graph, ids, own(fewer, 2)), ShapeError);
  if (comm.size() > 1)
    CHECK_THROWS_AS((void)fetch_edge_rows(graph, ids, own(ids, comm.rank() == 1 ? 1 : 2)), ShapeError);
}

TEST_CASE("a hub's sums of several numbers an edge keep their digits, also beside gradients of the numbers") {
  constexpr Index leaves = 100'000, width = 4, heads = 2;
  WholeGraph star{"hub", leaves + 1, leaves + 1, true, {}, {}};
  for (Index v = 1; v <= leaves; ++v)
    for (const auto& [u, w] : {std::pair{v, Index{0}}, std::pair{Index{0}, v}}) {
      star.src.push_back(u);
      star.dst.push_back(w);
    }
  const Communicator comm = Communicator::world();
  const Books books{PartitionBook::even(star.num_src, comm.size()),
                    PartitionBook::even(star.num_dst, comm.size())};
  const Graph graph = shard(comm, star, books, {});
  constexpr real tenth = 0.1F;
  Variable x(Tensor::full({graph.num_nodes(), heads, width / heads}, tenth), true);
  for (const bool wants_dw : {true, false}) {
    const Variable w(Tensor::full({graph.num_edges(), heads, 1}, real{1}), wants_dw);
    x.zero_grad();
    Tape tape;
    const Variable y = graph.update_all(fn::u_mul_e(x, w), Reduce::sum);
    tape.backward(y, Tensor::full(y.shape(), tenth));
    if (comm.rank() > 0) continue;
    const double expected = static_cast<double>(leaves) * static_cast<double>(tenth);
    for (Index j = 0; j < width; ++j) {
      // parts of 1,024 edges are sums in `real`; one sum in single precision would be wrong by 1.4e-4 of it
      CHECK(y.value().row(0)[j] == doctest::Approx(expected).epsilon(2e-5));
      CHECK(x.grad().row(0)[j] == doctest::Approx(expected).epsilon(2e-5));
    }
  }
}

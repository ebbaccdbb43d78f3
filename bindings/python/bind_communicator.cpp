// SPDX-License-Identifier: MIT
#include <sar/bindings/python/convert.hpp>
#include <sar/bindings/python/module.hpp>
#include <sar/comm/trace.hpp>
#include <sar/core/memory/memory.hpp>
#include <sar/core/threads/parallel.hpp>

#include <mpi.h>

namespace sar { inline namespace SAR_PRECISION { namespace python {

namespace {

/// Collective. Returns whether a condition holds on all ranks.
bool on_all_ranks(const Communicator& comm, bool holds) {
  return compute([&] { return comm.all_reduce(holds ? 1 : 0, ReduceOp::min); }) == 1;
}

/// The whole number that an int of Python or an integer of NumPy is.
std::optional<Index> integer_of(nb::handle value) {
  Index number = 0;
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) PyErr_Clear();
  return index.is_valid() && nb::try_cast(index, number) ? std::optional(number) : std::nullopt;
}

}  // namespace

void bind_communicator(Definitions& module) {
  using namespace nb::literals;
  nb::class_<Communicator>(
      module, "Communicator",
      "The ranks that hold a graph together. Communicator(comm) takes a communicator of mpi4py.")
      .def(
          "__init__",
          [](Communicator* self, nb::object comm) {
            require_environment();
            if (comm.is_none()) {
              new (self) Communicator(default_communicator());
              return;
            }
            require<InputError>(nb::hasattr(comm, "py2f"), "a communicator given as ",
                                nb::cast<std::string>(nb::repr(comm)), ", expected one of mpi4py");
            const auto handle = nb::cast<int>(comm.attr("py2f")());
            compute([&] { new (self) Communicator(MPI_Comm_f2c(static_cast<MPI_Fint>(handle))); });
          },
          "comm"_a = nb::none(), "Collective. Duplicates a communicator of mpi4py; None: that of all ranks.")
      .def_static(
          "self", [] { return require_environment(), Communicator::self(); }, "Local. This rank alone.")
      .def_prop_ro("rank", &Communicator::rank)
      .def_prop_ro("size", &Communicator::size)
      .def(
          "barrier", [](const Communicator& self) { compute([&] { self.barrier(); }); },
          "Collective. Returns when all ranks have called it.")
      .def(
          "all_reduce",
          [](const Communicator& self, nb::handle value, const std::string& op) -> nb::object {
            static constexpr EnumName<ReduceOp> ops[] = {
                {ReduceOp::sum, "sum"}, {ReduceOp::max, "max"}, {ReduceOp::min, "min"}};
            const ReduceOp chosen = choice(ops, op, "op");
            const std::optional<Index> integer = integer_of(value);
            const auto number = integer ? static_cast<double>(*integer) : nb::cast<double>(value);
            if (on_all_ranks(self, integer.has_value()))
              return nb::cast(compute([&] { return self.all_reduce(*integer, chosen); }));
            return nb::cast(compute([&] { return self.all_reduce(number, chosen); }));
          },
          "value"_a, "op"_a = "sum",
          "Collective. The sum, maximum or minimum of a number over all ranks: an int if all give one.",
          nb::sig("def all_reduce(self, value: float, op: str = 'sum') -> float"))
      .def(
          "all_gather",
          [](const Communicator& self, nb::handle values) -> nb::object {
            const nb::object array = array_of(values, "values");
            const std::string dtype = dtype_of(array);
            const bool integers = nb::cast<std::size_t>(array.attr("size")) == 0 || dtype == "bool" ||
                                  (dtype != "uint64" && dtype.find("int") != std::string::npos);
            if (on_all_ranks(self, integers)) {
              const Ids mine(array.attr("reshape")(-1).attr("astype")("int64"), "values");
              const std::vector<std::int64_t> all = compute([&] { return self.all_gather(mine.span()); });
              return numpy_of(std::span<const std::int64_t>(all));
            }
            const Doubles mine(array, "values");
            const std::vector<double> all = compute([&] { return self.all_gather(mine.span()); });
            return numpy_of(std::span<const double>(all));
          },
          "values"_a,
          "Collective. The numbers of all ranks, of any count, one rank after another: int64 [all] if all "
          "ranks give integers, otherwise float64 [all].")
      .def(
          "agree",
          [](const Communicator& self, const nb::callable& body) {
            nb::object result;
            const Call call;
            const nb::gil_scoped_release released;
            self.agree(
                [&] {
                  const nb::gil_scoped_acquire locked;
                  try {
                    result = body();
                  } catch (const nb::python_error& error) {
                    throw_as_error(error);
                  }
                },
                "agree");
            const nb::gil_scoped_acquire locked;
            return result;
          },
          "body"_a,
          "Collective. Calls body() and returns its result. If it raises on a rank, all ranks raise "
          "sar.Error with its class and text, or the exception of sar that it is, and tensors, modules and "
          "optimizers are as before.")
      .def("__reduce__", [](nb::handle) -> nb::object {
        throw nb::type_error("a sar.Communicator cannot be pickled: it belongs to its process");
      });

  nb::class_<Trace>(module, "Trace",
                    "A timeline of all ranks, for https://ui.perfetto.dev and sar.plot.timeline:\n\n"
                    "    with sar.Trace(\"step.json\"):\n"
                    "        ...\n")
      .def(
          "__init__",
          [](Trace* self, nb::handle path, std::optional<Communicator> comm) {
            const Communicator& all = or_default(comm);
            const std::string file = path_of(path);
            compute([&] { new (self) Trace(all, file); });
          },
          "path"_a, "comm"_a = nb::none(),
          "Collective. Starts a trace. Raises InputError if the file is not writable or a trace runs.")
      .def(
          "write", [](Trace& self) { compute([&] { self.write(); }); },
          "Collective. Ends the trace and writes the file.")
      .def("__enter__", [](nb::handle_t<Trace> self) { return nb::borrow(self); })
      .def(
          "__exit__",
          [](Trace& self, nb::handle type, nb::handle, nb::handle) {
            if (type.is_none()) return compute([&] { self.write(); });
            const nb::gil_scoped_release released;
            self.end();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());

  module.def(
      "get_communicator", [] { return default_communicator(); },
      "Collective at the first call. The communicator of layers and losses that are given none.");
  module.def("set_communicator", &set_default_communicator, "comm"_a,
             "Local. Sets the communicator of layers and losses that are given none.");
  module.def("set_num_threads", &set_num_threads, "threads"_a,
             "Local. Limits the threads of this process; 0: no limit. By default the ranks of a node share "
             "its cores.");
  module.def(
      "get_num_threads", [] { return num_threads(); }, "Local. How many threads compute.");
  module.def(
      "peak_bytes", [] { return peak_bytes(); }, "Local. The largest memory of tensors and graphs so far.");
  module.def("_finalize", &finalize);
}

}}}  // namespace sar

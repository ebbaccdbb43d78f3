#include <sar/bindings/python/module.hpp>
#include <sar/config.hpp>

using namespace sar::python;

NB_MODULE(_sar, module) {
  nb::set_leak_warnings(false);  // globals of a program may live until the interpreter is gone
  module.attr("__version__") = SAR_VERSION;
  module.attr("mpi_library") = SAR_MPI;
  // classes first, which signatures of the others name
  bind_errors(module);
  bind_communicator(module);
  bind_tensor(module);
  bind_functions(module);
  bind_graphs(module);
  bind_modules(module);
  bind_layers(module);
  bind_convs(module);
  bind_attention(module);
  bind_losses(module);
  bind_optimizers(module);
  bind_sampling(module);
  bind_datasets(module);
  bind_models(module);
  bind_hetero(module);
}

# Where version 1.0 had its public headers: sar_version_1_headers(DIR) writes a header for each old path to DIR/sar, which includes
# the new one. Programs written for 1.0 compile with them.
function(sar_version_1_headers dir)
  set(graph/build host_graph message_flow_graph)
  set(graph/data dataset dataset_source dgl_partition generators graph_data graph_source hetero_graphs new_directory node_data open_dataset
                 partition_directory partition_graph write_dataset write_rows)
  set(graph/io data_array npy)
  set(graph/kernels edge_batch)
  set(graph/message attention edge_softmax frame graph_shard_manager message)
  set(graph/partition partition)
  set(comm/rows partition_book)
  foreach(room graph/build graph/data graph/io graph/kernels graph/message graph/partition comm/rows)
    foreach(header ${${room}})
      file(CONFIGURE OUTPUT ${dir}/sar/graph/${header}.hpp CONTENT "#include <sar/${room}/${header}.hpp> // its place since version 1.1\n")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${dir}/sar/graph/bijection.hpp CONTENT "#include <sar/core/keyed_bijection.hpp> // its place since version 1.1\n")
  file(CONFIGURE OUTPUT ${dir}/sar/nn/safetensors.hpp CONTENT "#include <sar/graph/io/safetensors.hpp> // its place since version 1.1\n")
endfunction()

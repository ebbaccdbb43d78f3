// SPDX-License-Identifier: MIT

/* The losses of a small training, one a line. The other programs of this folder are the same in other
 * languages. */
#include <sar.h>

#include <stdio.h>
#include <stdlib.h>

enum { num_nodes = 60, num_steps = 20 };

static void check(int status) {
  if (status == SAR_OK) return;
  fprintf(stderr, "losses: %s\n", sar_last_error());
  exit(1);
}

int main(void) {
  sar_comm comm;
  sar_graph graph;
  sar_model model;
  sar_optimizer optimizer;
  int32_t rank, size;
  int64_t ids[num_nodes], src[2 * num_nodes], dst[2 * num_nodes], n = 0;
  double x[2 * num_nodes], target[num_nodes], loss;

  check(sar_init());
  check(sar_comm_world(&comm));
  check(sar_comm_rank(comm, &rank));
  check(sar_comm_size(comm, &size));
  for (int64_t i = rank * num_nodes / size; i < (rank + 1) * num_nodes / size; ++i, ++n) {
    ids[n] = i;
    src[2 * n] = (i + num_nodes - 1) % num_nodes;
    src[2 * n + 1] = (i + 7) % num_nodes;
    dst[2 * n] = dst[2 * n + 1] = i;
    x[2 * n] = (double)(7 * i % 11) / 10;
    x[2 * n + 1] = (double)(5 * i % 13) / 10;
    target[n] = (double)(7 * (i + num_nodes - 1) % 11) / 20;
  }

  check(sar_graph_from_global(comm, n, ids, 2 * n, src, dst, NULL, NULL, NULL, &graph));
  check(sar_model_create(
      comm,
      "{\"sar_model\": 1, \"type\": \"sage\", \"in_feats\": 2, \"hidden\": 8, \"out_feats\": 1, "
      "\"layers\": 2}",
      5, &model));
  check(sar_optimizer_create(model, "{\"optimizer\": \"adam\", \"lr\": 0.01}", &optimizer));
  const sar_array nodes = sar_array_double(x, n, 2), wanted = sar_array_double(target, n, 1);
  for (int step = 0; step < num_steps; ++step) {
    check(sar_train_step(model, optimizer, graph, NULL, &nodes, NULL, SAR_LOSS_MSE, &wanted, 0, NULL, &loss));
    if (rank == 0) printf("%.16e\n", loss);
  }
  check(sar_optimizer_free(optimizer));
  check(sar_model_free(model));
  check(sar_graph_free(graph));
  check(sar_comm_free(comm));
  check(sar_finalize());
  return 0;
}

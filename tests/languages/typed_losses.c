// SPDX-License-Identifier: MIT

/* The losses of small trainings on a graph with node and edge types, one a line. The other programs whose
 * name begins with typed_losses are the same in other languages. The argument is a file for the model. */
#include <sar.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { num_fluid = 30, num_solid = 12, num_steps = 5 };

static void check(int status) {
  if (status == SAR_OK) return;
  fprintf(stderr, "typed_losses: %s\n", sar_last_error());
  exit(1);
}

static int32_t rank, size;

/* Nodes of this rank. */
static int64_t begin_of(int64_t nodes) {
  return rank * nodes / size;
}
static int64_t end_of(int64_t nodes) {
  return (rank + 1) * nodes / size;
}

static sar_graph make_graph(sar_comm comm, int has_weights) {
  int64_t fluid[num_fluid], solid[num_solid], src[2 * num_fluid], dst[2 * num_fluid], from[num_fluid],
      to[num_fluid], n = 0, m = 0;
  double weight[num_fluid];
  sar_array weights;
  sar_graph graph;
  for (int64_t i = begin_of(num_fluid); i < end_of(num_fluid); ++i, ++n) {
    fluid[n] = 100 + i;
    src[2 * n] = 100 + (i + num_fluid - 1) % num_fluid;
    src[2 * n + 1] = 100 + (i + 7) % num_fluid;
    dst[2 * n] = dst[2 * n + 1] = 100 + i;
    from[n] = 5 * i % num_solid;
    to[n] = 100 + i;
    weight[n] = (double)(1 + i % 4) / 4;
  }
  for (int64_t i = begin_of(num_solid); i < end_of(num_solid); ++i) solid[m++] = i;
  weights = sar_array_double(weight, n, 1);
  check(sar_graph_create(comm, NULL, &graph));
  check(sar_graph_add_nodes(graph, "fluid", n, fluid));
  check(sar_graph_add_nodes(graph, "solid", m, solid));
  check(sar_graph_add_edges(graph, "fluid", "flows", "fluid", 2 * n, src, dst, NULL, NULL, 0));
  check(sar_graph_add_edges(graph, "solid", "heats", "fluid", n, from, to, NULL,
                            has_weights ? &weights : NULL, 0));
  check(sar_graph_add_edges(graph, "fluid", "cools", "solid", n, to, from, NULL, NULL, 0));
  check(sar_graph_build(graph));
  return graph;
}

static void train(sar_comm comm, const char* type, const char* path) {
  char description[600];
  double x[2 * num_fluid], of_solid[3 * num_solid], target[num_fluid], loss, again;
  int64_t n = 0, m = 0;
  sar_model model;
  sar_optimizer optimizer;
  const sar_graph graph = make_graph(comm, strcmp(type, "hgt") != 0);
  for (int64_t i = begin_of(num_fluid); i < end_of(num_fluid); ++i, ++n) {
    x[2 * n] = (double)(7 * i % 11) / 10;
    x[2 * n + 1] = (double)(5 * i % 13) / 10;
    target[n] = (double)(7 * (i + num_fluid - 1) % 11) / 20;
  }
  for (int64_t i = begin_of(num_solid); i < end_of(num_solid); ++i, ++m)
    for (int64_t f = 0; f < 3; ++f) of_solid[3 * m + f] = (double)((3 * i + f) % 7) / 7;
  const sar_array fluid = sar_array_double(x, n, 2), solid = sar_array_double(of_solid, m, 3),
                  wanted = sar_array_double(target, n, 1);
  check(sar_graph_set_rows(graph, "solid", &solid));
  snprintf(description, sizeof description,
           "{\"sar_model\": 1, \"type\": \"%s\", \"in_feats\": 2, \"hidden\": 8, \"out_feats\": 1, "
           "\"layers\": 2, \"node_types\": [\"fluid\", \"solid\"], \"edge_types\": [[\"fluid\", \"flows\", "
           "\"fluid\"], [\"solid\", \"heats\", \"fluid\"], [\"fluid\", \"cools\", \"solid\"]], "
           "\"inputs\": {\"solid\": 3}}",
           type);
  check(sar_model_create(comm, description, 5, &model));
  check(sar_model_save(model, path));
  check(sar_model_free(model));
  check(sar_model_load(comm, path, &model));
  check(sar_optimizer_create(model, "{\"optimizer\": \"adam\", \"lr\": 0.01}", &optimizer));
  for (int step = 0; step < num_steps; ++step) {
    check(sar_evaluate(model, graph, "fluid", &fluid, NULL, SAR_LOSS_MSE, &wanted, 0, NULL, &again));
    check(sar_train_step(model, optimizer, graph, "fluid", &fluid, NULL, SAR_LOSS_MSE, &wanted, 0, NULL,
                         &loss));
    if (rank == 0) printf("%.16e\n", loss);
    if (loss != again) {
      fprintf(stderr, "typed_losses: %s: the loss is %g, and %g in a step\n", type, again, loss);
      exit(1);
    }
  }
  check(sar_optimizer_free(optimizer));
  check(sar_model_free(model));
  check(sar_graph_free(graph));
}

int main(int argc, char** argv) {
  const char* const types[] = {"rgcn", "hgt", "hetero-sage", "hetero-gat"};
  sar_comm comm;
  if (argc < 2) return 1;
  check(sar_init());
  check(sar_comm_world(&comm));
  check(sar_comm_rank(comm, &rank));
  check(sar_comm_size(comm, &size));
  for (int i = 0; i < 4; ++i) train(comm, types[i], argv[1]);
  check(sar_comm_free(comm));
  check(sar_finalize());
  return 0;
}

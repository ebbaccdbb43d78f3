// SPDX-License-Identifier: MIT

/* Calls of sar.h that differ between the ranks: the last rank makes another call than the others, or the same
 * with another argument. All ranks return the same status and text, which names what differs, and the next
 * call that is the same on all ranks works. The argument is a folder for files. */
#include <sar.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
static int my_rank = 0, size = 1;

static void expect(int found, int expected, const char* text, const char* call, int line) {
  char last[1024], first[1024];
  int same;
  if (found == SAR_OK && expected == SAR_OK) return;
  memset(last, 0, sizeof last);
  snprintf(last, sizeof last, "%s", sar_last_error());
  memcpy(first, last, sizeof first);
  if (expected != SAR_OK) MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
  same = strcmp(first, last) == 0;
  if (found == expected && strstr(last, text) != NULL && same) return;
  ++failures;
  fprintf(stderr,
          "rank %d, line %d: %s returned %d, expected %d; the last error is '%s', expected '%s' in it\n",
          my_rank, line, call, found, expected, last, text);
}
#define OK(call) expect((call), SAR_OK, "", #call, __LINE__)
#define DIFFERS(call, text) expect((call), SAR_ERROR_INPUT, (text), #call, __LINE__)
#define DIFFERENT_CALLS(call, text) expect((call), SAR_ERROR_COMMUNICATION, (text), #call, __LINE__)

#define NODES 6 /* of each rank: a part of a ring */
#define SAGE(hidden)                                                            \
  "{\"sar_model\": 1, \"type\": \"sage\", \"in_feats\": 2, \"hidden\": " hidden \
  ", \"out_feats\": 2, "                                                        \
  "\"layers\": 2, \"dropout\": 0}"

typedef struct setting {
  sar_comm comm;
  sar_graph graph, small_graph;
  sar_model model, wide_model;
  sar_optimizer optimizer, wide_optimizer;
  sar_predictor predictor;
  sar_checkpoints checkpoints;
  int64_t ids[NODES], src[NODES], dst[NODES], labels[NODES];
  double x[NODES][2], y[NODES][2];
  char path[1024];
} setting;

/* The value of the last rank, and that of the others. */
static int last(int others, int mine) {
  return my_rank == size - 1 ? mine : others;
}
static const char* last_text(const char* others, const char* mine) {
  return my_rank == size - 1 ? mine : others;
}

static int ring_graph(const setting* s, int64_t edges, const char* options, sar_graph* graph) {
  return sar_graph_from_global(s->comm, NODES, s->ids, edges, s->src, s->dst, NULL, NULL, options, graph);
}

static void make_setting(setting* s, const char* folder) {
  int i;
  OK(sar_comm_create(MPI_COMM_WORLD, &s->comm));
  for (i = 0; i < NODES; ++i) {
    const int64_t node = (int64_t)my_rank * NODES + i;
    s->ids[i] = 100 + node;
    s->src[i] = s->ids[i];
    s->dst[i] = 100 + (node + 1) % ((int64_t)size * NODES);
    s->labels[i] = i % 2;
    s->x[i][0] = s->y[i][1] = sin((double)node);
    s->x[i][1] = s->y[i][0] = cos((double)node);
  }
  OK(ring_graph(s, NODES, "{\"add_reverse_edges\": true}", &s->graph));
  OK(ring_graph(s, NODES - 1, NULL, &s->small_graph));
  OK(sar_model_create(s->comm, SAGE("8"), 1, &s->model));
  OK(sar_model_create(s->comm, SAGE("16"), 1, &s->wide_model));
  OK(sar_optimizer_create(s->model, "{\"optimizer\": \"adam\", \"lr\": 0.02}", &s->optimizer));
  OK(sar_optimizer_create(s->wide_model, "{\"optimizer\": \"adam\", \"lr\": 0.02}", &s->wide_optimizer));
  OK(sar_predictor_create(s->model, s->graph, &s->predictor));
  snprintf(s->path, sizeof s->path, "%s/checkpoint-00000005.safetensors", folder);
  if (my_rank == 0) remove(s->path); /* of an earlier run */
  snprintf(s->path, sizeof s->path, "%s", folder);
  OK(sar_checkpoints_create(s->comm, s->path, 2, 7, &s->checkpoints));
}

static void free_setting(const setting* s) {
  OK(sar_comm_free(s->comm));
  OK(sar_graph_free(s->graph));
  OK(sar_graph_free(s->small_graph));
  OK(sar_model_free(s->model));
  OK(sar_model_free(s->wide_model));
  OK(sar_optimizer_free(s->optimizer));
  OK(sar_optimizer_free(s->wide_optimizer));
  OK(sar_predictor_free(s->predictor));
  OK(sar_checkpoints_free(s->checkpoints));
}

static void creates(const setting* s) {
  sar_model model = NULL;
  sar_optimizer optimizer = NULL;
  sar_graph graph = NULL;
  sar_predictor predictor = NULL;
  sar_checkpoints checkpoints = NULL;
  const char adam[] = "{\"optimizer\": \"adam\", \"lr\": 0.02}";
  DIFFERS(sar_model_create(s->comm, last_text(SAGE("4"), SAGE("5")), 1, &model),
          "sar_model_create is called with a different hidden on different ranks: 4 on rank 0, 5 on rank");
  DIFFERS(sar_model_create(s->comm, SAGE("4"), (uint64_t)last(1, 2), &model), "different seed");
  OK(sar_model_create(s->comm, last_text(SAGE("4"), SAGE("   4")), 1, &model));
  OK(sar_model_free(model));
  DIFFERS(
      sar_optimizer_create(s->model, last_text(adam, "{\"optimizer\": \"sgd\"}"), &optimizer),
      "sar_optimizer_create is called with a different optimizer on different ranks: adam on rank 0, sgd");
  DIFFERS(
      sar_optimizer_create(s->model, last_text(adam, "{\"optimizer\": \"adam\", \"lr\": 0.01}"), &optimizer),
      "different lr on different ranks: 0.02 on rank 0, 0.01 on rank");
  DIFFERS(
      sar_optimizer_create(
          s->model, last_text(adam, "{\"optimizer\": \"adam\", \"lr\": 0.02, \"beta1\": 0.8}"), &optimizer),
      "different beta1");
  OK(sar_optimizer_create(s->model, last_text(adam, "{\"lr\": 2e-2, \"optimizer\": \"adam\"}"), &optimizer));
  OK(sar_optimizer_free(optimizer));
  DIFFERS(ring_graph(s, NODES, last_text("{}", "{\"pipeline_depth\": 2}"), &graph),
          "different pipeline_depth");
  DIFFERS(ring_graph(s, NODES, last_text("{}", "{\"add_reverse_edges\": true}"), &graph),
          "different add_reverse_edges");
  DIFFERS(sar_predictor_create(my_rank == size - 1 ? s->wide_model : s->model, s->graph, &predictor),
          "different description of the model");
  DIFFERS(sar_predictor_create(s->model, my_rank == size - 1 ? s->small_graph : s->graph, &predictor),
          "different number of edges of the graph");
  DIFFERS(sar_checkpoints_create(s->comm, s->path, last(2, 3), 7, &checkpoints), "different keep_last");
  DIFFERS(sar_checkpoints_create(s->comm, s->path, 2, (uint64_t)last(7, 8), &checkpoints), "different seed");
}

static int step_of(const setting* s, sar_model model, sar_optimizer optimizer, int32_t kind, double* loss) {
  const sar_array x = sar_array_double(&s->x[0][0], NODES, 2), y = sar_array_double(&s->y[0][0], NODES, 2);
  return sar_train_step(model, optimizer, s->graph, NULL, &x, NULL, kind, &y, 0, NULL, loss);
}

static void trains(const setting* s) {
  const sar_array x = sar_array_double(&s->x[0][0], NODES, 2), y = sar_array_double(&s->y[0][0], NODES, 2);
  double loss = 0, again = 0;
  const int is_last = my_rank == size - 1;
  OK(sar_evaluate(s->model, s->graph, NULL, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &loss));
  DIFFERENT_CALLS(step_of(s, s->model, s->optimizer, last(SAR_LOSS_MSE, SAR_LOSS_BCE), NULL),
                  "the ranks make different calls: rank 0 calls mse, rank");
  DIFFERENT_CALLS(is_last
                      ? sar_evaluate(s->model, s->graph, NULL, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &again)
                      : step_of(s, s->model, s->optimizer, SAR_LOSS_MSE, NULL),
                  "rank 0 calls sar_train_step, rank");
  DIFFERENT_CALLS(is_last ? sar_train_step_labels(s->model, s->optimizer, s->graph, NULL, &x, NULL, NODES,
                                                  s->labels, 0, NULL, NULL)
                          : step_of(s, s->model, s->optimizer, SAR_LOSS_MSE, NULL),
                  "rank 0 calls sar_train_step, rank");
  DIFFERS(is_last ? step_of(s, s->wide_model, s->wide_optimizer, SAR_LOSS_MSE, NULL)
                  : step_of(s, s->model, s->optimizer, SAR_LOSS_MSE, NULL),
          "sar_train_step is called with a different description of the model");
  DIFFERS(sar_evaluate(is_last ? s->wide_model : s->model, s->graph, NULL, &x, NULL, SAR_LOSS_MSE, &y, 0,
                       NULL, &again),
          "different description of the model");
  DIFFERS(sar_evaluate(s->model, is_last ? s->small_graph : s->graph, NULL, &x, NULL, SAR_LOSS_MSE, &y, 0,
                       NULL, &again),
          "different number of edges of the graph");
  DIFFERENT_CALLS(sar_evaluate(s->model, s->graph, NULL, &x, NULL, last(SAR_LOSS_L1, SAR_LOSS_HUBER), &y, 0,
                               NULL, &again),
                  "rank 0 calls l1, rank");
  if (is_last) OK(sar_optimizer_set_lr(s->optimizer, 0.01));
  DIFFERS(step_of(s, s->model, s->optimizer, SAR_LOSS_MSE, NULL),
          "different learning rate on different ranks: 0.02 on rank 0, 0.01 on rank");
  OK(sar_optimizer_set_lr(s->optimizer, 0.01));
  OK(sar_evaluate(s->model, s->graph, NULL, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &again));
  if (loss != again) { /* nothing has changed */
    ++failures;
    fprintf(stderr, "the loss is %g, then %g\n", loss, again);
  }
  OK(step_of(s, s->model, s->optimizer, SAR_LOSS_MSE, &again));
}

static void sets_parameters(const setting* s) {
  const sar_array x = sar_array_double(&s->x[0][0], NODES, 2);
  double out[NODES][2], bias[8] = {0}, other[8] = {1};
  sar_array result = sar_array_double(&out[0][0], NODES, 2);
  int64_t count = 0, index, rows = 0, fields = 0;
  const char* name = NULL;
  char model[1100];
  sar_array values = sar_array_double(bias, 8, 1);
  OK(sar_model_num_parameters(s->model, &count));
  for (index = 0; index < count; ++index) {
    OK(sar_model_parameter(s->model, index, &name, &rows, &fields));
    if (rows == 8 && fields == 1) break;
  }
  OK(sar_predictor_run(s->predictor, &x, NULL, &result));
  OK(sar_predictor_run(s->predictor, &x, NULL, &result)); /* with fewer synchronization points */
  if (my_rank == size - 1) OK(sar_model_set_parameter(s->model, index, &values));
  DIFFERS(sar_predictor_run(s->predictor, &x, NULL, &result),
          "sar_predictor_run is called with a different list of parameters that were set on different ranks: "
          "none");
  DIFFERS(step_of(s, s->model, s->optimizer, SAR_LOSS_MSE, NULL),
          "different list of parameters that were set");
  snprintf(model, sizeof model, "%s/model.safetensors", s->path);
  DIFFERS(sar_model_save(s->model, model), "different list of parameters that were set");
  if (my_rank == size - 1) values = sar_array_double(other, 8, 1);
  OK(sar_model_set_parameter(s->model, index, &values));
  DIFFERS(sar_predictor_run(s->predictor, &x, NULL, &result), name);
  values = sar_array_double(bias, 8, 1);
  OK(sar_model_set_parameter(s->model, index, &values));
  OK(sar_predictor_run(s->predictor, &x, NULL, &result));
  OK(sar_predictor_run(s->predictor, &x, NULL, &result));
  OK(sar_model_save(s->model, model));
}

static void saves(const setting* s) {
  int32_t epoch = 0;
  DIFFERS(sar_checkpoints_save(s->checkpoints, last(5, 6), s->model, s->optimizer), "different epoch");
  OK(sar_checkpoints_save(s->checkpoints, 5, s->model, s->optimizer));
  DIFFERENT_CALLS(my_rank == size - 1
                      ? sar_checkpoints_save(s->checkpoints, 6, s->model, s->optimizer)
                      : sar_checkpoints_load_latest(s->checkpoints, s->model, s->optimizer, &epoch),
                  "rank 0 calls sar_checkpoints_load_latest, rank");
  OK(sar_checkpoints_load_latest(s->checkpoints, s->model, s->optimizer, &epoch));
}

static void orders_edges(const setting* s) {
  double in_order[2 * NODES][1] = {{0}}, given[NODES][1] = {{0}};
  int64_t edges = 0;
  sar_array rows, out = sar_array_double(&given[0][0], NODES, 1);
  OK(sar_graph_num_edges(s->graph, NULL, &edges, NULL, NULL));
  rows = sar_array_double(&in_order[0][0], edges, 1);
  DIFFERS(sar_graph_edges_to_given_order(s->graph, NULL, &rows, last(0, 1), &out),
          "different choice of reverse rows");
  OK(sar_graph_edges_to_given_order(s->graph, NULL, &rows, 0, &out));
}

/* Two node types with the same nodes, and two edge types with the same edges: all arrays fit both. */
static void names_types(const setting* s) {
  double values[2 * NODES] = {0}, loss = 0;
  int64_t edges = 0;
  sar_graph graph = NULL;
  sar_model model = NULL;
  sar_optimizer optimizer = NULL;
  const sar_array x = sar_array_double(&s->x[0][0], NODES, 2), y = sar_array_double(&s->y[0][0], NODES, 2);
  sar_array out = sar_array_double(values, NODES, 2), rows = sar_array_double(values, NODES, 1), ordered;
  const char* const a_or_b = last_text("a", "b");
  const char* const r_or_s = last_text("r", "s");
  OK(sar_graph_create(s->comm, NULL, &graph));
  DIFFERS(sar_graph_add_nodes(graph, a_or_b, NODES, s->ids),
          "different node type on different ranks: a on rank");
  OK(sar_graph_add_nodes(graph, "a", NODES, s->ids));
  OK(sar_graph_add_nodes(graph, "b", NODES, s->ids));
  DIFFERS(sar_graph_add_edges(graph, "a", r_or_s, "a", NODES, s->src, s->dst, NULL, NULL, 0),
          "different edge type on different ranks: a:r:a on rank");
  OK(sar_graph_add_edges(graph, "a", "r", "b", NODES, s->src, s->dst, NULL, NULL, 0));
  OK(sar_graph_add_edges(graph, "a", "s", "b", NODES, s->src, s->dst, NULL, NULL, 0));
  DIFFERENT_CALLS(
      my_rank == size - 1 ? sar_graph_add_nodes(graph, "c", NODES, s->ids) : sar_graph_build(graph),
      "the ranks make different calls");
  OK(sar_graph_build(graph));
  DIFFERS(sar_graph_set_rows(graph, a_or_b, &x), "different node type on different ranks: a on rank");
  OK(sar_graph_set_rows(graph, "a", &x));
  OK(sar_graph_set_rows(graph, "b", &x));
  OK(sar_graph_num_edges(graph, r_or_s, &edges, NULL, NULL));
  ordered = sar_array_double(values + NODES, edges, 1);
  DIFFERS(sar_graph_edges_to_graph_order(graph, r_or_s, &rows, NULL, &ordered), "different edge type");
  DIFFERS(sar_graph_edges_to_given_order(graph, r_or_s, &ordered, 0, &rows), "different edge type");
  OK(sar_graph_edges_to_given_order(graph, last_text("s", "a:s:b"), &ordered, 0, &rows));
  OK(sar_model_create(
      s->comm,
      "{\"sar_model\": 1, \"type\": \"rgcn\", \"in_feats\": 2, \"hidden\": 4, \"out_feats\": 2, "
      "\"layers\": 1, \"node_types\": [\"a\", \"b\"], \"edge_types\": [[\"a\", \"r\", \"b\"], "
      "[\"a\", \"s\", \"b\"]]}",
      1, &model));
  OK(sar_optimizer_create(model, "{\"optimizer\": \"adam\", \"lr\": 0.02}", &optimizer));
  DIFFERS(sar_evaluate(model, graph, a_or_b, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &loss),
          "sar_evaluate is called with a different node type on different ranks: a on rank 0, b on rank");
  DIFFERS(sar_train_step(model, optimizer, graph, a_or_b, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &loss),
          "different node type");
  DIFFERS(sar_evaluate_labels(model, graph, a_or_b, &x, NULL, NODES, s->labels, 0, NULL, &loss),
          "different node type");
  DIFFERS(sar_train_step_labels(model, optimizer, graph, a_or_b, &x, NULL, NODES, s->labels, 0, NULL, &loss),
          "different node type");
  DIFFERS(sar_predict(model, graph, a_or_b, &x, NULL, &out), "different node type");
  OK(sar_predict(model, graph, "b", &x, NULL, &out));
  OK(sar_train_step(model, optimizer, graph, "b", &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &loss));
  OK(sar_optimizer_free(optimizer));
  OK(sar_model_free(model));
  OK(sar_graph_free(graph));
}

int main(int argc, char** argv) {
  setting s;
  int all = 0;
  OK(sar_init());
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  memset(&s, 0, sizeof s);
  if (size > 1) {
    make_setting(&s, argc > 1 ? argv[1] : "differences");
    creates(&s);
    trains(&s);
    sets_parameters(&s);
    saves(&s);
    orders_edges(&s);
    names_types(&s);
    free_setting(&s);
  }
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (my_rank == 0) printf("%d failures\n", all);
  OK(sar_finalize());
  return all == 0 && failures == 0 ? 0 : 1;
}

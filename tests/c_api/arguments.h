// SPDX-License-Identifier: MIT

/* The functions of sar.h with one argument each: all that functions of sar.h take. */
#ifndef SAR_TESTS_ARGUMENTS_H
#define SAR_TESTS_ARGUMENTS_H

#include <sar.h>

/* All that functions of sar.h take. Each takes some of it. */
typedef struct arguments {
  MPI_Comm mpi_comm;
  sar_comm comm;
  sar_graph graph, typed_graph,
      building; /* of one type, of several, and one that waits for nodes and edges */
  sar_model model, typed_model;
  sar_optimizer optimizer, typed_optimizer;
  sar_predictor predictor;
  sar_potential potential;
  sar_learner learner;
  sar_checkpoints checkpoints;
  sar_trace trace;
  int64_t num_nodes, num_owned, num_edges, length, index, num_labels, mask_length;
  const int64_t *ids, *src, *dst, *edge_ids, *labels;
  const int32_t *local_src, *local_dst;
  const char *text, *type, *source, *relation;
  const char *node_type, *edge_type; /* that may be NULL */
  const int32_t* species;
  const sar_array *weight, *x, *edges, *target, *positions, *vectors, *cell, *stress;
  sar_array* out;
  int32_t number;
  uint64_t seed;
  const uint8_t* mask;
  double lr;
  void* result; /* where results go, which has room for all of them */
} arguments;

typedef int (*function)(const arguments*);

/* A new handle as sar.h writes it. */
#define NEW(type) ((type*)a->result)
#define NUMBER64(i) (a->result == NULL ? NULL : (int64_t*)a->result + (i))

static int comm_create(const arguments* a) {
  return sar_comm_create(a->mpi_comm, NEW(sar_comm));
}
static int comm_create_f(const arguments* a) {
  return sar_comm_create_f((int32_t)MPI_Comm_c2f(a->mpi_comm), NEW(sar_comm));
}
static int comm_world(const arguments* a) {
  return sar_comm_world(NEW(sar_comm));
}
static int comm_rank(const arguments* a) {
  return sar_comm_rank(a->comm, NEW(int32_t));
}
static int comm_size(const arguments* a) {
  return sar_comm_size(a->comm, NEW(int32_t));
}
static int comm_threads(const arguments* a) {
  return sar_comm_default_num_threads(a->comm, NEW(int32_t));
}
static int set_num_threads(const arguments* a) {
  return sar_set_num_threads(a->number);
}
static int from_global(const arguments* a) {
  return sar_graph_from_global(a->comm, a->num_nodes, a->ids, a->num_edges, a->src, a->dst, a->edge_ids,
                               a->weight, a->text, NEW(sar_graph));
}
static int from_local(const arguments* a) {
  return sar_graph_from_local(a->comm, a->num_owned, a->num_nodes, a->ids, a->num_edges, a->local_src,
                              a->local_dst, a->edge_ids, a->weight, a->text, NEW(sar_graph));
}
static int rebuild_from_global(const arguments* a) {
  return sar_graph_rebuild_from_global(a->graph, a->num_nodes, a->ids, a->num_edges, a->src, a->dst,
                                       a->edge_ids, a->weight);
}
static int rebuild_from_local(const arguments* a) {
  return sar_graph_rebuild_from_local(a->graph, a->num_owned, a->num_nodes, a->ids, a->num_edges,
                                      a->local_src, a->local_dst, a->edge_ids, a->weight);
}
static int graph_create(const arguments* a) {
  return sar_graph_create(a->comm, a->text, NEW(sar_graph));
}
static int add_nodes(const arguments* a) {
  return sar_graph_add_nodes(a->building, a->type, a->num_nodes, a->ids);
}
static int add_edges(const arguments* a) {
  return sar_graph_add_edges(a->building, a->source, a->relation, a->type, a->num_edges, a->src, a->dst,
                             a->edge_ids, a->weight, a->number);
}
static int build(const arguments* a) {
  return sar_graph_build(a->building);
}
static int num_nodes(const arguments* a) {
  return sar_graph_num_nodes(a->graph, a->node_type, NUMBER64(0), NUMBER64(1));
}
static int num_edges(const arguments* a) {
  return sar_graph_num_edges(a->graph, a->edge_type, NUMBER64(0), NUMBER64(1), NUMBER64(2));
}
static int edge_ids(const arguments* a) {
  return sar_graph_edge_ids(a->graph, a->edge_type, a->length, NUMBER64(0));
}
static int to_graph_order(const arguments* a) {
  return sar_graph_edges_to_graph_order(a->graph, a->edge_type, a->edges, a->weight, a->out);
}
static int to_given_order(const arguments* a) {
  return sar_graph_edges_to_given_order(a->graph, a->edge_type, a->edges, a->number, a->out);
}
static int set_rows(const arguments* a) {
  return sar_graph_set_rows(a->graph, a->node_type, a->x);
}
static int model_create(const arguments* a) {
  return sar_model_create(a->comm, a->text, a->seed, NEW(sar_model));
}
static int model_load(const arguments* a) {
  return sar_model_load(a->comm, a->text, NEW(sar_model));
}
static int model_save(const arguments* a) {
  return sar_model_save(a->model, a->text);
}
static int model_description(const arguments* a) {
  return sar_model_description(a->model, NEW(const char*));
}
static int model_feats(const arguments* a) {
  return sar_model_feats(a->model, NUMBER64(0), NUMBER64(1), NUMBER64(2));
}
static int num_parameters(const arguments* a) {
  return sar_model_num_parameters(a->model, NUMBER64(0));
}
static int parameter(const arguments* a) {
  return sar_model_parameter(a->model, a->index, NULL, NUMBER64(0), NUMBER64(1));
}
static int get_parameter(const arguments* a) {
  return sar_model_get_parameter(a->model, a->index, a->out);
}
static int set_parameter(const arguments* a) {
  return sar_model_set_parameter(a->model, a->index, a->x);
}
static int update_statistics(const arguments* a) {
  return sar_model_update_statistics(a->model, a->x, a->edges, a->target);
}
static int optimizer_create(const arguments* a) {
  return sar_optimizer_create(a->model, a->text, NEW(sar_optimizer));
}
static int get_lr(const arguments* a) {
  return sar_optimizer_get_lr(a->optimizer, NEW(double));
}
static int set_lr(const arguments* a) {
  return sar_optimizer_set_lr(a->optimizer, a->lr);
}
static int train_step(const arguments* a) {
  return sar_train_step(a->model, a->optimizer, a->graph, a->node_type, a->x, a->edges, a->number, a->target,
                        a->mask_length, a->mask, NEW(double));
}
static int train_step_labels(const arguments* a) {
  return sar_train_step_labels(a->model, a->optimizer, a->graph, a->node_type, a->x, a->edges, a->num_labels,
                               a->labels, a->mask_length, a->mask, NEW(double));
}
static int evaluate(const arguments* a) {
  return sar_evaluate(a->model, a->graph, a->node_type, a->x, a->edges, a->number, a->target, a->mask_length,
                      a->mask, NEW(double));
}
static int evaluate_labels(const arguments* a) {
  return sar_evaluate_labels(a->model, a->graph, a->node_type, a->x, a->edges, a->num_labels, a->labels,
                             a->mask_length, a->mask, NEW(double));
}
static int predict(const arguments* a) {
  return sar_predict(a->model, a->graph, a->node_type, a->x, a->edges, a->out);
}
static int predictor_create(const arguments* a) {
  return sar_predictor_create(a->model, a->graph, NEW(sar_predictor));
}
static int predictor_run(const arguments* a) {
  return sar_predictor_run(a->predictor, a->x, a->edges, a->out);
}
static int potential_load(const arguments* a) {
  return sar_potential_load(a->comm, a->text, NEW(sar_potential));
}
static int potential_species(const arguments* a) {
  return sar_potential_species(a->potential, a->type, NEW(int32_t));
}
static int potential_cutoff(const arguments* a) {
  return sar_potential_cutoff(a->potential, NEW(double));
}
static int potential_evaluate(const arguments* a) {
  return sar_potential_evaluate(a->potential, a->graph, a->num_nodes, a->species, a->positions, a->vectors,
                                NEW(double), NULL, NULL, a->out, NULL, NULL, NULL, NULL);
}
static int learner_create(const arguments* a) {
  return sar_learner_create(a->potential, a->node_type, a->index, a->lr, NEW(sar_learner));
}
static int learner_add(const arguments* a) {
  return sar_learner_add(a->learner, a->num_nodes, a->species, a->positions, a->lr, a->vectors, a->cell,
                         a->stress);
}
static int learner_train(const arguments* a) {
  return sar_learner_train(a->learner, a->index, NEW(double), NULL, NULL);
}
static int learner_num_structures(const arguments* a) {
  return sar_learner_num_structures(a->learner, NUMBER64(0));
}
static int checkpoints_create(const arguments* a) {
  return sar_checkpoints_create(a->comm, a->text, a->number, a->seed, NEW(sar_checkpoints));
}
static int checkpoints_save(const arguments* a) {
  return sar_checkpoints_save(a->checkpoints, a->number, a->model, a->optimizer);
}
static int checkpoints_load_latest(const arguments* a) {
  return sar_checkpoints_load_latest(a->checkpoints, a->model, a->optimizer, NEW(int32_t));
}
static int checkpoints_load(const arguments* a) {
  return sar_checkpoints_load(a->checkpoints, a->text, a->model, a->optimizer, NEW(int32_t));
}
static int trace_start(const arguments* a) {
  return sar_trace_start(a->comm, a->text, NEW(sar_trace));
}
static int memory_current(const arguments* a) {
  return sar_memory_current(NUMBER64(0));
}
static int memory_peak(const arguments* a) {
  return sar_memory_peak(NUMBER64(0));
}
/* Functions that free: each frees an object that was made for it. */
static int comm_free(const arguments* a) {
  return sar_comm_free(a->comm);
}
static int graph_free(const arguments* a) {
  return sar_graph_free(a->graph);
}
static int model_free(const arguments* a) {
  return sar_model_free(a->model);
}
static int optimizer_free(const arguments* a) {
  return sar_optimizer_free(a->optimizer);
}
static int predictor_free(const arguments* a) {
  return sar_predictor_free(a->predictor);
}
static int potential_free(const arguments* a) {
  return sar_potential_free(a->potential);
}
static int learner_free(const arguments* a) {
  return sar_learner_free(a->learner);
}
static int checkpoints_free(const arguments* a) {
  return sar_checkpoints_free(a->checkpoints);
}
static int trace_write(const arguments* a) {
  return sar_trace_write(a->trace);
}

#endif /* SAR_TESTS_ARGUMENTS_H */

// SPDX-License-Identifier: MIT

/* sar.h: training and prediction with graph neural networks under MPI, for programs in C (C99 or later) and
 * in every language that can call C.
 *
 *     sar_comm comm;
 *     sar_graph graph;
 *     sar_model model;
 *     sar_optimizer optimizer;
 *     const char* description =
 *         "{\"sar_model\": 1, \"type\": \"sage\", \"in_feats\": 3, \"out_feats\": 3}";
 *     if (sar_comm_create(MPI_COMM_WORLD, &comm) != SAR_OK ||
 *         sar_graph_from_global(comm, n, ids, m, src, dst, NULL, NULL, NULL, &graph) != SAR_OK ||
 *         sar_model_create(comm, description, 1, &model) != SAR_OK ||
 *         sar_optimizer_create(model, "{\"optimizer\": \"adam\", \"lr\": 0.01}", &optimizer) != SAR_OK)
 *       fprintf(stderr, "%s\n", sar_last_error());
 *     sar_array x = sar_array_double(state, n, 3), y = sar_array_double(next, n, 3);
 *     sar_train_step(model, optimizer, graph, NULL, &x, NULL, SAR_LOSS_MSE, &y, 0, NULL, &loss);
 *
 * Every function returns a status, SAR_OK or one of SAR_ERROR_..., unless its comment says otherwise.
 * sar_last_error() returns the text of the last error. No function ends the program or throws. If a function
 * fails, its output arguments are unchanged, unless its comment says otherwise.
 *
 * Handles (sar_comm, sar_graph, ...) are created by the library and released by the function whose name ends
 * with _free. The value of a handle is never reused: a null, freed or unknown handle, or one of another type,
 * gives SAR_ERROR_HANDLE. The object behind a handle lives as long as another object needs it: handles may be
 * freed in any order, as long as the order is the same on all ranks.
 *
 * "Collective" means that all ranks of the communicator must call the function, in the same order. If one
 * rank fails, all ranks return the same status with the same text ("rank 2: ..."), and all of them can
 * continue. This includes null pointers, wrong lengths and invalid handles, as long as at least one handle
 * that the rank passes is valid, or all of its objects belong to one sar_comm; otherwise the rank has no
 * communicator and fails alone. All objects in a call must belong to the same sar_comm. Functions that are
 * not marked "Collective" do not communicate; the only exception is that freeing the last handle of a
 * communicator frees its duplicate.
 *
 * Strings (descriptions, file names) are null-terminated UTF-8. Descriptions are JSON objects; an unknown key
 * is an error that lists the known keys. Strings must be the same on all ranks, though only rank 0 reads and
 * writes files. A file that cannot be read or written gives SAR_ERROR_INPUT.
 *
 * A line with @param has the names of arguments, two blanks, and before a colon what bindings for other
 * languages must know: the [shape], which for a list is the argument that has its length; "may be NULL";
 * "from 0" if it numbers something; "0 or 1" if it means false or true; "usually X" if X is its value where a
 * program gives none; "freed"; or "as in" another function. bindings/fortran/generate.py reads these lines.
 *
 * MPI must be initialized with MPI_THREAD_FUNNELED or higher. With MPI_THREAD_SERIALIZED any thread may call,
 * one at a time in the whole process; with MPI_THREAD_MULTIPLE, one at a time per communicator. If the
 * library was built for both precisions, this interface uses single precision. */
#ifndef SAR_H
#define SAR_H

#include <sar/mpi.h> /* <mpi.h>, which must be of the MPI that the library was built with */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SAR_API __attribute__((visibility("default")))
#else
#define SAR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Status. */

enum {
  SAR_OK = 0,
  SAR_ERROR_INPUT = 1, /* an argument, a description, a file or a graph that cannot be used as given */
  SAR_ERROR_SHAPE = 2, /* arrays that do not fit together, or not to the graph or the model */
  SAR_ERROR_COMMUNICATION = 3, /* MPI failed or is not initialized; the ranks make different calls */
  SAR_ERROR_MEMORY = 4,        /* memory could not be had; the text says how much */
  SAR_ERROR_HANDLE = 5,        /* a handle that is null, freed, unknown or of another kind */
  SAR_ERROR_INTERNAL = 6       /* anything else */
};

/* Returns the text of the last error of a function on this thread, or "" if there was none. The pointer is
 * valid until the next error on this thread. */
SAR_API const char* sar_last_error(void);

/* Makes the next collective function that this thread calls return SAR_ERROR_SHAPE with this text on all
 * ranks, whatever its arguments are. Bindings for other languages call it before that function if they find
 * an error that sar.h cannot see, for example in the lengths of two arrays: a rank that reported it alone
 * would leave the others waiting. Returns SAR_ERROR_INPUT if `text` is null. */
SAR_API int sar_refuse_next(const char* text);

/* Environment. */

/* Returns the version of the library, for example "1.2.0". */
SAR_API const char* sar_version(void);

/* Precision of the values in an array. */
enum { SAR_FLOAT32 = 0, SAR_FLOAT64 = 1 };

/* Returns the precision that the library computes in, SAR_FLOAT32 or SAR_FLOAT64. */
SAR_API int32_t sar_precision(void);

/* Initializes MPI with MPI_THREAD_FUNNELED, unless the program has already initialized MPI. Programs that
 * call MPI_Init_thread themselves do not need this function. Returns SAR_ERROR_COMMUNICATION if MPI is
 * finalized or provides less than MPI_THREAD_FUNNELED. */
SAR_API int sar_init(void);

/* Finalizes MPI if sar_init() initialized it, and does nothing otherwise. Free all handles first. */
SAR_API int sar_finalize(void);

/* Sets the number of threads of the library's loops; 0: all processors that the process is bound to. Returns
 * SAR_ERROR_INPUT if `threads` is negative. */
SAR_API int sar_set_num_threads(int32_t threads);

/* Communicators. */

/* The ranks that compute together. */
typedef struct sar_comm_s* sar_comm;

/* Duplicates the intra-communicator `mpi_comm`, which remains the caller's. Returns SAR_ERROR_COMMUNICATION
 * if MPI is not initialized, or for MPI_COMM_NULL. Collective. */
SAR_API int sar_comm_create(MPI_Comm mpi_comm, sar_comm* comm);

/* Duplicates an intra-communicator of Fortran, as sar_comm_create() does one of C. With the module mpi_f08,
 * pass comm%MPI_VAL. Collective. */
SAR_API int sar_comm_create_f(int32_t fortran_comm, sar_comm* comm);

/* The same for MPI_COMM_WORLD. Collective. */
SAR_API int sar_comm_world(sar_comm* comm);

/* Returns the rank of the caller, from 0 as in MPI. */
SAR_API int sar_comm_rank(sar_comm comm, int32_t* rank);

/* Returns the number of ranks. */
SAR_API int sar_comm_size(sar_comm comm, int32_t* size);

/* Returns the number of threads per rank with which the ranks of a node share its cores: the number of
 * processors that the rank is bound to, divided by the number of ranks of the node that are bound to the same
 * ones. Collective. */
SAR_API int sar_comm_default_num_threads(sar_comm comm, int32_t* threads);

/* Frees the handle. The duplicate is freed with the last handle that uses it; all ranks must free their
 * handles in the same order, before MPI_Finalize. Collective. */
SAR_API int sar_comm_free(sar_comm comm);

/* Arrays. */

/* Layout of an array in memory. Consecutive rows, or consecutive fields, are `leading` values apart:
 *
 *     SAR_NODE_FIELD  data[row * leading + field]   C: data[rows][fields], Fortran: data(fields, rows)
 *     SAR_FIELD_NODE  data[field * leading + row]   C: data[fields][rows], Fortran: data(rows, fields)
 */
enum { SAR_NODE_FIELD = 0, SAR_FIELD_NODE = 1 };

/* An array of the caller with one row per node or edge. An array in the library's precision, in the order
 * SAR_NODE_FIELD and without gaps, is used without a copy. Any other array is converted, in one pass over its
 * values, when a function reads or writes it. `data` may be null if rows or fields is 0. */
typedef struct sar_array {
  void* data;        /* not written to where a function takes a const sar_array */
  int32_t precision; /* SAR_FLOAT32 or SAR_FLOAT64 */
  int32_t order;     /* SAR_NODE_FIELD or SAR_FIELD_NODE */
  int64_t rows;
  int64_t fields;
  int64_t leading;     /* 0: no gaps, which is fields for SAR_NODE_FIELD and rows for SAR_FIELD_NODE */
  int64_t reserved[2]; /* 0 */
} sar_array;

/* Return a description of the array [rows][fields] without gaps. Begin with one of these, so that all fields
 * are set, and change order and leading. */
SAR_API sar_array sar_array_float(const float* data, int64_t rows, int64_t fields);
SAR_API sar_array sar_array_double(const double* data, int64_t rows, int64_t fields);

/* Graphs. */

/* A graph whose nodes and edges are distributed over the ranks. It has types of nodes and types of edges.
 * Most graphs have one of each, which nothing needs to name. An edge type is named by its relation, "heats",
 * or if several have that name, "solid:heats:fluid". */
typedef struct sar_graph_s* sar_graph;

/* Creates a graph from the nodes and edges of each rank, distributed over the ranks. Keys of the options:
 *
 *     "add_reverse_edges"  true: add an edge (v, u) with the same weight for each edge (u, v); default false
 *     "mode"               "rematerialize" (default), "sequential" or "one_shot": what is kept of the halo
 *     "pipeline_depth"     stages of halo rows in flight while one is processed; default 1
 *     "max_halo_bytes"     bytes of the rows of one stage; default 0: a quarter of the rows of the rank that
 *                          owns most, an eighth in a backward pass that also fetches rows, 1 MiB at least
 *     "edge_chunk", "serial_messages", "reproducible": as GraphOptions in C++
 *     "halo_format"        halo row format: "exact" (default), or another name of docs/message_passing.md
 *
 * The arrays are not needed after the call. Returns SAR_ERROR_INPUT for a node that is given twice, an edge
 * with an end that no rank gives, edge ids that are not unique, or options that differ between ranks.
 * Collective.
 *
 * @param[in] node_ids  [num_nodes]: ids of the nodes that this rank owns, any numbers in any order. Node i of
 *     this list is row i of every node array
 * @param[in] src, dst  [num_edges]: edge k goes from node src[k] to node dst[k], ids of nodes on any rank.
 *     Each directed edge must be given once, by any rank
 * @param[in] edge_ids  [num_edges], may be NULL: unique ids over all ranks, from 0 to 2^61 - 1, which key
 *     random draws. NULL: 0, 1, ... by rank and position
 * @param[in] edge_weight  [num_edges, 1], may be NULL on all ranks: weights of the edges
 * @param[in] options  may be NULL: a JSON object */
SAR_API int sar_graph_from_global(sar_comm comm, int64_t num_nodes, const int64_t* node_ids,
                                  int64_t num_edges, const int64_t* src, const int64_t* dst,
                                  const int64_t* edge_ids, const sar_array* edge_weight, const char* options,
                                  sar_graph* graph);

/* The same for a program with its own numbering on each rank: its nodes, and after them its ghosts, which are
 * nodes of other ranks. Also returns SAR_ERROR_INPUT for an edge whose end is neither a node nor a ghost, and
 * for a ghost that no rank owns. Collective.
 *
 * @param[in] num_owned  the number of nodes; the other num_local - num_owned are ghosts
 * @param[in] global_ids  [num_local]: host ids, of the nodes and then of the ghosts
 * @param[in] src, dst  [num_edges], from 0: edge k goes from src[k] to dst[k] in this numbering
 * @param[in] edge_ids, edge_weight, options  as in sar_graph_from_global() */
SAR_API int sar_graph_from_local(sar_comm comm, int64_t num_owned, int64_t num_local,
                                 const int64_t* global_ids, int64_t num_edges, const int32_t* src,
                                 const int32_t* dst, const int64_t* edge_ids, const sar_array* edge_weight,
                                 const char* options, sar_graph* graph);

/* Replaces the nodes and edges of a graph after the mesh has changed, as if sar_graph_from_global() had
 * created it with the same options. The handle stays valid. Models and optimizers do not depend on a graph
 * and are not affected. Predictors of the graph follow it: the next run reallocates the buffers, expects
 * arrays of the new sizes and releases what belongs to the old graph. Edge arrays have new sizes and a new
 * order (sar_graph_num_edges(), sar_graph_edge_ids(), sar_graph_edges_to_graph_order()).
 *
 * If the function fails, the graph is unchanged. The old and the new graph are therefore in memory at the
 * same time; if memory does not suffice for both, free the predictors and the graph and create new ones.
 * Errors as in sar_graph_from_global(). Collective.
 *
 * @param[in] node_ids, src, dst, edge_ids, edge_weight  as in sar_graph_from_global() */
SAR_API int sar_graph_rebuild_from_global(sar_graph graph, int64_t num_nodes, const int64_t* node_ids,
                                          int64_t num_edges, const int64_t* src, const int64_t* dst,
                                          const int64_t* edge_ids, const sar_array* edge_weight);

/* The same with the rank's own numbering. A graph that was created by one of the two functions may be rebuilt
 * by the other. A graph of several types gets one node type and one edge type. Collective.
 *
 * @param[in] num_owned, global_ids, src, dst, edge_ids, edge_weight  as in sar_graph_from_local() */
SAR_API int sar_graph_rebuild_from_local(sar_graph graph, int64_t num_owned, int64_t num_local,
                                         const int64_t* global_ids, int64_t num_edges, const int32_t* src,
                                         const int32_t* dst, const int64_t* edge_ids,
                                         const sar_array* edge_weight);

/* Creates a graph with types of nodes and edges, without nodes at first: add the nodes of each type, then the
 * edges of each type, and build it.
 *
 *     sar_graph_create(comm, NULL, &graph);
 *     sar_graph_add_nodes(graph, "fluid", num_fluid, fluid_ids);
 *     sar_graph_add_nodes(graph, "solid", num_solid, solid_ids);
 *     sar_graph_add_edges(graph, "fluid", "flows", "fluid", n, src, dst, NULL, NULL, 0);
 *     sar_graph_add_edges(graph, "solid", "heats", "fluid", m, from, to, NULL, NULL, 0);
 *     sar_graph_build(graph);
 *
 * The options are those of sar_graph_from_global(), without "add_reverse_edges". Collective.
 *
 * @param[in] options  may be NULL: a JSON object */
SAR_API int sar_graph_create(sar_comm comm, const char* options, sar_graph* graph);

/* Adds the nodes of a type for the next build, in the order of the types. Each type has its own ids. The
 * array is copied. Returns SAR_ERROR_INPUT if the type differs between ranks or was added before. Collective.
 *
 * @param[in] node_ids  [num_nodes]: ids of the nodes that this rank owns */
SAR_API int sar_graph_add_nodes(sar_graph graph, const char* type, int64_t num_nodes,
                                const int64_t* node_ids);

/* Adds the edges of the type (source, relation, destination) for the next build, in the order of the types:
 * edges from nodes of the type `source` to nodes of the type `destination`. The arrays are copied. Errors as
 * above. Collective.
 *
 * @param[in] src, dst, edge_ids, edge_weight  as in sar_graph_from_global()
 * @param[in] add_reverse_edges  0 or 1: 1 adds an edge (v, u) for each edge (u, v) of a type whose ends have
 *     one type */
SAR_API int sar_graph_add_edges(sar_graph graph, const char* source, const char* relation,
                                const char* destination, int64_t num_edges, const int64_t* src,
                                const int64_t* dst, const int64_t* edge_ids, const sar_array* edge_weight,
                                int32_t add_reverse_edges);

/* Makes the graph of the nodes and edges that were added since the last build. After the first build, it
 * replaces the graph, for example when the mesh has changed, and drops the rows of sar_graph_set_rows().
 * Returns SAR_ERROR_INPUT if nothing was added, for an edge type whose ends are no node types, and as
 * sar_graph_from_global(). If it fails, the graph and what was added are unchanged. Collective. */
SAR_API int sar_graph_build(sar_graph graph);

/* Returns the number of nodes on this rank and on all ranks.
 *
 * @param[in] type  may be NULL: the node type; by default all types together
 * @param[out] nodes  may be NULL: of this rank
 * @param[out] global_nodes  may be NULL: of all ranks */
SAR_API int sar_graph_num_nodes(sar_graph graph, const char* type, int64_t* nodes, int64_t* global_nodes);

/* Returns the number of edges, with the reverse edges. In the graph's order, the edges of this rank are the
 * in-edges of its nodes.
 *
 * @param[in] edge_type  may be NULL: the edge type; by default all types together
 * @param[out] edges  may be NULL: in the graph's order, of this rank
 * @param[out] global_edges  may be NULL: of all ranks
 * @param[out] given_edges  may be NULL: in the program's order, which this rank gave */
SAR_API int sar_graph_num_edges(sar_graph graph, const char* edge_type, int64_t* edges, int64_t* global_edges,
                                int64_t* given_edges);

/* Writes the ids of the edges in the graph's order.
 *
 * @param[in] edge_type  may be NULL: the edge type; by default the only one
 * @param[out] edge_ids  [length]: `length` must be the number of these edges on this rank */
SAR_API int sar_graph_edge_ids(sar_graph graph, const char* edge_type, int64_t length, int64_t* edge_ids);

/* Converts rows of the edges that this rank gave to rows of the edges in the graph's order, as models expect
 * them. Collective.
 *
 * @param[in] edge_type  may be NULL: the edge type; by default the only one
 * @param[in] rows  [given_edges, fields]
 * @param[in] reverse_rows  [given_edges, fields], may be NULL on all ranks: with "add_reverse_edges", the
 *     rows of the reverse edges. NULL: a reverse edge gets the row of the original edge
 * @param[out] out  [edges, fields] */
SAR_API int sar_graph_edges_to_graph_order(sar_graph graph, const char* edge_type, const sar_array* rows,
                                           const sar_array* reverse_rows, sar_array* out);

/* The inverse. Collective.
 *
 * @param[in] edge_type  may be NULL: the edge type; by default the only one
 * @param[in] rows  [edges, fields]
 * @param[in] reverse  0 or 1: 1 returns the rows of the reverse edges
 * @param[out] out  [given_edges, fields] */
SAR_API int sar_graph_edges_to_given_order(sar_graph graph, const char* edge_type, const sar_array* rows,
                                           int32_t reverse, sar_array* out);

/* Sets the rows of a node type that models read where a function gives the rows of another type. They are
 * copied, and stay until they are set again or the graph is built again. A model reads in_feats fields, or
 * those that "inputs" of its description says for the type. Collective.
 *
 * @param[in] type  may be NULL: the node type; by default the only one
 * @param[in] x  [nodes of the type, fields] */
SAR_API int sar_graph_set_rows(sar_graph graph, const char* type, const sar_array* x);

SAR_API int sar_graph_free(sar_graph graph);

/* Models. */

/* A network that a JSON description says, with its weights. */
typedef struct sar_model_s* sar_model;

/* Creates a network from a JSON description, with weights drawn from `seed`. Networks of the types rgcn, hgt,
 * hetero-sage and hetero-gat read node and edge types; the others are for graphs with one of each. Returns
 * SAR_ERROR_INPUT if a key of the description or the seed differs between ranks; the weights are the same on
 * all ranks. Collective. */
SAR_API int sar_model_create(sar_comm comm, const char* description, uint64_t seed, sar_model* model);

/* Loads a network from a .safetensors file with its description and weights, or from a .json description
 * that names its weight file. Rank 0 reads the files. Collective. */
SAR_API int sar_model_load(sar_comm comm, const char* path, sar_model* model);

/* Writes the description and the weights to a .safetensors file. Rank 0 writes the file. Collective. */
SAR_API int sar_model_save(sar_model model, const char* path);

/* Returns the complete description as JSON. The string belongs to the model and is valid until the handle is
 * freed. */
SAR_API int sar_model_description(sar_model model, const char** description);

/* Returns the numbers of columns of node features, results, and edge features (0: the model takes no edge
 * features). */
SAR_API int sar_model_feats(sar_model model, int64_t* in_feats, int64_t* out_feats, int64_t* edge_feats);

/* Returns the number of parameters, which are named tensors. */
SAR_API int sar_model_num_parameters(sar_model model, int64_t* count);

/* Returns the name and shape [rows, fields] of a parameter. A vector is [rows, 1]; of a tensor with more
 * dimensions, the last ones are combined.
 *
 * @param[in] index  from 0
 * @param[out] name  may be NULL: belongs to the model and is valid until the handle is freed
 * @param[out] rows, fields  may be NULL */
SAR_API int sar_model_parameter(sar_model model, int64_t index, const char** name, int64_t* rows,
                                int64_t* fields);

/* Copies the values of a parameter from the model.
 *
 * @param[in] index  from 0
 * @param[out] values  [rows, fields] */
SAR_API int sar_model_get_parameter(sar_model model, int64_t index, sar_array* values);

/* Copies the values of a parameter to the model. Set the same values on all ranks: otherwise the next
 * collective call that reads the model returns SAR_ERROR_INPUT.
 *
 * @param[in] index  from 0
 * @param[in] values  [rows, fields] */
SAR_API int sar_model_set_parameter(sar_model model, int64_t index, const sar_array* values);

/* Adds rows to the statistics of a model whose description has "normalize": true: mean and deviation of each
 * column over the rows of all ranks and all calls. A rank may have no rows. Call it before the first step,
 * with the rows of the training set; steps, losses and predictions of such a model without statistics return
 * SAR_ERROR_INPUT. So do values that are not finite, and a model that does not normalize. Model files and
 * checkpoints contain the statistics. Losses stay in the units of the targets. Collective.
 *
 * @param[in] x  [any, in_feats]
 * @param[in] edges  [any, edge_feats]
 * @param[in] target  [any, out_feats] */
SAR_API int sar_model_update_statistics(sar_model model, const sar_array* x, const sar_array* edges,
                                        const sar_array* target);

SAR_API int sar_model_free(sar_model model);

/* Training. */

/* An optimizer of all parameters of a model. */
typedef struct sar_optimizer_s* sar_optimizer;

/* Creates an optimizer of all parameters of a model. The description is a JSON object with the keys
 *
 *     "optimizer"     "sgd", "adam" or "adamw"
 *     "lr"            learning rate, default 0.001
 *     "weight_decay"  default 0
 *     "momentum"      "sgd" only, default 0
 *     "beta1", "beta2", "eps"  "adam" and "adamw" only, defaults 0.9, 0.999, 1e-8
 *     "clip_grad_norm"   multiplies all gradients by min(1, c / (n + 1e-6)), where c is this number and n the
 *                        Euclidean norm of all of them together; default: no limit
 *     "clip_grad_value"  limits each value of the gradients to [-c, c], after clip_grad_norm; default: none
 *     "require_finite"   true (default): a step whose loss or gradients are not finite returns
 *                        SAR_ERROR_INPUT and changes nothing; false: such a step is taken, after which
 *                        weights may be NaN
 *     "precision"        "full" (default), or "mixed": steps store activations and their gradients in
 *                        bfloat16; parameters, losses and sums stay in single precision, and so do
 *                        evaluations and predictions. An error in a library of double precision
 *
 * Returns SAR_ERROR_INPUT if a value differs between ranks. Collective. */
SAR_API int sar_optimizer_create(sar_model model, const char* description, sar_optimizer* optimizer);

/* Return the learning rate, and set the learning rate of the following steps. Set the same rate on all ranks:
 * otherwise the next step returns SAR_ERROR_INPUT. So does setting a rate that is negative or not finite. */
SAR_API int sar_optimizer_get_lr(sar_optimizer optimizer, double* lr);
SAR_API int sar_optimizer_set_lr(sar_optimizer optimizer, double lr);

SAR_API int sar_optimizer_free(sar_optimizer optimizer);

/* Losses: means over all elements of the rows of all ranks, with the difference d = prediction - target. */
enum {
  SAR_LOSS_MSE = 0,   /* d^2 */
  SAR_LOSS_L1 = 1,    /* |d| */
  SAR_LOSS_HUBER = 2, /* |d| <= 1 ? d^2 / 2 : |d| - 1/2 */
  SAR_LOSS_BCE = 3    /* -t log sigmoid(y) - (1 - t) log(1 - sigmoid(y)): prediction y, target t in [0, 1] */
};

/* Performs a training step: forward pass, loss, backward pass, sum of the gradients over all ranks, optimizer
 * step.
 *
 * A network of a graph with types reads x for one node type, whose results the loss is of, and for the others
 * the rows of sar_graph_set_rows(). Edge weights of the graph are used.
 *
 * Returns SAR_ERROR_SHAPE for arrays of the wrong size and SAR_ERROR_INPUT if no rank has an included row, if
 * a node type has no rows, if the types of the graph are not those of the model's description, in its order,
 * or if the loss or a gradient is not finite ("require_finite" in sar_optimizer_create()). After an error,
 * model and optimizer are unchanged. Collective.
 *
 * @param[in] type  may be NULL: the node type of x, target, labels and mask; by default the only one
 * @param[in] x  [nodes, in_feats]: or as many fields as "inputs" of the description says for the type
 * @param[in] edges  [edges, edge_feats], may be NULL: rows in the graph's order. NULL if the model takes no
 *     edge features
 * @param[in] loss_kind  usually SAR_LOSS_MSE: one of SAR_LOSS_...
 * @param[in] target  [nodes, out_feats]
 * @param[in] mask  [mask_length], may be NULL: a value for each node; rows with a 0 are excluded from the
 *     loss. NULL, with length 0: all rows are included
 * @param[out] loss  may be NULL: the value before the step, the same on every rank */
SAR_API int sar_train_step(sar_model model, sar_optimizer optimizer, sar_graph graph, const char* type,
                           const sar_array* x, const sar_array* edges, int32_t loss_kind,
                           const sar_array* target, int64_t mask_length, const uint8_t* mask, double* loss);

/* The same with the cross entropy of classes, over the M rows with a nonzero mask:
 *
 *     -1/M sum_i log softmax(y_i)[labels_i]
 *
 * Collective.
 *
 * @param[in] labels  [num_labels], from 0: a class below out_feats for each node; labels of excluded rows are
 *     ignored
 * @param[in] type, x, edges, mask  as in sar_train_step()
 * @param[out] loss  as in sar_train_step() */
SAR_API int sar_train_step_labels(sar_model model, sar_optimizer optimizer, sar_graph graph, const char* type,
                                  const sar_array* x, const sar_array* edges, int64_t num_labels,
                                  const int64_t* labels, int64_t mask_length, const uint8_t* mask,
                                  double* loss);

/* Return the losses without a training step, in evaluation mode and without gradients. Collective.
 *
 * @param[in] type, x, edges, loss_kind, target, mask  as in sar_train_step()
 * @param[in] labels  as in sar_train_step_labels()
 * @param[out] loss  the same on every rank */
SAR_API int sar_evaluate(sar_model model, sar_graph graph, const char* type, const sar_array* x,
                         const sar_array* edges, int32_t loss_kind, const sar_array* target,
                         int64_t mask_length, const uint8_t* mask, double* loss);
SAR_API int sar_evaluate_labels(sar_model model, sar_graph graph, const char* type, const sar_array* x,
                                const sar_array* edges, int64_t num_labels, const int64_t* labels,
                                int64_t mask_length, const uint8_t* mask, double* loss);

/* Prediction. */

/* Computes the results of the nodes, of one node type if the graph has several, in evaluation mode. A
 * predictor does the same for graphs with one, without allocations. If the function fails, `out` may be
 * partly written. Collective.
 *
 * @param[in] type, x, edges  as in sar_train_step()
 * @param[out] out  [nodes, out_feats] */
SAR_API int sar_predict(sar_model model, sar_graph graph, const char* type, const sar_array* x,
                        const sar_array* edges, sar_array* out);

/* A model with the buffers that it needs for a graph. */
typedef struct sar_predictor_s* sar_predictor;

/* Creates a predictor: a model with preallocated buffers for a graph. Create it once and run it many times.
 * Each run reads the current weights, so that training may continue. If the graph is rebuilt, the predictor
 * uses the new graph. Returns SAR_ERROR_INPUT for a network that reads node and edge types (sar_predict()).
 * Collective. */
SAR_API int sar_predictor_create(sar_model model, sar_graph graph, sar_predictor* predictor);

/* Computes the results of the nodes, in evaluation mode. After the first run (or the first run after a
 * rebuild) it does not allocate memory if the arrays need no conversion. If the function fails, `out` may be
 * partly written. Collective.
 *
 * @param[in] x  [nodes, in_feats]
 * @param[in] edges  [edges, edge_feats], may be NULL: rows in the graph's order. NULL if the model takes no
 *     edge features
 * @param[out] out  [nodes, out_feats]: must not overlap x or edges */
SAR_API int sar_predictor_run(sar_predictor predictor, const sar_array* x, const sar_array* edges,
                              sar_array* out);

SAR_API int sar_predictor_free(sar_predictor predictor);

/* Potentials of atoms. */

/* A potential of atoms: energies, forces and virials. */
typedef struct sar_potential_s* sar_potential;

/* Loads a potential from a .safetensors file, or from a .json file that names a weight file or the files of
 * a committee. Its parameters are constants. Collective. */
SAR_API int sar_potential_load(sar_comm comm, const char* path, sar_potential* potential);

/* Returns the number of a species. Returns SAR_ERROR_INPUT for a name that the potential does not know, with
 * a text that lists the names that it knows.
 *
 * @param[out] number  from 0 */
SAR_API int sar_potential_species(sar_potential potential, const char* name, int32_t* number);

/* Returns the distance beyond which atoms do not interact. */
SAR_API int sar_potential_cutoff(sar_potential potential, double* cutoff);

/* Computes the energy of the atoms of all ranks and its derivatives. The atoms of this rank are the nodes of
 * the graph. The graph has an edge for each pair of atoms within the cutoff, in both directions, and one for
 * each periodic image; edges farther apart may be among them. Give positions, and in a periodic cell edges;
 * or edges alone, as a host does whose positions are in double precision. Results are in the units of the
 * data that the potential was trained on. Memory is kept for the next call with the same graph. Collective.
 *
 * @param[in] species  [num_atoms], from 0: numbers of sar_potential_species()
 * @param[in] positions  [atoms, 3], may be NULL
 * @param[in] edges  [edges, 3], may be NULL: rows in the graph's order (sar_graph_edge_ids()). With
 *     positions, the shift of the source of each edge to its periodic image, or NULL for 0; without
 *     positions, the vector from the destination to the source of each edge
 * @param[out] energy  may be NULL: of all ranks
 * @param[out] virial  [3, 3], may be NULL: minus the derivative of the energy in a strain, of all ranks
 * @param[out] energies  [num_atoms], may be NULL: of each atom
 * @param[out] forces  [atoms, 3], may be NULL
 * @param[out] virials  [atoms, 9], may be NULL on all ranks: half of the terms of the edges at each atom,
 *     which cost one more exchange of rows
 * @param[out] centroid_virials  [atoms, 9], may be NULL on all ranks: the terms of the edges that begin at
 *     each atom, which times its velocity are its share of the flux of energy
 * @param[out] energy_deviation  may be NULL: standard deviation of the energies of a committee's heads, of
 *     all ranks; 0 without a committee
 * @param[out] force_deviations  [num_atoms], may be NULL: root of the mean square of the differences between
 *     the forces of a committee's heads and their mean, for each atom. Computed if a rank asks for them, with
 *     a pass for each head; 0 without a committee */
SAR_API int sar_potential_evaluate(sar_potential potential, sar_graph graph, int64_t num_atoms,
                                   const int32_t* species, const sar_array* positions, const sar_array* edges,
                                   double* energy, double* virial, double* energies, sar_array* forces,
                                   sar_array* virials, sar_array* centroid_virials, double* energy_deviation,
                                   double* force_deviations);

SAR_API int sar_potential_free(sar_potential potential);

/* Structures with labels, and a copy of a potential that is trained on them while a program uses it. */
typedef struct sar_learner_s* sar_learner;

/* Creates a learner of a potential, whose weights sar_learner_train() changes. With a directory, goes on
 * from its latest checkpoint, with all structures of it, such as that of train --save-learner. The potential
 * may be freed before the learner. Returns SAR_ERROR_INPUT for a checkpoint of another potential, a committee
 * of several files, and a batch size below 1. Collective.
 *
 * @param[in] directory  may be NULL: no checkpoints are read or written
 * @param[in] batch_size  structures of a step
 * @param[in] lr  learning rate of Adam */
SAR_API int sar_learner_create(sar_potential potential, const char* directory, int64_t batch_size, double lr,
                               sar_learner* learner);

/* Adds a whole structure, which all ranks give; that of rank 0 counts. Give forces, a stress, an energy, or
 * several of them. Collective.
 *
 * @param[in] species  [num_atoms], from 0: numbers of sar_potential_species()
 * @param[in] positions  [atoms, 3]
 * @param[in] energy  NaN if it is not known
 * @param[in] forces  [atoms, 3], may be NULL
 * @param[in] cell  [vectors, 3], may be NULL: three vectors in which the structure repeats. NULL if it does
 * not
 * @param[in] stress  [vectors, 3], may be NULL: derivative of the energy in a strain, over the volume: three
 *     rows */
SAR_API int sar_learner_add(sar_learner learner, int64_t num_atoms, const int32_t* species,
                            const sar_array* positions, double energy, const sar_array* forces,
                            const sar_array* cell, const sar_array* stress);

/* Makes steps on batches of all structures, gives the potential the new weights and, with a directory, writes
 * a checkpoint. The results are means over the steps, before each of them. Returns SAR_ERROR_INPUT, and
 * changes nothing, without structures and if the loss is not finite. Collective.
 *
 * @param[out] loss  may be NULL
 * @param[out] energy_error  may be NULL: mean absolute error of the energy of an atom
 * @param[out] force_error  may be NULL: mean absolute error of components of forces */
SAR_API int sar_learner_train(sar_learner learner, int64_t steps, double* loss, double* energy_error,
                              double* force_error);

/* Returns the number of structures. */
SAR_API int sar_learner_num_structures(sar_learner learner, int64_t* num_structures);

SAR_API int sar_learner_free(sar_learner learner);

/* Checkpoints. */

/* The checkpoints of a run in a directory. */
typedef struct sar_checkpoints_s* sar_checkpoints;

/* Opens the checkpoints of a run in a directory, which is created if necessary. Only the last `keep_last`
 * checkpoints are kept. `seed` is the seed of the run: checkpoints with another seed are not loaded. Only
 * rank 0 accesses the directory; after the first save, other runs cannot save in it while the handle exists.
 * Collective. */
SAR_API int sar_checkpoints_create(sar_comm comm, const char* directory, int32_t keep_last, uint64_t seed,
                                   sar_checkpoints* checkpoints);

/* Saves the training state as checkpoint-<epoch>.safetensors. Collective. */
SAR_API int sar_checkpoints_save(sar_checkpoints checkpoints, int32_t epoch, sar_model model,
                                 sar_optimizer optimizer);

/* Restores model and optimizer from the latest checkpoint and returns its epoch. Without a checkpoint, the
 * epoch is -1 and the state is unchanged. Collective. */
SAR_API int sar_checkpoints_load_latest(sar_checkpoints checkpoints, sar_model model, sar_optimizer optimizer,
                                        int32_t* epoch);

/* The same from the file `path`. Collective. */
SAR_API int sar_checkpoints_load(sar_checkpoints checkpoints, const char* path, sar_model model,
                                 sar_optimizer optimizer, int32_t* epoch);

SAR_API int sar_checkpoints_free(sar_checkpoints checkpoints);

/* Timelines. */

/* A recording of what each rank computes, sends and waits for. */
typedef struct sar_trace_s* sar_trace;

/* Starts to record what each rank computes, sends and waits for, until sar_trace_write(). Only one trace at a
 * time. Collective. */
SAR_API int sar_trace_start(sar_comm comm, const char* path, sar_trace* trace);

/* Ends the recording and writes it in a format for Perfetto. Collective.
 *
 * @param[in] trace  freed: even if writing fails */
SAR_API int sar_trace_write(sar_trace trace);

/* Memory. */

/* Returns the bytes that the library has allocated in this process. The caller's arrays are not counted. */
SAR_API int sar_memory_current(int64_t* bytes);

/* Returns the peak of these bytes since the start or the last sar_memory_reset_peak(). */
SAR_API int sar_memory_peak(int64_t* bytes);

/* Sets the peak to the present number of bytes. */
SAR_API int sar_memory_reset_peak(void);

/* Returns unused pages to the operating system. */
SAR_API int sar_memory_release(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SAR_H */

! SPDX-License-Identifier: MIT

!> Training and prediction with graph neural networks under MPI, for Fortran 2008: the C interface sar.h as
!> derived types.
!>
!>     type(sar_communicator) :: comm
!>     type(sar_graph)        :: graph
!>     type(sar_model)        :: model
!>     type(sar_optimizer)    :: optimizer
!>     call comm%create(MPI_COMM_WORLD)                        ! of the module mpi_f08: MPI_COMM_WORLD%MPI_VAL
!>     call graph%from_global(comm, node_ids, edge_src, edge_dst)
!>     call model%create(comm, '{"sar_model": 1, "type": "sage", ...}', seed=1)
!>     call optimizer%create(model, '{"optimizer": "adam", "lr": 0.01}')
!>     call model%train_step(optimizer, graph, state, next, loss)
!>
!> Arrays of nodes are (field, node), arrays of edges (field, edge): the library's own order in memory. A
!> contiguous array of the library's precision (sar_real_kind()) is used as it lies; a section that is not
!> contiguous is copied by the compiler; an array of the other precision is converted with one pass. With
!> rows_first=.true. all arrays of a call are (node, field) and (edge, field), which are converted, too. All
!> arrays of a call have the same kind, real32 or real64.
!>
!> Errors: every procedure ends with the optional arguments stat and errmsg. stat becomes 0 (sar_ok) or one of
!> sar_error_...; errmsg becomes the text of an error, and is as it was where there is none. Without stat an
!> error is written to the standard error unit and ends the program by `error stop`.
!>
!> "Collective": all ranks of the communicator call the procedure, in the same order. An error of one rank is
!> then the same status on all ranks. create, load, from_global, from_local and start give back what the
!> object held before. No object is given back by itself: call free, before MPI_Finalize. A copy of an object
!> is another name of the same one.
!>
!> Numbers of nodes, parameters and classes count from 1; in texts of errors they count from 0.
!>
!> Room bindings/fortran: The module for Fortran over sar.h.
module sar
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real32, real64
  implicit none
  private

  public :: sar_communicator, sar_graph, sar_graph_sizes, sar_hetero_graph, sar_model, sar_optimizer, &
    sar_predictor, sar_potential, sar_checkpoints, sar_trace
  public :: sar_init, sar_finalize, sar_set_num_threads, sar_version, sar_real_kind, sar_last_error
  public :: sar_memory_current, sar_memory_peak, sar_memory_reset_peak, sar_memory_release

  !> Values of stat.
  integer, parameter, public :: sar_ok = 0
  integer, parameter, public :: sar_error_input = 1          !< an argument, a description, a file or a graph
  integer, parameter, public :: sar_error_shape = 2          !< arrays that do not fit together, or the graph
  integer, parameter, public :: sar_error_communication = 3  !< MPI failed; the ranks make different calls
  integer, parameter, public :: sar_error_memory = 4         !< memory could not be had
  integer, parameter, public :: sar_error_handle = 5         !< an object that was not created, or was freed
  integer, parameter, public :: sar_error_internal = 6       !< anything else

  !> Losses: means over all elements of the rows of all ranks, of the difference d = prediction - target.
  integer, parameter, public :: sar_loss_mse = 0    !< d^2
  integer, parameter, public :: sar_loss_l1 = 1     !< |d|
  integer, parameter, public :: sar_loss_huber = 2  !< d^2 / 2 where |d| <= 1, |d| - 1/2 elsewhere
  integer, parameter, public :: sar_loss_bce = 3    !< binary cross entropy of logits, with a target in [0, 1]

  !> Numbers of nodes and edges of a graph.
  type :: sar_graph_sizes
    integer(c_int64_t) :: nodes         !< of this rank: rows of arrays of nodes
    integer(c_int64_t) :: edges         !< in-edges of these nodes: rows of arrays in the graph's order
    integer(c_int64_t) :: given_edges   !< that this rank gave: rows of arrays in the program's order
    integer(c_int64_t) :: global_nodes  !< of all ranks
    integer(c_int64_t) :: global_edges  !< of all ranks, with the reverse edges
  end type

  ! What the objects have in common; the handle is null until create.
  type, abstract :: sar_object
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: free => object_free
  end type

  !> The ranks that train together.
  type, extends(sar_object) :: sar_communicator
  contains
    procedure :: create => communicator_create
    procedure :: world => communicator_world
    procedure :: rank => communicator_rank
    procedure :: num_ranks => communicator_num_ranks
    procedure :: default_num_threads => communicator_default_num_threads
  end type

  !> A graph that is spread over the ranks.
  type, extends(sar_object) :: sar_graph
  contains
    procedure, private :: from_global_int32, from_global_int64, rebuild_from_global_int32, &
      rebuild_from_global_int64, to_graph_real32, to_graph_real64, to_given_real32, to_given_real64
    generic :: from_global => from_global_int32, from_global_int64
    procedure :: from_local => graph_from_local
    generic :: rebuild_from_global => rebuild_from_global_int32, rebuild_from_global_int64
    procedure :: rebuild_from_local => graph_rebuild_from_local
    procedure :: sizes => graph_sizes
    procedure :: edge_ids => graph_edge_ids
    generic :: edges_to_graph_order => to_graph_real32, to_graph_real64
    generic :: edges_to_given_order => to_given_real32, to_given_real64
  end type

  !> A graph with several types of nodes and edges: create it, add the nodes and then the edges of each type,
  !> and build it.
  type, extends(sar_object) :: sar_hetero_graph
  contains
    procedure, private :: add_nodes_int32, add_nodes_int64, add_edges_int32, add_edges_int64, &
      set_rows_real32, set_rows_real64
    procedure :: create => hetero_create
    generic :: add_nodes => add_nodes_int32, add_nodes_int64
    generic :: add_edges => add_edges_int32, add_edges_int64
    procedure :: build => hetero_build
    procedure :: num_nodes => hetero_num_nodes
    procedure :: num_edges => hetero_num_edges
    generic :: set_rows => set_rows_real32, set_rows_real64
  end type

  !> A network that a description in JSON says, with its weights.
  type, extends(sar_object) :: sar_model
  contains
    procedure, private :: create_int32, create_int64, train_real32, train_real64, train_labels_real32, &
      train_labels_real64
    procedure, private :: evaluate_real32, evaluate_real64, evaluate_labels_real32, evaluate_labels_real64
    procedure, private :: hetero_train_real32, hetero_train_real64, hetero_train_labels, &
      hetero_evaluate_real32, hetero_evaluate_real64, hetero_evaluate_labels, hetero_predict_real32, &
      hetero_predict_real64
    procedure, private :: get_real32, get_real64, set_real32, set_real64, statistics_real32, statistics_real64
    generic :: create => create_int32, create_int64
    procedure :: load => model_load
    procedure :: save => model_save
    procedure :: description => model_description
    procedure :: feats => model_feats
    procedure :: num_parameters => model_num_parameters
    procedure :: parameter => model_parameter
    generic :: get_parameter => get_real32, get_real64
    generic :: set_parameter => set_real32, set_real64
    generic :: update_statistics => statistics_real32, statistics_real64
    generic :: train_step => train_real32, train_real64, hetero_train_real32, hetero_train_real64
    generic :: train_step_labels => train_labels_real32, train_labels_real64, hetero_train_labels
    generic :: evaluate => evaluate_real32, evaluate_real64, hetero_evaluate_real32, hetero_evaluate_real64
    generic :: evaluate_labels => evaluate_labels_real32, evaluate_labels_real64, hetero_evaluate_labels
    generic :: predict => hetero_predict_real32, hetero_predict_real64
  end type

  !> An optimizer of all parameters of a model.
  type, extends(sar_object) :: sar_optimizer
  contains
    procedure :: create => optimizer_create
    procedure :: lr => optimizer_lr
    procedure :: set_lr => optimizer_set_lr
  end type

  !> A model with the buffers that it needs for a graph: created once, run many times.
  type, extends(sar_object) :: sar_predictor
  contains
    procedure, private :: run_real32, run_real64
    procedure :: create => predictor_create
    generic :: run => run_real32, run_real64
  end type

  !> A potential of atoms, from a file: energies, forces and virials.
  type, extends(sar_object) :: sar_potential
  contains
    procedure, private :: evaluate_atoms_real32, evaluate_atoms_real64
    procedure :: load => potential_load
    procedure :: species => potential_species
    procedure :: cutoff => potential_cutoff
    generic :: evaluate => evaluate_atoms_real32, evaluate_atoms_real64
  end type

  !> The checkpoints of one run in a directory.
  type, extends(sar_object) :: sar_checkpoints
  contains
    procedure :: create => checkpoints_create
    procedure :: save => checkpoints_save
    procedure :: load_latest => checkpoints_load_latest
    procedure :: load => checkpoints_load
  end type

  !> A recording of what each rank computes, sends and waits for.
  type, extends(sar_object) :: sar_trace
  contains
    procedure :: start => trace_start
    procedure :: write => trace_write
  end type

  ! sar_array of sar.h. rows = -1: an optional array that is not there.
  type, bind(C) :: c_array
    type(c_ptr) :: data
    integer(c_int32_t) :: precision
    integer(c_int32_t) :: order
    integer(c_int64_t) :: rows
    integer(c_int64_t) :: fields
    integer(c_int64_t) :: leading
    integer(c_int64_t) :: reserved(2) = 0
  end type
  integer(c_int32_t), parameter :: c_float_precision = 0, c_double_precision = 1
  integer(c_int32_t), parameter :: c_node_field = 0, c_field_node = 1

  ! The functions of sar.h that return a status, by their arguments.
  abstract interface
    integer(c_int) function of_nothing() bind(C)
      import
    end function
    integer(c_int) function of_handle(handle) bind(C)
      import
      type(c_ptr), value :: handle
    end function
    integer(c_int) function of_bytes(bytes) bind(C)
      import
      integer(c_int64_t), intent(inout) :: bytes
    end function
    integer(c_int) function of_comm_and_number(comm, number) bind(C)
      import
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(inout) :: number
    end function
    integer(c_int) function of_handle_and_text(handle, text, object) bind(C)
      import
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: text(*)
      type(c_ptr), intent(inout) :: object
    end function
    integer(c_int) function of_parameter(model, index, values) bind(C)
      import
      type(c_ptr), value :: model
      integer(c_int64_t), value :: index
      type(c_array), intent(in) :: values
    end function
    type(c_ptr) function text_of_nothing() bind(C)
      import
    end function
  end interface
  procedure(text_of_nothing), bind(C, name="sar_last_error") :: c_last_error
  procedure(text_of_nothing), bind(C, name="sar_version") :: c_version
  procedure(of_nothing), bind(C, name="sar_init") :: c_init
  procedure(of_nothing), bind(C, name="sar_finalize") :: c_finalize
  procedure(of_nothing), bind(C, name="sar_memory_reset_peak") :: c_memory_reset_peak
  procedure(of_nothing), bind(C, name="sar_memory_release") :: c_memory_release
  procedure(of_bytes), bind(C, name="sar_memory_current") :: c_memory_current
  procedure(of_bytes), bind(C, name="sar_memory_peak") :: c_memory_peak
  procedure(of_comm_and_number), bind(C, name="sar_comm_rank") :: c_comm_rank
  procedure(of_comm_and_number), bind(C, name="sar_comm_size") :: c_comm_size
  procedure(of_comm_and_number), bind(C, name="sar_comm_default_num_threads") :: c_comm_default_num_threads
  procedure(of_handle), bind(C, name="sar_comm_free") :: c_comm_free
  procedure(of_handle), bind(C, name="sar_graph_free") :: c_graph_free
  procedure(of_handle), bind(C, name="sar_hetero_build") :: c_hetero_build
  procedure(of_handle), bind(C, name="sar_hetero_free") :: c_hetero_free
  procedure(of_handle), bind(C, name="sar_model_free") :: c_model_free
  procedure(of_handle), bind(C, name="sar_optimizer_free") :: c_optimizer_free
  procedure(of_handle), bind(C, name="sar_predictor_free") :: c_predictor_free
  procedure(of_handle), bind(C, name="sar_potential_free") :: c_potential_free
  procedure(of_handle), bind(C, name="sar_checkpoints_free") :: c_checkpoints_free
  procedure(of_handle), bind(C, name="sar_trace_write") :: c_trace_write
  procedure(of_handle_and_text), bind(C, name="sar_hetero_create") :: c_hetero_create
  procedure(of_handle_and_text), bind(C, name="sar_model_load") :: c_model_load
  procedure(of_handle_and_text), bind(C, name="sar_potential_load") :: c_potential_load
  procedure(of_handle_and_text), bind(C, name="sar_optimizer_create") :: c_optimizer_create
  procedure(of_handle_and_text), bind(C, name="sar_trace_start") :: c_trace_start
  procedure(of_parameter), bind(C, name="sar_model_get_parameter") :: c_model_get_parameter
  procedure(of_parameter), bind(C, name="sar_model_set_parameter") :: c_model_set_parameter

  interface
    pure integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
      import
      type(c_ptr), value, intent(in) :: text
    end function
    integer(c_int32_t) function c_precision() bind(C, name="sar_precision")
      import
    end function
    integer(c_int) function c_refuse_next(text) bind(C, name="sar_refuse_next")
      import
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int) function c_set_num_threads(threads) bind(C, name="sar_set_num_threads")
      import
      integer(c_int32_t), value :: threads
    end function
    integer(c_int) function c_comm_create_f(fortran_comm, comm) bind(C, name="sar_comm_create_f")
      import
      integer(c_int32_t), value :: fortran_comm
      type(c_ptr), intent(out) :: comm
    end function
    integer(c_int) function c_comm_world(comm) bind(C, name="sar_comm_world")
      import
      type(c_ptr), intent(out) :: comm
    end function

    integer(c_int) function c_graph_from_global(comm, num_nodes, node_ids, num_edges, src, dst, edge_ids, &
        edge_weight, options, graph) bind(C, name="sar_graph_from_global")
      import
      type(c_ptr), value :: comm, edge_ids, edge_weight
      integer(c_int64_t), value :: num_nodes, num_edges
      integer(c_int64_t), intent(in) :: node_ids(*), src(*), dst(*)
      character(kind=c_char), intent(in) :: options(*)
      type(c_ptr), intent(inout) :: graph
    end function
    integer(c_int) function c_graph_from_local(comm, num_owned, num_local, global_ids, num_edges, src, &
        dst, edge_ids, edge_weight, options, graph) bind(C, name="sar_graph_from_local")
      import
      type(c_ptr), value :: comm, edge_ids, edge_weight
      integer(c_int64_t), value :: num_owned, num_local, num_edges
      integer(c_int64_t), intent(in) :: global_ids(*)
      integer(c_int32_t), intent(in) :: src(*), dst(*)
      character(kind=c_char), intent(in) :: options(*)
      type(c_ptr), intent(inout) :: graph
    end function
    integer(c_int) function c_graph_rebuild_from_global(graph, num_nodes, node_ids, num_edges, src, dst, &
        edge_ids, edge_weight) bind(C, name="sar_graph_rebuild_from_global")
      import
      type(c_ptr), value :: graph, edge_ids, edge_weight
      integer(c_int64_t), value :: num_nodes, num_edges
      integer(c_int64_t), intent(in) :: node_ids(*), src(*), dst(*)
    end function
    integer(c_int) function c_graph_rebuild_from_local(graph, num_owned, num_local, global_ids, &
        num_edges, src, dst, edge_ids, edge_weight) bind(C, name="sar_graph_rebuild_from_local")
      import
      type(c_ptr), value :: graph, edge_ids, edge_weight
      integer(c_int64_t), value :: num_owned, num_local, num_edges
      integer(c_int64_t), intent(in) :: global_ids(*)
      integer(c_int32_t), intent(in) :: src(*), dst(*)
    end function
    integer(c_int) function c_graph_sizes(graph, nodes, edges, given_edges) bind(C, name="sar_graph_sizes")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), intent(inout) :: nodes, edges, given_edges
    end function
    integer(c_int) function c_graph_global_sizes(graph, nodes, edges) bind(C, name="sar_graph_global_sizes")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), intent(inout) :: nodes, edges
    end function
    integer(c_int) function c_graph_edge_ids(graph, length, edge_ids) bind(C, name="sar_graph_edge_ids")
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: length
      integer(c_int64_t), intent(inout) :: edge_ids(*)
    end function
    integer(c_int) function c_edges_to_graph_order(graph, rows, reverse_rows, out) &
        bind(C, name="sar_graph_edges_to_graph_order")
      import
      type(c_ptr), value :: graph, reverse_rows
      type(c_array), intent(in) :: rows, out
    end function
    integer(c_int) function c_edges_to_given_order(graph, rows, reverse, out) &
        bind(C, name="sar_graph_edges_to_given_order")
      import
      type(c_ptr), value :: graph
      type(c_array), intent(in) :: rows, out
      integer(c_int32_t), value :: reverse
    end function

    integer(c_int) function c_hetero_add_nodes(graph, type, num_nodes, node_ids) &
        bind(C, name="sar_hetero_add_nodes")
      import
      type(c_ptr), value :: graph
      character(kind=c_char), intent(in) :: type(*)
      integer(c_int64_t), value :: num_nodes
      integer(c_int64_t), intent(in) :: node_ids(*)
    end function
    integer(c_int) function c_hetero_add_edges(graph, source, relation, destination, num_edges, src, dst, &
        edge_ids, edge_weight, add_reverse_edges) bind(C, name="sar_hetero_add_edges")
      import
      type(c_ptr), value :: graph, edge_ids, edge_weight
      character(kind=c_char), intent(in) :: source(*), relation(*), destination(*)
      integer(c_int64_t), value :: num_edges
      integer(c_int64_t), intent(in) :: src(*), dst(*)
      integer(c_int32_t), value :: add_reverse_edges
    end function
    integer(c_int) function c_hetero_num_nodes(graph, type, nodes, global_nodes) &
        bind(C, name="sar_hetero_num_nodes")
      import
      type(c_ptr), value :: graph
      character(kind=c_char), intent(in) :: type(*)
      integer(c_int64_t), intent(inout) :: nodes, global_nodes
    end function
    integer(c_int) function c_hetero_num_edges(graph, source, relation, destination, edges, global_edges) &
        bind(C, name="sar_hetero_num_edges")
      import
      type(c_ptr), value :: graph
      character(kind=c_char), intent(in) :: source(*), relation(*), destination(*)
      integer(c_int64_t), intent(inout) :: edges, global_edges
    end function
    integer(c_int) function c_hetero_set_rows(graph, type, x) bind(C, name="sar_hetero_set_rows")
      import
      type(c_ptr), value :: graph
      character(kind=c_char), intent(in) :: type(*)
      type(c_array), intent(in) :: x
    end function

    integer(c_int) function c_model_create(comm, description, seed, model) bind(C, name="sar_model_create")
      import
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in) :: description(*)
      integer(c_int64_t), value :: seed
      type(c_ptr), intent(inout) :: model
    end function
    integer(c_int) function c_model_save(model, path) bind(C, name="sar_model_save")
      import
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_int) function c_model_description(model, description) bind(C, name="sar_model_description")
      import
      type(c_ptr), value :: model
      type(c_ptr), intent(inout) :: description
    end function
    integer(c_int) function c_model_feats(model, in_feats, out_feats, edge_feats) &
        bind(C, name="sar_model_feats")
      import
      type(c_ptr), value :: model
      integer(c_int64_t), intent(inout) :: in_feats, out_feats, edge_feats
    end function
    integer(c_int) function c_model_num_parameters(model, num) bind(C, name="sar_model_num_parameters")
      import
      type(c_ptr), value :: model
      integer(c_int64_t), intent(inout) :: num
    end function
    integer(c_int) function c_model_parameter(model, index, name, rows, fields) &
        bind(C, name="sar_model_parameter")
      import
      type(c_ptr), value :: model
      integer(c_int64_t), value :: index
      type(c_ptr), intent(inout) :: name
      integer(c_int64_t), intent(inout) :: rows, fields
    end function
    integer(c_int) function c_update_statistics(model, x, edges, target) &
        bind(C, name="sar_model_update_statistics")
      import
      type(c_ptr), value :: model
      type(c_array), intent(in) :: x, edges, target
    end function
    integer(c_int) function c_optimizer_get_lr(optimizer, lr) bind(C, name="sar_optimizer_get_lr")
      import
      type(c_ptr), value :: optimizer
      real(c_double), intent(inout) :: lr
    end function
    integer(c_int) function c_optimizer_set_lr(optimizer, lr) bind(C, name="sar_optimizer_set_lr")
      import
      type(c_ptr), value :: optimizer
      real(c_double), value :: lr
    end function

    integer(c_int) function c_train_step(model, optimizer, graph, x, edges, loss_kind, target, &
        mask_length, mask, loss) bind(C, name="sar_train_step")
      import
      type(c_ptr), value :: model, optimizer, graph, edges, mask
      type(c_array), intent(in) :: x, target
      integer(c_int32_t), value :: loss_kind
      integer(c_int64_t), value :: mask_length
      real(c_double), intent(inout) :: loss
    end function
    integer(c_int) function c_train_step_labels(model, optimizer, graph, x, edges, num_labels, labels, &
        mask_length, mask, loss) bind(C, name="sar_train_step_labels")
      import
      type(c_ptr), value :: model, optimizer, graph, edges, mask
      type(c_array), intent(in) :: x
      integer(c_int64_t), value :: num_labels, mask_length
      integer(c_int64_t), intent(in) :: labels(*)
      real(c_double), intent(inout) :: loss
    end function
    integer(c_int) function c_evaluate(model, graph, x, edges, loss_kind, target, mask_length, mask, &
        loss) bind(C, name="sar_evaluate")
      import
      type(c_ptr), value :: model, graph, edges, mask
      type(c_array), intent(in) :: x, target
      integer(c_int32_t), value :: loss_kind
      integer(c_int64_t), value :: mask_length
      real(c_double), intent(inout) :: loss
    end function
    integer(c_int) function c_evaluate_labels(model, graph, x, edges, num_labels, labels, mask_length, &
        mask, loss) bind(C, name="sar_evaluate_labels")
      import
      type(c_ptr), value :: model, graph, edges, mask
      type(c_array), intent(in) :: x
      integer(c_int64_t), value :: num_labels, mask_length
      integer(c_int64_t), intent(in) :: labels(*)
      real(c_double), intent(inout) :: loss
    end function

    integer(c_int) function c_hetero_train_step(model, optimizer, graph, type, loss_kind, target, &
        mask_length, mask, loss) bind(C, name="sar_hetero_train_step")
      import
      type(c_ptr), value :: model, optimizer, graph, mask
      character(kind=c_char), intent(in) :: type(*)
      type(c_array), intent(in) :: target
      integer(c_int32_t), value :: loss_kind
      integer(c_int64_t), value :: mask_length
      real(c_double), intent(inout) :: loss
    end function
    integer(c_int) function c_hetero_train_step_labels(model, optimizer, graph, type, num_labels, labels, &
        mask_length, mask, loss) bind(C, name="sar_hetero_train_step_labels")
      import
      type(c_ptr), value :: model, optimizer, graph, mask
      character(kind=c_char), intent(in) :: type(*)
      integer(c_int64_t), value :: num_labels, mask_length
      integer(c_int64_t), intent(in) :: labels(*)
      real(c_double), intent(inout) :: loss
    end function
    integer(c_int) function c_hetero_evaluate(model, graph, type, loss_kind, target, mask_length, mask, &
        loss) bind(C, name="sar_hetero_evaluate")
      import
      type(c_ptr), value :: model, graph, mask
      character(kind=c_char), intent(in) :: type(*)
      type(c_array), intent(in) :: target
      integer(c_int32_t), value :: loss_kind
      integer(c_int64_t), value :: mask_length
      real(c_double), intent(inout) :: loss
    end function
    integer(c_int) function c_hetero_evaluate_labels(model, graph, type, num_labels, labels, mask_length, &
        mask, loss) bind(C, name="sar_hetero_evaluate_labels")
      import
      type(c_ptr), value :: model, graph, mask
      character(kind=c_char), intent(in) :: type(*)
      integer(c_int64_t), value :: num_labels, mask_length
      integer(c_int64_t), intent(in) :: labels(*)
      real(c_double), intent(inout) :: loss
    end function
    integer(c_int) function c_hetero_predict(model, graph, type, out) bind(C, name="sar_hetero_predict")
      import
      type(c_ptr), value :: model, graph
      character(kind=c_char), intent(in) :: type(*)
      type(c_array), intent(in) :: out
    end function

    integer(c_int) function c_predictor_create(model, graph, predictor) bind(C, name="sar_predictor_create")
      import
      type(c_ptr), value :: model, graph
      type(c_ptr), intent(inout) :: predictor
    end function
    integer(c_int) function c_predictor_run(predictor, x, edges, out) bind(C, name="sar_predictor_run")
      import
      type(c_ptr), value :: predictor, edges
      type(c_array), intent(in) :: x, out
    end function
    integer(c_int) function c_potential_species(potential, name, number) &
        bind(C, name="sar_potential_species")
      import
      type(c_ptr), value :: potential
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), intent(inout) :: number
    end function
    integer(c_int) function c_potential_cutoff(potential, cutoff) bind(C, name="sar_potential_cutoff")
      import
      type(c_ptr), value :: potential
      real(c_double), intent(inout) :: cutoff
    end function
    integer(c_int) function c_potential_evaluate(potential, graph, num_atoms, species, positions, edges, &
        energy, virial, energies, forces, virials) bind(C, name="sar_potential_evaluate")
      import
      type(c_ptr), value :: potential, graph, positions, edges, virial, energies, forces, virials
      integer(c_int64_t), value :: num_atoms
      integer(c_int32_t), intent(in) :: species(*)
      real(c_double), intent(inout) :: energy
    end function
    integer(c_int) function c_checkpoints_create(comm, directory, keep_last, seed, checkpoints) &
        bind(C, name="sar_checkpoints_create")
      import
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in) :: directory(*)
      integer(c_int32_t), value :: keep_last
      integer(c_int64_t), value :: seed
      type(c_ptr), intent(inout) :: checkpoints
    end function
    integer(c_int) function c_checkpoints_save(checkpoints, epoch, model, optimizer) &
        bind(C, name="sar_checkpoints_save")
      import
      type(c_ptr), value :: checkpoints, model, optimizer
      integer(c_int32_t), value :: epoch
    end function
    integer(c_int) function c_checkpoints_load_latest(checkpoints, model, optimizer, epoch) &
        bind(C, name="sar_checkpoints_load_latest")
      import
      type(c_ptr), value :: checkpoints, model, optimizer
      integer(c_int32_t), intent(inout) :: epoch
    end function
    integer(c_int) function c_checkpoints_load(checkpoints, path, model, optimizer, epoch) &
        bind(C, name="sar_checkpoints_load")
      import
      type(c_ptr), value :: checkpoints, model, optimizer
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int32_t), intent(inout) :: epoch
    end function
  end interface

contains

  ! ---- Errors, texts, arrays ----

  !> The text of the last error of this thread, '' without one.
  function sar_last_error() result(text)
    character(len=:), allocatable :: text
    text = text_of(c_last_error())
  end function

  ! Gives status and text to the caller, or ends the program.
  subroutine tell(status, stat, errmsg)
    integer(c_int), intent(in) :: status
    include 'sar_status.inc'
    if (present(stat)) stat = status
    if (status == sar_ok) return
    if (present(errmsg)) errmsg = sar_last_error()
    if (present(stat)) return
    write (error_unit, '(2a)') 'sar: ', sar_last_error()
    flush (error_unit)
    error stop 1
  end subroutine

  function text_of(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    if (.not. c_associated(pointer)) then
      text = ''
      return
    end if
    call c_f_pointer(pointer, letters, [c_strlen(pointer)])
    allocate (character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  pure function c_text(text) result(terminated)
    character(len=*), intent(in) :: text
    character(kind=c_char, len=:), allocatable :: terminated
    terminated = trim(text)//c_null_char
  end function

  ! Options of a graph; all are the usual ones without a text.
  pure function options_of(options) result(text)
    character(len=*), intent(in), optional :: options
    character(kind=c_char, len=:), allocatable :: text
    text = c_text('{}')
    if (present(options)) text = c_text(options)
  end function

  ! The address of an array, null for one that is not there.
  function pointer_to(array) result(pointer)
    type(c_array), intent(in), target :: array
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    if (array%rows >= 0) pointer = c_loc(array)
  end function

  ! A weight for each edge as an array of one field.
  function weights_of(edge_weight) result(array)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    type(c_array) :: array
    array = array_real64()
    if (.not. present(edge_weight)) return
    array = c_array(c_null_ptr, c_double_precision, c_node_field, size(edge_weight), 1, 0)
    if (size(edge_weight) > 0) array%data = c_loc(edge_weight)
  end function

  ! The mask as bytes; nothing for a mask that is not there.
  subroutine get_bytes(mask, bytes)
    logical, intent(in), optional :: mask(:)
    integer(c_int8_t), allocatable, intent(out) :: bytes(:)
    if (.not. present(mask)) then
      allocate (bytes(0))
    else
      allocate (bytes(size(mask)))
      bytes(:) = merge(1_c_int8_t, 0_c_int8_t, mask)
    end if
  end subroutine

  ! Null only where there is no mask: a mask of no rows is still one.
  function mask_pointer(bytes, mask) result(pointer)
    integer(c_int8_t), contiguous, target, intent(in) :: bytes(:)
    logical, intent(in), optional :: mask(:)
    type(c_ptr) :: pointer
    integer(c_int8_t), save, target :: empty = 0
    pointer = c_null_ptr
    if (.not. present(mask)) return
    pointer = c_loc(empty)
    if (size(bytes) > 0) pointer = c_loc(bytes)
  end function

  include 'sar_real32.inc'
  include 'sar_real64.inc'

  ! ---- The library ----

  !> For programs that leave MPI to the library: initializes MPI unless the program has done so.
  subroutine sar_init(stat, errmsg)
    include 'sar_status.inc'
    call tell(c_init(), stat, errmsg)
  end subroutine

  !> Finalizes MPI if sar_init has initialized it. Free all objects first.
  subroutine sar_finalize(stat, errmsg)
    include 'sar_status.inc'
    call tell(c_finalize(), stat, errmsg)
  end subroutine

  !> Loops of the library use this number of threads from here on, 0: all processors that the process is bound
  !> to.
  subroutine sar_set_num_threads(threads, stat, errmsg)
    integer, intent(in) :: threads
    include 'sar_status.inc'
    call tell(c_set_num_threads(int(threads, c_int32_t)), stat, errmsg)
  end subroutine

  !> The version of the library, such as '0.1.0'.
  function sar_version() result(version)
    character(len=:), allocatable :: version
    version = text_of(c_version())
  end function

  !> The kind that the library computes in, real32 or real64.
  function sar_real_kind() result(kind_of_real)
    integer :: kind_of_real
    kind_of_real = merge(real64, real32, c_precision() == c_double_precision)
  end function

  !> Bytes that the library holds in this process; arrays of the program are not counted.
  function sar_memory_current(stat, errmsg) result(bytes)
    include 'sar_status.inc'
    integer(int64) :: bytes
    bytes = 0
    call tell(c_memory_current(bytes), stat, errmsg)
  end function

  !> The most of them since the start or sar_memory_reset_peak.
  function sar_memory_peak(stat, errmsg) result(bytes)
    include 'sar_status.inc'
    integer(int64) :: bytes
    bytes = 0
    call tell(c_memory_peak(bytes), stat, errmsg)
  end function

  subroutine sar_memory_reset_peak(stat, errmsg)
    include 'sar_status.inc'
    call tell(c_memory_reset_peak(), stat, errmsg)
  end subroutine

  !> Gives the pages that are not in use back to the system.
  subroutine sar_memory_release(stat, errmsg)
    include 'sar_status.inc'
    call tell(c_memory_release(), stat, errmsg)
  end subroutine

  ! ---- sar_communicator ----

  !> Duplicates an intra-communicator of the module mpi; of the module mpi_f08, give mpi_comm%MPI_VAL.
  !> Collective.
  subroutine communicator_create(self, mpi_comm, stat, errmsg)
    class(sar_communicator), intent(inout) :: self
    integer, intent(in) :: mpi_comm
    include 'sar_status.inc'
    integer(c_int) :: status
    call replace(self, status)
    if (status == sar_ok) status = c_comm_create_f(int(mpi_comm, c_int32_t), self%handle)
    call tell(status, stat, errmsg)
  end subroutine

  !> The same for MPI_COMM_WORLD. Collective.
  subroutine communicator_world(self, stat, errmsg)
    class(sar_communicator), intent(inout) :: self
    include 'sar_status.inc'
    integer(c_int) :: status
    call replace(self, status)
    if (status == sar_ok) status = c_comm_world(self%handle)
    call tell(status, stat, errmsg)
  end subroutine

  !> This rank, from 0 as in MPI.
  function communicator_rank(self, stat, errmsg) result(rank)
    class(sar_communicator), intent(in) :: self
    include 'sar_status.inc'
    integer :: rank
    integer(c_int32_t) :: value
    value = -1
    call tell(c_comm_rank(self%handle, value), stat, errmsg)
    rank = value
  end function

  function communicator_num_ranks(self, stat, errmsg) result(num_ranks)
    class(sar_communicator), intent(in) :: self
    include 'sar_status.inc'
    integer :: num_ranks
    integer(c_int32_t) :: value
    value = 0
    call tell(c_comm_size(self%handle, value), stat, errmsg)
    num_ranks = value
  end function

  !> How many threads the rank should use so that the ranks of a node share its cores. Collective.
  function communicator_default_num_threads(self, stat, errmsg) result(threads)
    class(sar_communicator), intent(in) :: self
    include 'sar_status.inc'
    integer :: threads
    integer(c_int32_t) :: value
    value = 0
    call tell(c_comm_default_num_threads(self%handle, value), stat, errmsg)
    threads = value
  end function

  ! ---- All objects ----

  !> Collective for a communicator, and for a trace, which it ends and writes. The handle is empty before, so
  !> that no object is freed twice.
  subroutine object_free(self, stat, errmsg)
    class(sar_object), intent(inout) :: self
    include 'sar_status.inc'
    type(c_ptr) :: old
    integer(c_int) :: status
    old = self%handle
    self%handle = c_null_ptr
    status = sar_error_internal
    select type (self)
    class is (sar_communicator)
      status = c_comm_free(old)
    class is (sar_graph)
      status = c_graph_free(old)
    class is (sar_hetero_graph)
      status = c_hetero_free(old)
    class is (sar_model)
      status = c_model_free(old)
    class is (sar_optimizer)
      status = c_optimizer_free(old)
    class is (sar_predictor)
      status = c_predictor_free(old)
    class is (sar_potential)
      status = c_potential_free(old)
    class is (sar_checkpoints)
      status = c_checkpoints_free(old)
    class is (sar_trace)
      status = c_trace_write(old)
    end select
    call tell(status, stat, errmsg)
  end subroutine

  ! Frees the object that a new one replaces, if there is one.
  subroutine replace(self, status)
    class(sar_object), intent(inout) :: self
    integer, intent(out), optional :: status
    integer :: ignored
    if (present(status)) status = sar_ok
    if (.not. c_associated(self%handle)) return
    call self%free(ignored)
    if (present(status)) status = ignored
  end subroutine

  ! ---- sar_graph ----

  !> The graph of the nodes that the ranks own and of the edges that they give.
  !>
  !> node_ids: ids of the nodes of this rank, any numbers in any order; node i is (:, i) of every array of
  !> nodes. src, dst: edge k goes from node src(k) to node dst(k), ids of nodes of any rank; each directed
  !> edge is given once, by one rank. edge_ids: ids from 0 on, each once on all ranks together; without them
  !> 0, 1, ... by rank and position. edge_weight: a number for each edge, on all ranks or on none. options: a
  !> JSON object, as in sar.h. Collective.
  subroutine from_global_int64(self, comm, node_ids, src, dst, edge_ids, edge_weight, options, stat, errmsg)
    class(sar_graph), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    integer(int64), contiguous, intent(in) :: node_ids(:), src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    character(len=*), intent(in), optional :: options
    include 'sar_status.inc'
    type(c_array), target :: weights
    integer(c_int64_t) :: num_edges
    call replace(self)
    weights = weights_of(edge_weight)
    num_edges = num_edges_of(size(src), size(dst), edge_ids)
    call tell(c_graph_from_global(comm%handle, size(node_ids, kind=c_int64_t), node_ids, &
      num_edges, src, dst, ids_pointer(edge_ids), pointer_to(weights), &
      options_of(options), self%handle), stat, errmsg)
  end subroutine

  !> The same with ids that are default integers.
  subroutine from_global_int32(self, comm, node_ids, src, dst, edge_ids, edge_weight, options, stat, errmsg)
    class(sar_graph), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    integer(int32), intent(in) :: node_ids(:), src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    character(len=*), intent(in), optional :: options
    include 'sar_status.inc'
    call from_global_int64(self, comm, int(node_ids, int64), int(src, int64), int(dst, int64), edge_ids, &
      edge_weight, options, stat, errmsg)
  end subroutine

  !> The same for a program with a numbering of its own on each rank: its nodes are 1 .. num_owned, its ghosts
  !> num_owned + 1 .. size(global_ids). global_ids: host ids of both. src, dst: numbers of this numbering.
  !> Collective.
  subroutine graph_from_local(self, comm, num_owned, global_ids, src, dst, edge_ids, edge_weight, &
      options, stat, errmsg)
    class(sar_graph), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    integer, intent(in) :: num_owned
    integer(int64), contiguous, intent(in) :: global_ids(:)
    integer, intent(in) :: src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    character(len=*), intent(in), optional :: options
    include 'sar_status.inc'
    type(c_array), target :: weights
    integer(c_int64_t) :: num_edges
    call replace(self)
    weights = weights_of(edge_weight)
    num_edges = num_edges_of(size(src), size(dst), edge_ids)
    call tell(c_graph_from_local(comm%handle, int(num_owned, c_int64_t), size(global_ids, &
      kind=c_int64_t), global_ids, num_edges, int(src - 1, c_int32_t), &
      int(dst - 1, c_int32_t), ids_pointer(edge_ids), pointer_to(weights), options_of(options), &
      self%handle), stat, errmsg)
  end subroutine

  !> When the mesh changes: the graph becomes that of other nodes and edges, as from_global would make it with
  !> the options that the graph has. Models and optimizers go on as they are; predictors that were created for
  !> the graph follow it, and take arrays of the new sizes from here on. On an error the graph is as it was.
  !> The old and the new graph are in memory at the same time; from_global and from_local give the old one
  !> back first. Collective.
  subroutine rebuild_from_global_int64(self, node_ids, src, dst, edge_ids, edge_weight, stat, errmsg)
    class(sar_graph), intent(in) :: self
    integer(int64), contiguous, intent(in) :: node_ids(:), src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    include 'sar_status.inc'
    type(c_array), target :: weights
    integer(c_int64_t) :: num_edges
    weights = weights_of(edge_weight)
    num_edges = num_edges_of(size(src), size(dst), edge_ids)
    call tell(c_graph_rebuild_from_global(self%handle, size(node_ids, kind=c_int64_t), node_ids, &
      num_edges, src, dst, ids_pointer(edge_ids), pointer_to(weights)), stat, &
      errmsg)
  end subroutine

  !> The same with ids that are default integers.
  subroutine rebuild_from_global_int32(self, node_ids, src, dst, edge_ids, edge_weight, stat, errmsg)
    class(sar_graph), intent(in) :: self
    integer(int32), intent(in) :: node_ids(:), src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    include 'sar_status.inc'
    call rebuild_from_global_int64(self, int(node_ids, int64), int(src, int64), int(dst, int64), &
      edge_ids, edge_weight, stat, errmsg)
  end subroutine

  !> The same in a numbering of the rank's own, as from_local takes it. Collective.
  subroutine graph_rebuild_from_local(self, num_owned, global_ids, src, dst, edge_ids, edge_weight, stat, &
      errmsg)
    class(sar_graph), intent(in) :: self
    integer, intent(in) :: num_owned
    integer(int64), contiguous, intent(in) :: global_ids(:)
    integer, intent(in) :: src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    include 'sar_status.inc'
    type(c_array), target :: weights
    integer(c_int64_t) :: num_edges
    weights = weights_of(edge_weight)
    num_edges = num_edges_of(size(src), size(dst), edge_ids)
    call tell(c_graph_rebuild_from_local(self%handle, int(num_owned, c_int64_t), size(global_ids, &
      kind=c_int64_t), global_ids, num_edges, int(src - 1, c_int32_t), &
      int(dst - 1, c_int32_t), ids_pointer(edge_ids), pointer_to(weights)), stat, errmsg)
  end subroutine

  ! The number of edges. If the arrays of edges have several lengths, the call that gets it fails on all ranks.
  function num_edges_of(num_src, num_dst, edge_ids) result(num_edges)
    integer, intent(in) :: num_src, num_dst
    integer(int64), intent(in), optional :: edge_ids(:)
    integer(c_int64_t) :: num_edges
    character(len=200) :: line
    integer(c_int) :: ignored
    num_edges = num_src
    line = ''
    if (num_src /= num_dst) then
      write (line, '(a, i0, a, i0, a)') 'src has ', num_src, ' numbers and dst has ', num_dst, &
        ', expected one for each edge'
    else if (present(edge_ids)) then
      if (size(edge_ids) /= num_src) write (line, '(a, i0, a, i0, a)') 'edge_ids has ', size(edge_ids), &
        ' numbers, expected ', num_src, ', one for each edge'
    end if
    if (line /= '') ignored = c_refuse_next(c_text(line))
  end function

  function ids_pointer(ids) result(pointer)
    integer(int64), contiguous, target, intent(in), optional :: ids(:)
    type(c_ptr) :: pointer
    integer(c_int64_t), save, target :: empty = 0
    pointer = c_null_ptr
    if (.not. present(ids)) return
    pointer = c_loc(empty)
    if (size(ids) > 0) pointer = c_loc(ids)
  end function

  function graph_sizes(self, stat, errmsg) result(sizes)
    class(sar_graph), intent(in) :: self
    include 'sar_status.inc'
    type(sar_graph_sizes) :: sizes
    integer(c_int) :: status
    sizes = sar_graph_sizes(0, 0, 0, 0, 0)
    status = c_graph_sizes(self%handle, sizes%nodes, sizes%edges, sizes%given_edges)
    if (status == sar_ok) status = c_graph_global_sizes(self%handle, sizes%global_nodes, sizes%global_edges)
    call tell(status, stat, errmsg)
  end function

  !> The ids of the edges in the graph's order; sizes()%edges of them.
  subroutine graph_edge_ids(self, edge_ids, stat, errmsg)
    class(sar_graph), intent(in) :: self
    integer(int64), contiguous, intent(inout) :: edge_ids(:)
    include 'sar_status.inc'
    call tell(c_graph_edge_ids(self%handle, size(edge_ids, kind=c_int64_t), edge_ids), stat, errmsg)
  end subroutine

  ! ---- sar_hetero_graph ----

  !> A graph without nodes; options as in from_global, without add_reverse_edges. Collective.
  subroutine hetero_create(self, comm, options, stat, errmsg)
    class(sar_hetero_graph), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in), optional :: options
    include 'sar_status.inc'
    call replace(self)
    call tell(c_hetero_create(comm%handle, options_of(options), self%handle), stat, errmsg)
  end subroutine

  !> Adds the nodes of a type for the next build, in the order of the types: ids of the nodes of this rank.
  !> Each type has its own ids. Collective.
  subroutine add_nodes_int64(self, type, node_ids, stat, errmsg)
    class(sar_hetero_graph), intent(in) :: self
    character(len=*), intent(in) :: type
    integer(int64), contiguous, intent(in) :: node_ids(:)
    include 'sar_status.inc'
    call tell(c_hetero_add_nodes(self%handle, c_text(type), size(node_ids, kind=c_int64_t), node_ids), &
      stat, errmsg)
  end subroutine

  !> The same with ids that are default integers.
  subroutine add_nodes_int32(self, type, node_ids, stat, errmsg)
    class(sar_hetero_graph), intent(in) :: self
    character(len=*), intent(in) :: type
    integer(int32), intent(in) :: node_ids(:)
    include 'sar_status.inc'
    call add_nodes_int64(self, type, int(node_ids, int64), stat, errmsg)
  end subroutine

  !> Adds the edges of a type for the next build: from nodes of the type `source` to nodes of the type
  !> `destination`. The other arguments are as in from_global; with add_reverse_edges, for a type whose ends
  !> have one type, each edge also gets its reverse. Collective.
  subroutine add_edges_int64(self, source, relation, destination, src, dst, edge_ids, edge_weight, &
      add_reverse_edges, stat, errmsg)
    class(sar_hetero_graph), intent(in) :: self
    character(len=*), intent(in) :: source, relation, destination
    integer(int64), contiguous, intent(in) :: src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    logical, intent(in), optional :: add_reverse_edges
    include 'sar_status.inc'
    type(c_array), target :: weights
    integer(c_int64_t) :: num_edges
    integer(c_int32_t) :: reversed
    reversed = 0
    if (present(add_reverse_edges)) reversed = merge(1_c_int32_t, 0_c_int32_t, add_reverse_edges)
    weights = weights_of(edge_weight)
    num_edges = num_edges_of(size(src), size(dst), edge_ids)
    call tell(c_hetero_add_edges(self%handle, c_text(source), c_text(relation), c_text(destination), &
      num_edges, src, dst, ids_pointer(edge_ids), pointer_to(weights), reversed), stat, errmsg)
  end subroutine

  !> The same with ids that are default integers.
  subroutine add_edges_int32(self, source, relation, destination, src, dst, edge_ids, edge_weight, &
      add_reverse_edges, stat, errmsg)
    class(sar_hetero_graph), intent(in) :: self
    character(len=*), intent(in) :: source, relation, destination
    integer(int32), intent(in) :: src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    logical, intent(in), optional :: add_reverse_edges
    include 'sar_status.inc'
    call add_edges_int64(self, source, relation, destination, int(src, int64), int(dst, int64), edge_ids, &
      edge_weight, add_reverse_edges, stat, errmsg)
  end subroutine

  !> Makes the graph of the nodes and edges that were added since the last build, in place of the one before.
  !> The rows of set_rows are dropped. On an error the graph is as it was. Collective.
  subroutine hetero_build(self, stat, errmsg)
    class(sar_hetero_graph), intent(in) :: self
    include 'sar_status.inc'
    call tell(c_hetero_build(self%handle), stat, errmsg)
  end subroutine

  !> The nodes of a type on this rank.
  function hetero_num_nodes(self, type, stat, errmsg) result(num)
    class(sar_hetero_graph), intent(in) :: self
    character(len=*), intent(in) :: type
    include 'sar_status.inc'
    integer(int64) :: num
    integer(c_int64_t) :: global
    num = 0
    global = 0
    call tell(c_hetero_num_nodes(self%handle, c_text(type), num, global), stat, errmsg)
  end function

  !> The edges of a type whose destinations this rank owns.
  function hetero_num_edges(self, source, relation, destination, stat, errmsg) result(num)
    class(sar_hetero_graph), intent(in) :: self
    character(len=*), intent(in) :: source, relation, destination
    include 'sar_status.inc'
    integer(int64) :: num
    integer(c_int64_t) :: global
    num = 0
    global = 0
    call tell(c_hetero_num_edges(self%handle, c_text(source), c_text(relation), c_text(destination), num, &
      global), stat, errmsg)
  end function

  ! ---- sar_model ----

  !> The network of a description in JSON, with weights that are drawn from `seed`. Collective.
  subroutine create_int64(self, comm, description, seed, stat, errmsg)
    class(sar_model), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: description
    integer(int64), intent(in) :: seed
    include 'sar_status.inc'
    call replace(self)
    call tell(c_model_create(comm%handle, c_text(description), seed, self%handle), stat, errmsg)
  end subroutine

  subroutine create_int32(self, comm, description, seed, stat, errmsg)
    class(sar_model), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: description
    integer(int32), intent(in) :: seed
    include 'sar_status.inc'
    call create_int64(self, comm, description, int(seed, int64), stat, errmsg)
  end subroutine

  !> The network and the weights of a .safetensors file. Collective.
  subroutine model_load(self, comm, path, stat, errmsg)
    class(sar_model), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: path
    include 'sar_status.inc'
    call replace(self)
    call tell(c_model_load(comm%handle, c_text(path), self%handle), stat, errmsg)
  end subroutine

  !> Writes the description and the weights; rank 0 writes the file. Collective.
  subroutine model_save(self, path, stat, errmsg)
    class(sar_model), intent(in) :: self
    character(len=*), intent(in) :: path
    include 'sar_status.inc'
    call tell(c_model_save(self%handle, c_text(path)), stat, errmsg)
  end subroutine

  !> The description, complete, as JSON.
  function model_description(self, stat, errmsg) result(description)
    class(sar_model), intent(in) :: self
    include 'sar_status.inc'
    character(len=:), allocatable :: description
    type(c_ptr) :: text
    text = c_null_ptr
    call tell(c_model_description(self%handle, text), stat, errmsg)
    description = text_of(text)
  end function

  !> Fields that the model takes and gives: of nodes, of results, and of edges (0: it takes no array of
  !> edges).
  subroutine model_feats(self, in_feats, out_feats, edge_feats, stat, errmsg)
    class(sar_model), intent(in) :: self
    integer(int64), intent(inout) :: in_feats, out_feats, edge_feats
    include 'sar_status.inc'
    call tell(c_model_feats(self%handle, in_feats, out_feats, edge_feats), stat, errmsg)
  end subroutine

  function model_num_parameters(self, stat, errmsg) result(num)
    class(sar_model), intent(in) :: self
    include 'sar_status.inc'
    integer(int64) :: num
    num = 0
    call tell(c_model_num_parameters(self%handle, num), stat, errmsg)
  end function

  !> Name and shape of parameter `index`, from 1: it is an array (fields, rows).
  subroutine model_parameter(self, index, name, rows, fields, stat, errmsg)
    class(sar_model), intent(in) :: self
    integer, intent(in) :: index
    character(len=:), allocatable, intent(inout) :: name
    integer(int64), intent(inout) :: rows, fields
    include 'sar_status.inc'
    type(c_ptr) :: text
    integer(c_int) :: status
    text = c_null_ptr
    status = c_model_parameter(self%handle, index - 1_c_int64_t, text, rows, fields)
    if (status == sar_ok) name = text_of(text)
    call tell(status, stat, errmsg)
  end subroutine

  !> train_step_labels on a graph with types, for the results of the node type `type`: labels and mask are
  !> those of its nodes. The rows of all types are those of set_rows. Collective.
  subroutine hetero_train_labels(self, optimizer, graph, type, labels, loss, mask, stat, errmsg)
    class(sar_model), intent(in) :: self
    type(sar_optimizer), intent(in) :: optimizer
    type(sar_hetero_graph), intent(in) :: graph
    character(len=*), intent(in) :: type
    integer, intent(in) :: labels(:)
    real(c_double), intent(inout) :: loss
    logical, intent(in), optional :: mask(:)
    include 'sar_status.inc'
    integer(c_int8_t), allocatable, target :: bytes(:)
    call get_bytes(mask, bytes)
    call tell(c_hetero_train_step_labels(self%handle, optimizer%handle, graph%handle, c_text(type), &
      size(labels, kind=c_int64_t), int(labels, c_int64_t) - 1, size(bytes, kind=c_int64_t), &
      mask_pointer(bytes, mask), loss), stat, errmsg)
  end subroutine

  subroutine hetero_evaluate_labels(self, graph, type, labels, loss, mask, stat, errmsg)
    class(sar_model), intent(in) :: self
    type(sar_hetero_graph), intent(in) :: graph
    character(len=*), intent(in) :: type
    integer, intent(in) :: labels(:)
    real(c_double), intent(inout) :: loss
    logical, intent(in), optional :: mask(:)
    include 'sar_status.inc'
    integer(c_int8_t), allocatable, target :: bytes(:)
    call get_bytes(mask, bytes)
    call tell(c_hetero_evaluate_labels(self%handle, graph%handle, c_text(type), &
      size(labels, kind=c_int64_t), int(labels, c_int64_t) - 1, size(bytes, kind=c_int64_t), &
      mask_pointer(bytes, mask), loss), stat, errmsg)
  end subroutine

  pure function kind_of_loss(loss_kind) result(kind_of)
    integer, intent(in), optional :: loss_kind
    integer(c_int32_t) :: kind_of
    kind_of = sar_loss_mse
    if (present(loss_kind)) kind_of = int(loss_kind, c_int32_t)
  end function

  ! ---- sar_optimizer ----

  !> description: a JSON object as '{"optimizer": "adam", "lr": 0.01}'; sar.h has the keys. Collective.
  subroutine optimizer_create(self, model, description, stat, errmsg)
    class(sar_optimizer), intent(inout) :: self
    type(sar_model), intent(in) :: model
    character(len=*), intent(in) :: description
    include 'sar_status.inc'
    call replace(self)
    call tell(c_optimizer_create(model%handle, c_text(description), self%handle), stat, errmsg)
  end subroutine

  !> The learning rate.
  function optimizer_lr(self, stat, errmsg) result(lr)
    class(sar_optimizer), intent(in) :: self
    include 'sar_status.inc'
    real(real64) :: lr
    lr = 0
    call tell(c_optimizer_get_lr(self%handle, lr), stat, errmsg)
  end function

  !> Set the same on all ranks.
  subroutine optimizer_set_lr(self, lr, stat, errmsg)
    class(sar_optimizer), intent(in) :: self
    real(real64), intent(in) :: lr
    include 'sar_status.inc'
    call tell(c_optimizer_set_lr(self%handle, lr), stat, errmsg)
  end subroutine

  ! ---- sar_predictor ----

  !> It reads the weights at each run, so that training may go on. Collective.
  subroutine predictor_create(self, model, graph, stat, errmsg)
    class(sar_predictor), intent(inout) :: self
    type(sar_model), intent(in) :: model
    type(sar_graph), intent(in) :: graph
    include 'sar_status.inc'
    call replace(self)
    call tell(c_predictor_create(model%handle, graph%handle, self%handle), stat, errmsg)
  end subroutine

  ! ---- sar_potential ----

  !> The potential of a .safetensors file. Collective.
  subroutine potential_load(self, comm, path, stat, errmsg)
    class(sar_potential), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: path
    include 'sar_status.inc'
    call replace(self)
    call tell(c_potential_load(comm%handle, c_text(path), self%handle), stat, errmsg)
  end subroutine

  !> The number of a species, from 1.
  function potential_species(self, name, stat, errmsg) result(number)
    class(sar_potential), intent(in) :: self
    character(len=*), intent(in) :: name
    include 'sar_status.inc'
    integer :: number
    integer(c_int32_t) :: value
    value = -1
    call tell(c_potential_species(self%handle, c_text(name), value), stat, errmsg)
    number = int(value) + 1
  end function

  !> The distance beyond which atoms do not interact.
  function potential_cutoff(self, stat, errmsg) result(cutoff)
    class(sar_potential), intent(in) :: self
    include 'sar_status.inc'
    real(real64) :: cutoff
    cutoff = 0
    call tell(c_potential_cutoff(self%handle, cutoff), stat, errmsg)
  end function

  ! ---- sar_checkpoints ----

  !> The directory is made if need be. The last `keep_last` checkpoints are kept. `seed` is that of the run: a
  !> checkpoint of another seed is not loaded. Collective.
  subroutine checkpoints_create(self, comm, directory, keep_last, seed, stat, errmsg)
    class(sar_checkpoints), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: directory
    integer, intent(in) :: keep_last, seed
    include 'sar_status.inc'
    call replace(self)
    call tell(c_checkpoints_create(comm%handle, c_text(directory), int(keep_last, c_int32_t), &
      int(seed, c_int64_t), self%handle), stat, errmsg)
  end subroutine

  !> Writes the state of the training. Collective.
  subroutine checkpoints_save(self, epoch, model, optimizer, stat, errmsg)
    class(sar_checkpoints), intent(in) :: self
    integer, intent(in) :: epoch
    type(sar_model), intent(in) :: model
    type(sar_optimizer), intent(in) :: optimizer
    include 'sar_status.inc'
    call tell(c_checkpoints_save(self%handle, int(epoch, c_int32_t), model%handle, optimizer%handle), &
      stat, errmsg)
  end subroutine

  !> Puts model and optimizer into the state of the latest checkpoint, and tells its epoch; -1 without any.
  !> Collective.
  subroutine checkpoints_load_latest(self, model, optimizer, epoch, stat, errmsg)
    class(sar_checkpoints), intent(in) :: self
    type(sar_model), intent(in) :: model
    type(sar_optimizer), intent(in) :: optimizer
    integer, intent(inout) :: epoch
    include 'sar_status.inc'
    integer(c_int32_t) :: value
    integer(c_int) :: status
    value = int(epoch, c_int32_t)
    status = c_checkpoints_load_latest(self%handle, model%handle, optimizer%handle, value)
    epoch = value
    call tell(status, stat, errmsg)
  end subroutine

  !> The same from the file `path`. Collective.
  subroutine checkpoints_load(self, path, model, optimizer, epoch, stat, errmsg)
    class(sar_checkpoints), intent(in) :: self
    character(len=*), intent(in) :: path
    type(sar_model), intent(in) :: model
    type(sar_optimizer), intent(in) :: optimizer
    integer, intent(inout) :: epoch
    include 'sar_status.inc'
    integer(c_int32_t) :: value
    integer(c_int) :: status
    value = int(epoch, c_int32_t)
    status = c_checkpoints_load(self%handle, c_text(path), model%handle, optimizer%handle, value)
    epoch = value
    call tell(status, stat, errmsg)
  end subroutine

  ! ---- sar_trace ----

  !> Records until write is called; one at a time. Collective.
  subroutine trace_start(self, comm, path, stat, errmsg)
    class(sar_trace), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: path
    include 'sar_status.inc'
    call tell(c_trace_start(comm%handle, c_text(path), self%handle), stat, errmsg)
  end subroutine

  !> Ends the recording and writes it for Perfetto. Collective.
  subroutine trace_write(self, stat, errmsg)
    class(sar_trace), intent(inout) :: self
    include 'sar_status.inc'
    call self%free(stat, errmsg)
  end subroutine
end module

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
module sar
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real32, real64
  implicit none
  private

  public :: sar_communicator, sar_graph, sar_graph_sizes, sar_model, sar_optimizer, sar_predictor, &
    sar_checkpoints, sar_trace
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
  type, bind(C) :: sar_graph_sizes
    integer(c_int64_t) :: nodes         !< of this rank: rows of arrays of nodes
    integer(c_int64_t) :: edges         !< in-edges of these nodes: rows of arrays in the graph's order
    integer(c_int64_t) :: given_edges   !< that this rank gave: rows of arrays in the program's order
    integer(c_int64_t) :: global_nodes  !< of all ranks
    integer(c_int64_t) :: global_edges  !< of all ranks, with the reverse edges
  end type

  !> The ranks that train together.
  type :: sar_communicator
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => communicator_create
    procedure :: world => communicator_world
    procedure :: rank => communicator_rank
    procedure :: num_ranks => communicator_num_ranks
    procedure :: default_num_threads => communicator_default_num_threads
    procedure :: free => communicator_free
  end type

  !> A graph that is spread over the ranks.
  type :: sar_graph
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, private :: from_global_int32, from_global_int64, rebuild_from_global_int32, &
      rebuild_from_global_int64, to_graph_real32, to_graph_real64, &
      to_given_real32, to_given_real64
    generic :: from_global => from_global_int32, from_global_int64
    procedure :: from_local => graph_from_local
    generic :: rebuild_from_global => rebuild_from_global_int32, rebuild_from_global_int64
    procedure :: rebuild_from_local => graph_rebuild_from_local
    procedure :: sizes => graph_sizes
    procedure :: edge_ids => graph_edge_ids
    generic :: edges_to_graph_order => to_graph_real32, to_graph_real64
    generic :: edges_to_given_order => to_given_real32, to_given_real64
    procedure :: free => graph_free
  end type

  !> A network that a description in JSON says, with its weights.
  type :: sar_model
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, private :: create_int32, create_int64, train_real32, train_real64, train_labels_real32, &
      train_labels_real64
    procedure, private :: evaluate_real32, evaluate_real64, evaluate_labels_real32, evaluate_labels_real64
    procedure, private :: get_real32, get_real64, set_real32, set_real64
    generic :: create => create_int32, create_int64
    procedure :: load => model_load
    procedure :: save => model_save
    procedure :: description => model_description
    procedure :: feats => model_feats
    procedure :: num_parameters => model_num_parameters
    procedure :: parameter => model_parameter
    generic :: get_parameter => get_real32, get_real64
    generic :: set_parameter => set_real32, set_real64
    generic :: train_step => train_real32, train_real64
    generic :: train_step_labels => train_labels_real32, train_labels_real64
    generic :: evaluate => evaluate_real32, evaluate_real64
    generic :: evaluate_labels => evaluate_labels_real32, evaluate_labels_real64
    procedure :: free => model_free
  end type

  !> An optimizer of all parameters of a model.
  type :: sar_optimizer
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => optimizer_create
    procedure :: lr => optimizer_lr
    procedure :: set_lr => optimizer_set_lr
    procedure :: free => optimizer_free
  end type

  !> A model with the buffers that it needs for a graph: created once, run many times.
  type :: sar_predictor
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, private :: run_real32, run_real64
    procedure :: create => predictor_create
    generic :: run => run_real32, run_real64
    procedure :: free => predictor_free
  end type

  !> The checkpoints of one run in a directory.
  type :: sar_checkpoints
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure :: create => checkpoints_create
    procedure :: save => checkpoints_save
    procedure :: load_latest => checkpoints_load_latest
    procedure :: load => checkpoints_load
    procedure :: free => checkpoints_free
  end type

  !> A recording of what each rank computes, sends and waits for.
  type :: sar_trace
    private
    type(c_ptr) :: handle = c_null_ptr
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
  end type
  integer(c_int32_t), parameter :: c_float_precision = 0, c_double_precision = 1
  integer(c_int32_t), parameter :: c_node_field = 0, c_field_node = 1

  interface
    pure function c_strlen(text) bind(C, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value, intent(in) :: text
      integer(c_size_t) :: length
    end function
    function c_last_error() bind(C, name="sar_last_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_version() bind(C, name="sar_version") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_precision() bind(C, name="sar_precision") result(precision)
      import :: c_int32_t
      integer(c_int32_t) :: precision
    end function
    function c_init() bind(C, name="sar_init") result(status)
      import :: c_int
      integer(c_int) :: status
    end function
    function c_finalize() bind(C, name="sar_finalize") result(status)
      import :: c_int
      integer(c_int) :: status
    end function
    function c_set_num_threads(threads) bind(C, name="sar_set_num_threads") result(status)
      import :: c_int, c_int32_t
      integer(c_int32_t), value :: threads
      integer(c_int) :: status
    end function
    function c_comm_create_f(fortran_comm, comm) bind(C, name="sar_comm_create_f") result(status)
      import :: c_int, c_int32_t, c_ptr
      integer(c_int32_t), value :: fortran_comm
      type(c_ptr), intent(out) :: comm
      integer(c_int) :: status
    end function
    function c_comm_world(comm) bind(C, name="sar_comm_world") result(status)
      import :: c_int, c_ptr
      type(c_ptr), intent(out) :: comm
      integer(c_int) :: status
    end function
    function c_comm_rank(comm, rank) bind(C, name="sar_comm_rank") result(status)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(inout) :: rank
      integer(c_int) :: status
    end function
    function c_comm_size(comm, num_ranks) bind(C, name="sar_comm_size") result(status)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(inout) :: num_ranks
      integer(c_int) :: status
    end function
    function c_comm_default_num_threads(comm, threads) bind(C, &
      name="sar_comm_default_num_threads") result(status)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: comm
      integer(c_int32_t), intent(inout) :: threads
      integer(c_int) :: status
    end function
    function c_comm_free(comm) bind(C, name="sar_comm_free") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: status
    end function

    function c_graph_from_global(comm, num_nodes, node_ids, num_edges, src, dst, edge_ids, edge_weight, &
      options, graph) &
        bind(C, name="sar_graph_from_global") result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: comm, edge_ids, edge_weight
      integer(c_int64_t), value :: num_nodes, num_edges
      integer(c_int64_t), intent(in) :: node_ids(*), src(*), dst(*)
      character(kind=c_char), intent(in) :: options(*)
      type(c_ptr), intent(inout) :: graph
      integer(c_int) :: status
    end function
    function c_graph_from_local(comm, num_owned, num_local, global_ids, num_edges, src, dst, edge_ids, &
      edge_weight, options, &
                                graph) bind(C, name="sar_graph_from_local") result(status)
      import :: c_char, c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: comm, edge_ids, edge_weight
      integer(c_int64_t), value :: num_owned, num_local, num_edges
      integer(c_int64_t), intent(in) :: global_ids(*)
      integer(c_int32_t), intent(in) :: src(*), dst(*)
      character(kind=c_char), intent(in) :: options(*)
      type(c_ptr), intent(inout) :: graph
      integer(c_int) :: status
    end function
    function c_graph_rebuild_from_global(graph, num_nodes, node_ids, num_edges, src, dst, edge_ids, &
      edge_weight) bind(C, name="sar_graph_rebuild_from_global") result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: graph, edge_ids, edge_weight
      integer(c_int64_t), value :: num_nodes, num_edges
      integer(c_int64_t), intent(in) :: node_ids(*), src(*), dst(*)
      integer(c_int) :: status
    end function
    function c_graph_rebuild_from_local(graph, num_owned, num_local, global_ids, num_edges, src, dst, &
      edge_ids, edge_weight) bind(C, name="sar_graph_rebuild_from_local") result(status)
      import :: c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: graph, edge_ids, edge_weight
      integer(c_int64_t), value :: num_owned, num_local, num_edges
      integer(c_int64_t), intent(in) :: global_ids(*)
      integer(c_int32_t), intent(in) :: src(*), dst(*)
      integer(c_int) :: status
    end function
    function c_graph_get_sizes(graph, sizes) bind(C, name="sar_graph_get_sizes") result(status)
      import :: c_int, c_ptr, sar_graph_sizes
      type(c_ptr), value :: graph
      type(sar_graph_sizes), intent(inout) :: sizes
      integer(c_int) :: status
    end function
    function c_graph_edge_ids(graph, length, edge_ids) bind(C, name="sar_graph_edge_ids") result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: length
      integer(c_int64_t), intent(inout) :: edge_ids(*)
      integer(c_int) :: status
    end function
    function c_edges_to_graph_order(graph, rows, reverse_rows, out) bind(C, &
      name="sar_graph_edges_to_graph_order") result(status)
      import :: c_array, c_int, c_ptr
      type(c_ptr), value :: graph, reverse_rows
      type(c_array), intent(in) :: rows
      type(c_array), intent(inout) :: out
      integer(c_int) :: status
    end function
    function c_edges_to_given_order(graph, rows, reverse, out) bind(C, &
      name="sar_graph_edges_to_given_order") result(status)
      import :: c_array, c_int, c_int32_t, c_ptr
      type(c_ptr), value :: graph
      type(c_array), intent(in) :: rows
      integer(c_int32_t), value :: reverse
      type(c_array), intent(inout) :: out
      integer(c_int) :: status
    end function
    function c_graph_free(graph) bind(C, name="sar_graph_free") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: graph
      integer(c_int) :: status
    end function

    function c_model_create(comm, description, seed, model) bind(C, name="sar_model_create") result(status)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in) :: description(*)
      integer(c_int64_t), value :: seed
      type(c_ptr), intent(inout) :: model
      integer(c_int) :: status
    end function
    function c_model_load(comm, path, model) bind(C, name="sar_model_load") result(status)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(inout) :: model
      integer(c_int) :: status
    end function
    function c_model_save(model, path) bind(C, name="sar_model_save") result(status)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function
    function c_model_description(model, description) bind(C, name="sar_model_description") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: model
      type(c_ptr), intent(inout) :: description
      integer(c_int) :: status
    end function
    function c_model_feats(model, in_feats, out_feats, edge_feats) bind(C, &
      name="sar_model_feats") result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: model
      integer(c_int64_t), intent(inout) :: in_feats, out_feats, edge_feats
      integer(c_int) :: status
    end function
    function c_model_num_parameters(model, num) bind(C, name="sar_model_num_parameters") result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: model
      integer(c_int64_t), intent(inout) :: num
      integer(c_int) :: status
    end function
    function c_model_parameter(model, index, name, rows, fields) bind(C, &
      name="sar_model_parameter") result(status)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: model
      integer(c_int64_t), value :: index
      type(c_ptr), intent(inout) :: name
      integer(c_int64_t), intent(inout) :: rows, fields
      integer(c_int) :: status
    end function
    function c_model_get_parameter(model, index, values) bind(C, &
      name="sar_model_get_parameter") result(status)
      import :: c_array, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: model
      integer(c_int64_t), value :: index
      type(c_array), intent(inout) :: values
      integer(c_int) :: status
    end function
    function c_model_set_parameter(model, index, values) bind(C, &
      name="sar_model_set_parameter") result(status)
      import :: c_array, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: model
      integer(c_int64_t), value :: index
      type(c_array), intent(in) :: values
      integer(c_int) :: status
    end function
    function c_model_free(model) bind(C, name="sar_model_free") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: model
      integer(c_int) :: status
    end function

    function c_optimizer_create(model, description, optimizer) bind(C, &
      name="sar_optimizer_create") result(status)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: description(*)
      type(c_ptr), intent(inout) :: optimizer
      integer(c_int) :: status
    end function
    function c_optimizer_get_lr(optimizer, lr) bind(C, name="sar_optimizer_get_lr") result(status)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: optimizer
      real(c_double), intent(inout) :: lr
      integer(c_int) :: status
    end function
    function c_optimizer_set_lr(optimizer, lr) bind(C, name="sar_optimizer_set_lr") result(status)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: optimizer
      real(c_double), value :: lr
      integer(c_int) :: status
    end function
    function c_optimizer_free(optimizer) bind(C, name="sar_optimizer_free") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: optimizer
      integer(c_int) :: status
    end function

    function c_train_step(model, optimizer, graph, x, edges, loss_kind, target, mask_length, mask, loss) &
        bind(C, name="sar_train_step") result(status)
      import :: c_array, c_double, c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: model, optimizer, graph, edges, mask
      type(c_array), intent(in) :: x, target
      integer(c_int32_t), value :: loss_kind
      integer(c_int64_t), value :: mask_length
      real(c_double), intent(inout) :: loss
      integer(c_int) :: status
    end function
    function c_train_step_labels(model, optimizer, graph, x, edges, num_labels, labels, mask_length, mask, &
      loss) &
        bind(C, name="sar_train_step_labels") result(status)
      import :: c_array, c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: model, optimizer, graph, edges, mask
      type(c_array), intent(in) :: x
      integer(c_int64_t), value :: num_labels, mask_length
      integer(c_int64_t), intent(in) :: labels(*)
      real(c_double), intent(inout) :: loss
      integer(c_int) :: status
    end function
    function c_evaluate(model, graph, x, edges, loss_kind, target, mask_length, mask, loss) &
        bind(C, name="sar_evaluate") result(status)
      import :: c_array, c_double, c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: model, graph, edges, mask
      type(c_array), intent(in) :: x, target
      integer(c_int32_t), value :: loss_kind
      integer(c_int64_t), value :: mask_length
      real(c_double), intent(inout) :: loss
      integer(c_int) :: status
    end function
    function c_evaluate_labels(model, graph, x, edges, num_labels, labels, mask_length, mask, loss) &
        bind(C, name="sar_evaluate_labels") result(status)
      import :: c_array, c_double, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: model, graph, edges, mask
      type(c_array), intent(in) :: x
      integer(c_int64_t), value :: num_labels, mask_length
      integer(c_int64_t), intent(in) :: labels(*)
      real(c_double), intent(inout) :: loss
      integer(c_int) :: status
    end function

    function c_predictor_create(model, graph, predictor) bind(C, name="sar_predictor_create") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: model, graph
      type(c_ptr), intent(inout) :: predictor
      integer(c_int) :: status
    end function
    function c_predictor_run(predictor, x, edges, out) bind(C, name="sar_predictor_run") result(status)
      import :: c_array, c_int, c_ptr
      type(c_ptr), value :: predictor, edges
      type(c_array), intent(in) :: x
      type(c_array), intent(inout) :: out
      integer(c_int) :: status
    end function
    function c_predictor_free(predictor) bind(C, name="sar_predictor_free") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: predictor
      integer(c_int) :: status
    end function

    function c_checkpoints_create(comm, directory, keep_last, seed, checkpoints) &
        bind(C, name="sar_checkpoints_create") result(status)
      import :: c_char, c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in) :: directory(*)
      integer(c_int32_t), value :: keep_last
      integer(c_int64_t), value :: seed
      type(c_ptr), intent(inout) :: checkpoints
      integer(c_int) :: status
    end function
    function c_checkpoints_save(checkpoints, epoch, model, optimizer) bind(C, &
      name="sar_checkpoints_save") result(status)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: checkpoints, model, optimizer
      integer(c_int32_t), value :: epoch
      integer(c_int) :: status
    end function
    function c_checkpoints_load_latest(checkpoints, model, optimizer, epoch) &
        bind(C, name="sar_checkpoints_load_latest") result(status)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: checkpoints, model, optimizer
      integer(c_int32_t), intent(inout) :: epoch
      integer(c_int) :: status
    end function
    function c_checkpoints_load(checkpoints, path, model, optimizer, epoch) bind(C, &
      name="sar_checkpoints_load") result(status)
      import :: c_char, c_int, c_int32_t, c_ptr
      type(c_ptr), value :: checkpoints, model, optimizer
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int32_t), intent(inout) :: epoch
      integer(c_int) :: status
    end function
    function c_checkpoints_free(checkpoints) bind(C, name="sar_checkpoints_free") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: checkpoints
      integer(c_int) :: status
    end function

    function c_trace_start(comm, path, trace) bind(C, name="sar_trace_start") result(status)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(inout) :: trace
      integer(c_int) :: status
    end function
    function c_trace_write(trace) bind(C, name="sar_trace_write") result(status)
      import :: c_int, c_ptr
      type(c_ptr), value :: trace
      integer(c_int) :: status
    end function
    function c_memory_current(bytes) bind(C, name="sar_memory_current") result(status)
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(inout) :: bytes
      integer(c_int) :: status
    end function
    function c_memory_peak(bytes) bind(C, name="sar_memory_peak") result(status)
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(inout) :: bytes
      integer(c_int) :: status
    end function
    function c_memory_reset_peak() bind(C, name="sar_memory_reset_peak") result(status)
      import :: c_int
      integer(c_int) :: status
    end function
    function c_memory_release() bind(C, name="sar_memory_release") result(status)
      import :: c_int
      integer(c_int) :: status
    end function
  end interface

contains

  ! ---- Errors, texts, arrays ----

  !> The text of the last error of this thread, '' without one.
  function sar_last_error() result(text)
    character(len=:), allocatable :: text
    text = text_of(c_last_error())
  end function

  ! Gives status and text to the caller, or ends the program. `text`: of an error that was found here, '' for
  ! those of C.
  subroutine tell(status, stat, errmsg, text)
    integer(c_int), intent(in) :: status
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    character(len=*), intent(in), optional :: text
    character(len=:), allocatable :: what
    if (present(stat)) stat = status
    if (status == sar_ok) return
    what = sar_last_error()
    if (present(text)) then
      if (text /= '') what = text
    end if
    if (present(errmsg)) errmsg = what
    if (present(stat)) return
    write (error_unit, '(2a)') 'sar: ', what
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

  function array_of(data, precision, lengths, rows_first) result(array)
    type(c_ptr), intent(in) :: data
    integer(c_int32_t), intent(in) :: precision
    integer, intent(in) :: lengths(2)
    logical, intent(in), optional :: rows_first
    type(c_array) :: array
    array = c_array(data, precision, c_node_field, int(lengths(2), c_int64_t), int(lengths(1), c_int64_t), &
      0_c_int64_t)
    if (.not. present(rows_first)) return
    if (rows_first) array = c_array(data, precision, c_field_node, int(lengths(1), c_int64_t), &
      int(lengths(2), c_int64_t), &
                                    0_c_int64_t)
  end function

  pure function no_array() result(array)
    type(c_array) :: array
    array = c_array(c_null_ptr, c_float_precision, c_node_field, -1_c_int64_t, 0_c_int64_t, 0_c_int64_t)
  end function

  ! The address of an array, null for one that is not there.
  function pointer_to(array) result(pointer)
    type(c_array), intent(in), target :: array
    type(c_ptr) :: pointer
    pointer = c_null_ptr
    if (array%rows >= 0) pointer = c_loc(array)
  end function

  function array_real32(x, rows_first) result(array)
    real(real32), contiguous, target, intent(in), optional :: x(:, :)
    logical, intent(in), optional :: rows_first
    type(c_array) :: array
    type(c_ptr) :: data
    array = no_array()
    if (.not. present(x)) return
    data = c_null_ptr
    if (size(x) > 0) data = c_loc(x)
    array = array_of(data, c_float_precision, shape(x), rows_first)
  end function

  function array_real64(x, rows_first) result(array)
    real(real64), contiguous, target, intent(in), optional :: x(:, :)
    logical, intent(in), optional :: rows_first
    type(c_array) :: array
    type(c_ptr) :: data
    array = no_array()
    if (.not. present(x)) return
    data = c_null_ptr
    if (size(x) > 0) data = c_loc(x)
    array = array_of(data, c_double_precision, shape(x), rows_first)
  end function

  ! A weight for each edge as an array of one field.
  function weights_of(edge_weight) result(array)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    type(c_array) :: array
    type(c_ptr) :: data
    array = no_array()
    if (.not. present(edge_weight)) return
    data = c_null_ptr
    if (size(edge_weight) > 0) data = c_loc(edge_weight)
    array = array_of(data, c_double_precision, [1, size(edge_weight)])
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

  ! ---- The library ----

  !> For programs that leave MPI to the library: initializes MPI unless the program has done so.
  subroutine sar_init(stat, errmsg)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_init(), stat, errmsg)
  end subroutine

  !> Finalizes MPI if sar_init has initialized it. Free all objects first.
  subroutine sar_finalize(stat, errmsg)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_finalize(), stat, errmsg)
  end subroutine

  !> Loops of the library use this number of threads from here on, 0: all processors that the process is bound
  !> to.
  subroutine sar_set_num_threads(threads, stat, errmsg)
    integer, intent(in) :: threads
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_set_num_threads(int(threads, c_int32_t)), stat, errmsg)
  end subroutine

  !> The version of the library, '1.2.0'.
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
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(int64) :: bytes
    bytes = 0
    call tell(c_memory_current(bytes), stat, errmsg)
  end function

  !> The most of them since the start or sar_memory_reset_peak.
  function sar_memory_peak(stat, errmsg) result(bytes)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(int64) :: bytes
    bytes = 0
    call tell(c_memory_peak(bytes), stat, errmsg)
  end function

  subroutine sar_memory_reset_peak(stat, errmsg)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_memory_reset_peak(), stat, errmsg)
  end subroutine

  !> Gives the pages that are not in use back to the system.
  subroutine sar_memory_release(stat, errmsg)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_memory_release(), stat, errmsg)
  end subroutine

  ! ---- sar_communicator ----

  !> Duplicates an intra-communicator of the module mpi; of the module mpi_f08, give mpi_comm%MPI_VAL.
  !> Collective.
  subroutine communicator_create(self, mpi_comm, stat, errmsg)
    class(sar_communicator), intent(inout) :: self
    integer, intent(in) :: mpi_comm
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    integer(c_int) :: status
    call take(self%handle, old)
    status = sar_ok
    if (c_associated(old)) status = c_comm_free(old)
    if (status == sar_ok) status = c_comm_create_f(int(mpi_comm, c_int32_t), self%handle)
    call tell(status, stat, errmsg)
  end subroutine

  !> The same for MPI_COMM_WORLD. Collective.
  subroutine communicator_world(self, stat, errmsg)
    class(sar_communicator), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    integer(c_int) :: status
    call take(self%handle, old)
    status = sar_ok
    if (c_associated(old)) status = c_comm_free(old)
    if (status == sar_ok) status = c_comm_world(self%handle)
    call tell(status, stat, errmsg)
  end subroutine

  !> This rank, from 0 as in MPI.
  function communicator_rank(self, stat, errmsg) result(rank)
    class(sar_communicator), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer :: rank
    integer(c_int32_t) :: value
    value = -1
    call tell(c_comm_rank(self%handle, value), stat, errmsg)
    rank = value
  end function

  function communicator_num_ranks(self, stat, errmsg) result(num_ranks)
    class(sar_communicator), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer :: num_ranks
    integer(c_int32_t) :: value
    value = 0
    call tell(c_comm_size(self%handle, value), stat, errmsg)
    num_ranks = value
  end function

  !> How many threads the rank should use so that the ranks of a node share its cores. Collective.
  function communicator_default_num_threads(self, stat, errmsg) result(threads)
    class(sar_communicator), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer :: threads
    integer(c_int32_t) :: value
    value = 0
    call tell(c_comm_default_num_threads(self%handle, value), stat, errmsg)
    threads = value
  end function

  !> Collective.
  subroutine communicator_free(self, stat, errmsg)
    class(sar_communicator), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    call take(self%handle, old)
    call tell(c_comm_free(old), stat, errmsg)
  end subroutine

  ! Moves a handle, so that none is freed twice.
  subroutine take(from, to)
    type(c_ptr), intent(inout) :: from
    type(c_ptr), intent(out) :: to
    to = from
    from = c_null_ptr
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
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array), target :: weights
    character(len=:), allocatable :: wrong
    call graph_release(self)
    weights = weights_of(edge_weight)
    wrong = wrong_lengths(size(src), size(dst), edge_ids)
    call tell(c_graph_from_global(comm%handle, size(node_ids, kind=c_int64_t), node_ids, &
      edges_or_error(size(src), wrong), src, &
                                  dst, ids_pointer(edge_ids), pointer_to(weights), options_of(options), &
                                  self%handle), &
              stat, errmsg, wrong)
  end subroutine

  !> The same with ids that are default integers.
  subroutine from_global_int32(self, comm, node_ids, src, dst, edge_ids, edge_weight, options, stat, errmsg)
    class(sar_graph), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    integer(int32), intent(in) :: node_ids(:), src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    character(len=*), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call from_global_int64(self, comm, int(node_ids, int64), int(src, int64), int(dst, int64), edge_ids, &
      edge_weight, options, &
                           stat, errmsg)
  end subroutine

  !> The same for a program with a numbering of its own on each rank: its nodes are 1 .. num_owned, its ghosts
  !> num_owned + 1 .. size(global_ids). src, dst: numbers of this numbering. Collective.
  subroutine graph_from_local(self, comm, num_owned, global_ids, src, dst, edge_ids, edge_weight, options, &
    stat, errmsg)
    class(sar_graph), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    integer, intent(in) :: num_owned
    integer(int64), contiguous, intent(in) :: global_ids(:)
    integer, intent(in) :: src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    character(len=*), intent(in), optional :: options
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array), target :: weights
    character(len=:), allocatable :: wrong
    call graph_release(self)
    weights = weights_of(edge_weight)
    wrong = wrong_lengths(size(src), size(dst), edge_ids)
    call tell(c_graph_from_local(comm%handle, int(num_owned, c_int64_t), size(global_ids, kind=c_int64_t), &
      global_ids, &
                                 edges_or_error(size(src), wrong), int(src - 1, c_int32_t), int(dst - 1, &
                                 c_int32_t), &
                                 ids_pointer(edge_ids), pointer_to(weights), options_of(options), &
                                 self%handle), &
              stat, errmsg, wrong)
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
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array), target :: weights
    character(len=:), allocatable :: wrong
    weights = weights_of(edge_weight)
    wrong = wrong_lengths(size(src), size(dst), edge_ids)
    call tell(c_graph_rebuild_from_global(self%handle, size(node_ids, kind=c_int64_t), node_ids, &
      edges_or_error(size(src), wrong), src, dst, ids_pointer(edge_ids), pointer_to(weights)), &
              stat, errmsg, wrong)
  end subroutine

  !> The same with ids that are default integers.
  subroutine rebuild_from_global_int32(self, node_ids, src, dst, edge_ids, edge_weight, stat, errmsg)
    class(sar_graph), intent(in) :: self
    integer(int32), intent(in) :: node_ids(:), src(:), dst(:)
    integer(int64), contiguous, target, intent(in), optional :: edge_ids(:)
    real(real64), contiguous, target, intent(in), optional :: edge_weight(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call rebuild_from_global_int64(self, int(node_ids, int64), int(src, int64), int(dst, int64), edge_ids, &
      edge_weight, stat, errmsg)
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
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array), target :: weights
    character(len=:), allocatable :: wrong
    weights = weights_of(edge_weight)
    wrong = wrong_lengths(size(src), size(dst), edge_ids)
    call tell(c_graph_rebuild_from_local(self%handle, int(num_owned, c_int64_t), &
      size(global_ids, kind=c_int64_t), global_ids, edges_or_error(size(src), wrong), &
      int(src - 1, c_int32_t), int(dst - 1, c_int32_t), ids_pointer(edge_ids), pointer_to(weights)), &
              stat, errmsg, wrong)
  end subroutine

  ! What is wrong with the lengths of the arrays of edges, '' where nothing is.
  function wrong_lengths(num_src, num_dst, edge_ids) result(text)
    integer, intent(in) :: num_src, num_dst
    integer(int64), intent(in), optional :: edge_ids(:)
    character(len=:), allocatable :: text
    character(len=200) :: line
    line = ''
    if (num_src /= num_dst) then
      write (line, '(a, i0, a, i0, a)') 'src has ', num_src, ' numbers and dst has ', num_dst, &
        ', expected one for each edge'
    else if (present(edge_ids)) then
      if (size(edge_ids) /= num_src) write (line, '(a, i0, a, i0, a)') 'edge_ids has ', size(edge_ids), &
        ' numbers, expected ', &
        num_src, ', one for each edge'
    end if
    text = trim(line)
  end function

  ! The number of edges; one that C refuses on all ranks where lengths are wrong, so that no rank waits for
  ! this one.
  pure function edges_or_error(num_edges, wrong) result(length)
    integer, intent(in) :: num_edges
    character(len=*), intent(in) :: wrong
    integer(c_int64_t) :: length
    length = merge(int(num_edges, c_int64_t), -1_c_int64_t, wrong == '')
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

  ! The old graph goes before the new one is made.
  subroutine graph_release(graph)
    class(sar_graph), intent(inout) :: graph
    type(c_ptr) :: old
    integer(c_int) :: ignored
    call take(graph%handle, old)
    if (c_associated(old)) ignored = c_graph_free(old)
  end subroutine

  function graph_sizes(self, stat, errmsg) result(sizes)
    class(sar_graph), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(sar_graph_sizes) :: sizes
    sizes = sar_graph_sizes(0, 0, 0, 0, 0)
    call tell(c_graph_get_sizes(self%handle, sizes), stat, errmsg)
  end function

  !> The ids of the edges in the graph's order; sizes()%edges of them.
  subroutine graph_edge_ids(self, edge_ids, stat, errmsg)
    class(sar_graph), intent(in) :: self
    integer(int64), contiguous, intent(inout) :: edge_ids(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_graph_edge_ids(self%handle, size(edge_ids, kind=c_int64_t), edge_ids), stat, errmsg)
  end subroutine

  !> From a row for each edge that this rank gave, (fields, given_edges), to a row for each edge in the
  !> graph's order, (fields, edges), as models take them. With the option add_reverse_edges, a reverse edge
  !> has the row of the edge that it reverses, or this edge's row of reverse_rows. Collective.
  subroutine to_graph_real32(self, rows, out, reverse_rows, rows_first, stat, errmsg)
    class(sar_graph), intent(in) :: self
    real(real32), contiguous, target, intent(in) :: rows(:, :)
    real(real32), contiguous, target, intent(inout) :: out(:, :)
    real(real32), contiguous, target, intent(in), optional :: reverse_rows(:, :)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call to_graph(self, array_real32(rows, rows_first), array_real32(out, rows_first), &
      array_real32(reverse_rows, rows_first), &
                  stat, errmsg)
  end subroutine

  subroutine to_graph_real64(self, rows, out, reverse_rows, rows_first, stat, errmsg)
    class(sar_graph), intent(in) :: self
    real(real64), contiguous, target, intent(in) :: rows(:, :)
    real(real64), contiguous, target, intent(inout) :: out(:, :)
    real(real64), contiguous, target, intent(in), optional :: reverse_rows(:, :)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call to_graph(self, array_real64(rows, rows_first), array_real64(out, rows_first), &
      array_real64(reverse_rows, rows_first), &
                  stat, errmsg)
  end subroutine

  subroutine to_graph(graph, rows, out, reverse_rows, stat, errmsg)
    class(sar_graph), intent(in) :: graph
    type(c_array), intent(in) :: rows, out
    type(c_array), target, intent(in) :: reverse_rows
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array) :: result
    result = out
    call tell(c_edges_to_graph_order(graph%handle, rows, pointer_to(reverse_rows), result), stat, errmsg)
  end subroutine

  !> The inverse: from (fields, edges) to (fields, given_edges); with reverse, the rows of the reverse edges.
  !> Collective.
  subroutine to_given_real32(self, rows, out, reverse, rows_first, stat, errmsg)
    class(sar_graph), intent(in) :: self
    real(real32), contiguous, target, intent(in) :: rows(:, :)
    real(real32), contiguous, target, intent(inout) :: out(:, :)
    logical, intent(in), optional :: reverse, rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call to_given(self, array_real32(rows, rows_first), array_real32(out, rows_first), reverse, stat, errmsg)
  end subroutine

  subroutine to_given_real64(self, rows, out, reverse, rows_first, stat, errmsg)
    class(sar_graph), intent(in) :: self
    real(real64), contiguous, target, intent(in) :: rows(:, :)
    real(real64), contiguous, target, intent(inout) :: out(:, :)
    logical, intent(in), optional :: reverse, rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call to_given(self, array_real64(rows, rows_first), array_real64(out, rows_first), reverse, stat, errmsg)
  end subroutine

  subroutine to_given(graph, rows, out, reverse, stat, errmsg)
    class(sar_graph), intent(in) :: graph
    type(c_array), intent(in) :: rows, out
    logical, intent(in), optional :: reverse
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array) :: result
    integer(c_int32_t) :: reversed
    result = out
    reversed = 0
    if (present(reverse)) reversed = merge(1_c_int32_t, 0_c_int32_t, reverse)
    call tell(c_edges_to_given_order(graph%handle, rows, reversed, result), stat, errmsg)
  end subroutine

  subroutine graph_free(self, stat, errmsg)
    class(sar_graph), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    call take(self%handle, old)
    call tell(c_graph_free(old), stat, errmsg)
  end subroutine

  ! ---- sar_model ----

  !> The network of a description in JSON, with weights that are drawn from `seed`. Collective.
  subroutine create_int64(self, comm, description, seed, stat, errmsg)
    class(sar_model), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: description
    integer(int64), intent(in) :: seed
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call model_release(self)
    call tell(c_model_create(comm%handle, c_text(description), seed, self%handle), stat, errmsg)
  end subroutine

  subroutine create_int32(self, comm, description, seed, stat, errmsg)
    class(sar_model), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: description
    integer(int32), intent(in) :: seed
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call create_int64(self, comm, description, int(seed, int64), stat, errmsg)
  end subroutine

  !> The network and the weights of a .safetensors file. Collective.
  subroutine model_load(self, comm, path, stat, errmsg)
    class(sar_model), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call model_release(self)
    call tell(c_model_load(comm%handle, c_text(path), self%handle), stat, errmsg)
  end subroutine

  !> Writes the description and the weights; rank 0 writes the file. Collective.
  subroutine model_save(self, path, stat, errmsg)
    class(sar_model), intent(in) :: self
    character(len=*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_model_save(self%handle, c_text(path)), stat, errmsg)
  end subroutine

  !> The description, complete, as JSON.
  function model_description(self, stat, errmsg) result(description)
    class(sar_model), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
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
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_model_feats(self%handle, in_feats, out_feats, edge_feats), stat, errmsg)
  end subroutine

  function model_num_parameters(self, stat, errmsg) result(num)
    class(sar_model), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
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
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: text
    integer(c_int) :: status
    text = c_null_ptr
    status = c_model_parameter(self%handle, index - 1_c_int64_t, text, rows, fields)
    if (status == sar_ok) name = text_of(text)
    call tell(status, stat, errmsg)
  end subroutine

  !> Copy the values of parameter `index`, (fields, rows), out of the model and into it. Set the same values
  !> on all ranks.
  subroutine get_real32(self, index, values, rows_first, stat, errmsg)
    class(sar_model), intent(in) :: self
    integer, intent(in) :: index
    real(real32), contiguous, target, intent(inout) :: values(:, :)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array) :: array
    array = array_real32(values, rows_first)
    call tell(c_model_get_parameter(self%handle, index - 1_c_int64_t, array), stat, errmsg)
  end subroutine

  subroutine get_real64(self, index, values, rows_first, stat, errmsg)
    class(sar_model), intent(in) :: self
    integer, intent(in) :: index
    real(real64), contiguous, target, intent(inout) :: values(:, :)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array) :: array
    array = array_real64(values, rows_first)
    call tell(c_model_get_parameter(self%handle, index - 1_c_int64_t, array), stat, errmsg)
  end subroutine

  subroutine set_real32(self, index, values, rows_first, stat, errmsg)
    class(sar_model), intent(in) :: self
    integer, intent(in) :: index
    real(real32), contiguous, target, intent(in) :: values(:, :)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_model_set_parameter(self%handle, index - 1_c_int64_t, array_real32(values, rows_first)), &
      stat, errmsg)
  end subroutine

  subroutine set_real64(self, index, values, rows_first, stat, errmsg)
    class(sar_model), intent(in) :: self
    integer, intent(in) :: index
    real(real64), contiguous, target, intent(in) :: values(:, :)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_model_set_parameter(self%handle, index - 1_c_int64_t, array_real64(values, rows_first)), &
      stat, errmsg)
  end subroutine

  !> One step of training: forward pass, loss, backward pass, sums of the gradients over all ranks, step of
  !> the optimizer.
  !>
  !> x: (in_feats, nodes). target: (out_feats, nodes). loss: the value before the step, the same on every
  !> rank. edges: (edge_feats, edges) in the graph's order, for a model that takes them. mask: nodes that
  !> count in the loss; without it all do. loss_kind: one of sar_loss_..., sar_loss_mse without it. On an
  !> error that is found before the step of the optimizer, the weights are as they were. Collective.
  subroutine train_real32(self, optimizer, graph, x, target, loss, edges, mask, loss_kind, rows_first, &
    stat, errmsg)
    class(sar_model), intent(in) :: self
    type(sar_optimizer), intent(in) :: optimizer
    type(sar_graph), intent(in) :: graph
    real(real32), contiguous, target, intent(in) :: x(:, :), target(:, :)
    real(real64), intent(inout) :: loss
    real(real32), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: mask(:)
    integer, intent(in), optional :: loss_kind
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call fit(self, optimizer, graph, array_real32(x, rows_first), array_real32(target, rows_first), loss, &
             array_real32(edges, rows_first), mask, loss_kind, stat, errmsg)
  end subroutine

  subroutine train_real64(self, optimizer, graph, x, target, loss, edges, mask, loss_kind, rows_first, &
    stat, errmsg)
    class(sar_model), intent(in) :: self
    type(sar_optimizer), intent(in) :: optimizer
    type(sar_graph), intent(in) :: graph
    real(real64), contiguous, target, intent(in) :: x(:, :), target(:, :)
    real(real64), intent(inout) :: loss
    real(real64), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: mask(:)
    integer, intent(in), optional :: loss_kind
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call fit(self, optimizer, graph, array_real64(x, rows_first), array_real64(target, rows_first), loss, &
             array_real64(edges, rows_first), mask, loss_kind, stat, errmsg)
  end subroutine

  !> The loss without a step: in evaluation mode, no gradients. Collective.
  subroutine evaluate_real32(self, graph, x, target, loss, edges, mask, loss_kind, rows_first, stat, errmsg)
    class(sar_model), intent(in) :: self
    type(sar_graph), intent(in) :: graph
    real(real32), contiguous, target, intent(in) :: x(:, :), target(:, :)
    real(real64), intent(inout) :: loss
    real(real32), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: mask(:)
    integer, intent(in), optional :: loss_kind
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call measure(self, graph, array_real32(x, rows_first), array_real32(target, rows_first), loss, &
                 array_real32(edges, rows_first), mask, loss_kind, stat, errmsg)
  end subroutine

  subroutine evaluate_real64(self, graph, x, target, loss, edges, mask, loss_kind, rows_first, stat, errmsg)
    class(sar_model), intent(in) :: self
    type(sar_graph), intent(in) :: graph
    real(real64), contiguous, target, intent(in) :: x(:, :), target(:, :)
    real(real64), intent(inout) :: loss
    real(real64), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: mask(:)
    integer, intent(in), optional :: loss_kind
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call measure(self, graph, array_real64(x, rows_first), array_real64(target, rows_first), loss, &
                 array_real64(edges, rows_first), mask, loss_kind, stat, errmsg)
  end subroutine

  subroutine fit(model, optimizer, graph, x, target, loss, edges, mask, loss_kind, stat, errmsg)
    class(sar_model), intent(in) :: model
    type(sar_optimizer), intent(in) :: optimizer
    type(sar_graph), intent(in) :: graph
    type(c_array), intent(in) :: x, target
    real(real64), intent(inout) :: loss
    type(c_array), target, intent(in) :: edges
    logical, intent(in), optional :: mask(:)
    integer, intent(in), optional :: loss_kind
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int8_t), allocatable, target :: bytes(:)
    call get_bytes(mask, bytes)
    call tell(c_train_step(model%handle, optimizer%handle, graph%handle, x, pointer_to(edges), &
      kind_of_loss(loss_kind), target, &
                           size(bytes, kind=c_int64_t), mask_pointer(bytes, mask), loss), stat, errmsg)
  end subroutine

  subroutine measure(model, graph, x, target, loss, edges, mask, loss_kind, stat, errmsg)
    class(sar_model), intent(in) :: model
    type(sar_graph), intent(in) :: graph
    type(c_array), intent(in) :: x, target
    real(real64), intent(inout) :: loss
    type(c_array), target, intent(in) :: edges
    logical, intent(in), optional :: mask(:)
    integer, intent(in), optional :: loss_kind
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int8_t), allocatable, target :: bytes(:)
    call get_bytes(mask, bytes)
    call tell(c_evaluate(model%handle, graph%handle, x, pointer_to(edges), kind_of_loss(loss_kind), target, &
                         size(bytes, kind=c_int64_t), mask_pointer(bytes, mask), loss), stat, errmsg)
  end subroutine

  pure function kind_of_loss(loss_kind) result(kind_of)
    integer, intent(in), optional :: loss_kind
    integer(c_int32_t) :: kind_of
    kind_of = sar_loss_mse
    if (present(loss_kind)) kind_of = int(loss_kind, c_int32_t)
  end function

  !> The same with the cross entropy of classes; labels: 1 .. out_feats, anything where the mask is false.
  !> Collective.
  subroutine train_labels_real32(self, optimizer, graph, x, labels, loss, edges, mask, rows_first, stat, &
    errmsg)
    class(sar_model), intent(in) :: self
    type(sar_optimizer), intent(in) :: optimizer
    type(sar_graph), intent(in) :: graph
    real(real32), contiguous, target, intent(in) :: x(:, :)
    integer, intent(in) :: labels(:)
    real(real64), intent(inout) :: loss
    real(real32), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: mask(:)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call fit_labels(self, optimizer, graph, array_real32(x, rows_first), labels, loss, array_real32(edges, &
      rows_first), mask, &
                    stat, errmsg)
  end subroutine

  subroutine train_labels_real64(self, optimizer, graph, x, labels, loss, edges, mask, rows_first, stat, &
    errmsg)
    class(sar_model), intent(in) :: self
    type(sar_optimizer), intent(in) :: optimizer
    type(sar_graph), intent(in) :: graph
    real(real64), contiguous, target, intent(in) :: x(:, :)
    integer, intent(in) :: labels(:)
    real(real64), intent(inout) :: loss
    real(real64), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: mask(:)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call fit_labels(self, optimizer, graph, array_real64(x, rows_first), labels, loss, array_real64(edges, &
      rows_first), mask, &
                    stat, errmsg)
  end subroutine

  subroutine evaluate_labels_real32(self, graph, x, labels, loss, edges, mask, rows_first, stat, errmsg)
    class(sar_model), intent(in) :: self
    type(sar_graph), intent(in) :: graph
    real(real32), contiguous, target, intent(in) :: x(:, :)
    integer, intent(in) :: labels(:)
    real(real64), intent(inout) :: loss
    real(real32), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: mask(:)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call measure_labels(self, graph, array_real32(x, rows_first), labels, loss, array_real32(edges, &
      rows_first), mask, stat, errmsg)
  end subroutine

  subroutine evaluate_labels_real64(self, graph, x, labels, loss, edges, mask, rows_first, stat, errmsg)
    class(sar_model), intent(in) :: self
    type(sar_graph), intent(in) :: graph
    real(real64), contiguous, target, intent(in) :: x(:, :)
    integer, intent(in) :: labels(:)
    real(real64), intent(inout) :: loss
    real(real64), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: mask(:)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call measure_labels(self, graph, array_real64(x, rows_first), labels, loss, array_real64(edges, &
      rows_first), mask, stat, errmsg)
  end subroutine

  subroutine fit_labels(model, optimizer, graph, x, labels, loss, edges, mask, stat, errmsg)
    class(sar_model), intent(in) :: model
    type(sar_optimizer), intent(in) :: optimizer
    type(sar_graph), intent(in) :: graph
    type(c_array), intent(in) :: x
    integer, intent(in) :: labels(:)
    real(real64), intent(inout) :: loss
    type(c_array), target, intent(in) :: edges
    logical, intent(in), optional :: mask(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int8_t), allocatable, target :: bytes(:)
    call get_bytes(mask, bytes)
    call tell(c_train_step_labels(model%handle, optimizer%handle, graph%handle, x, pointer_to(edges), &
                                  size(labels, kind=c_int64_t), int(labels, c_int64_t) - 1, size(bytes, &
                                  kind=c_int64_t), &
                                  mask_pointer(bytes, mask), loss), stat, errmsg)
  end subroutine

  subroutine measure_labels(model, graph, x, labels, loss, edges, mask, stat, errmsg)
    class(sar_model), intent(in) :: model
    type(sar_graph), intent(in) :: graph
    type(c_array), intent(in) :: x
    integer, intent(in) :: labels(:)
    real(real64), intent(inout) :: loss
    type(c_array), target, intent(in) :: edges
    logical, intent(in), optional :: mask(:)
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int8_t), allocatable, target :: bytes(:)
    call get_bytes(mask, bytes)
    call tell(c_evaluate_labels(model%handle, graph%handle, x, pointer_to(edges), size(labels, &
      kind=c_int64_t), &
                                int(labels, c_int64_t) - 1, size(bytes, kind=c_int64_t), &
                                mask_pointer(bytes, mask), loss), &
              stat, errmsg)
  end subroutine

  subroutine model_release(model)
    class(sar_model), intent(inout) :: model
    type(c_ptr) :: old
    integer(c_int) :: ignored
    call take(model%handle, old)
    if (c_associated(old)) ignored = c_model_free(old)
  end subroutine

  subroutine model_free(self, stat, errmsg)
    class(sar_model), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    call take(self%handle, old)
    call tell(c_model_free(old), stat, errmsg)
  end subroutine

  ! ---- sar_optimizer ----

  !> description: a JSON object as '{"optimizer": "adam", "lr": 0.01}'; sar.h has the keys. Collective.
  subroutine optimizer_create(self, model, description, stat, errmsg)
    class(sar_optimizer), intent(inout) :: self
    type(sar_model), intent(in) :: model
    character(len=*), intent(in) :: description
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    integer(c_int) :: ignored
    call take(self%handle, old)
    if (c_associated(old)) ignored = c_optimizer_free(old)
    call tell(c_optimizer_create(model%handle, c_text(description), self%handle), stat, errmsg)
  end subroutine

  !> The learning rate.
  function optimizer_lr(self, stat, errmsg) result(lr)
    class(sar_optimizer), intent(in) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    real(real64) :: lr
    lr = 0
    call tell(c_optimizer_get_lr(self%handle, lr), stat, errmsg)
  end function

  !> Set the same on all ranks.
  subroutine optimizer_set_lr(self, lr, stat, errmsg)
    class(sar_optimizer), intent(in) :: self
    real(real64), intent(in) :: lr
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_optimizer_set_lr(self%handle, lr), stat, errmsg)
  end subroutine

  subroutine optimizer_free(self, stat, errmsg)
    class(sar_optimizer), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    call take(self%handle, old)
    call tell(c_optimizer_free(old), stat, errmsg)
  end subroutine

  ! ---- sar_predictor ----

  !> It reads the weights at each run, so that training may go on. Collective.
  subroutine predictor_create(self, model, graph, stat, errmsg)
    class(sar_predictor), intent(inout) :: self
    type(sar_model), intent(in) :: model
    type(sar_graph), intent(in) :: graph
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    integer(c_int) :: ignored
    call take(self%handle, old)
    if (c_associated(old)) ignored = c_predictor_free(old)
    call tell(c_predictor_create(model%handle, graph%handle, self%handle), stat, errmsg)
  end subroutine

  !> Computes out (out_feats, nodes) from x (in_feats, nodes) and edges (edge_feats, edges), which a model
  !> without features of edges does not take. After the first run the library allocates nothing where the
  !> arrays need no conversion. On an error `out` may be partly written. Collective.
  subroutine run_real32(self, x, out, edges, rows_first, stat, errmsg)
    class(sar_predictor), intent(in) :: self
    real(real32), contiguous, target, intent(in) :: x(:, :)
    real(real32), contiguous, target, intent(inout) :: out(:, :)
    real(real32), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array) :: y
    type(c_array), target :: e
    y = array_real32(out, rows_first)
    e = array_real32(edges, rows_first)
    call tell(c_predictor_run(self%handle, array_real32(x, rows_first), pointer_to(e), y), stat, errmsg)
  end subroutine

  subroutine run_real64(self, x, out, edges, rows_first, stat, errmsg)
    class(sar_predictor), intent(in) :: self
    real(real64), contiguous, target, intent(in) :: x(:, :)
    real(real64), contiguous, target, intent(inout) :: out(:, :)
    real(real64), contiguous, target, intent(in), optional :: edges(:, :)
    logical, intent(in), optional :: rows_first
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_array) :: y
    type(c_array), target :: e
    y = array_real64(out, rows_first)
    e = array_real64(edges, rows_first)
    call tell(c_predictor_run(self%handle, array_real64(x, rows_first), pointer_to(e), y), stat, errmsg)
  end subroutine

  subroutine predictor_free(self, stat, errmsg)
    class(sar_predictor), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    call take(self%handle, old)
    call tell(c_predictor_free(old), stat, errmsg)
  end subroutine

  ! ---- sar_checkpoints ----

  !> The directory is made if need be. The last `keep_last` checkpoints are kept. `seed` is that of the run: a
  !> checkpoint of another seed is not loaded. Collective.
  subroutine checkpoints_create(self, comm, directory, keep_last, seed, stat, errmsg)
    class(sar_checkpoints), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: directory
    integer, intent(in) :: keep_last, seed
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    integer(c_int) :: ignored
    call take(self%handle, old)
    if (c_associated(old)) ignored = c_checkpoints_free(old)
    call tell(c_checkpoints_create(comm%handle, c_text(directory), int(keep_last, c_int32_t), int(seed, &
      c_int64_t), &
                                   self%handle), stat, errmsg)
  end subroutine

  !> Writes the state of the training. Collective.
  subroutine checkpoints_save(self, epoch, model, optimizer, stat, errmsg)
    class(sar_checkpoints), intent(in) :: self
    integer, intent(in) :: epoch
    type(sar_model), intent(in) :: model
    type(sar_optimizer), intent(in) :: optimizer
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_checkpoints_save(self%handle, int(epoch, c_int32_t), model%handle, optimizer%handle), stat, &
      errmsg)
  end subroutine

  !> Puts model and optimizer into the state of the latest checkpoint, and tells its epoch; -1 without any.
  !> Collective.
  subroutine checkpoints_load_latest(self, model, optimizer, epoch, stat, errmsg)
    class(sar_checkpoints), intent(in) :: self
    type(sar_model), intent(in) :: model
    type(sar_optimizer), intent(in) :: optimizer
    integer, intent(inout) :: epoch
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
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
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    integer(c_int32_t) :: value
    integer(c_int) :: status
    value = int(epoch, c_int32_t)
    status = c_checkpoints_load(self%handle, c_text(path), model%handle, optimizer%handle, value)
    epoch = value
    call tell(status, stat, errmsg)
  end subroutine

  subroutine checkpoints_free(self, stat, errmsg)
    class(sar_checkpoints), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    call take(self%handle, old)
    call tell(c_checkpoints_free(old), stat, errmsg)
  end subroutine

  ! ---- sar_trace ----

  !> Records until write is called; one at a time. Collective.
  subroutine trace_start(self, comm, path, stat, errmsg)
    class(sar_trace), intent(inout) :: self
    type(sar_communicator), intent(in) :: comm
    character(len=*), intent(in) :: path
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    call tell(c_trace_start(comm%handle, c_text(path), self%handle), stat, errmsg)
  end subroutine

  !> Ends the recording and writes it for Perfetto. Collective.
  subroutine trace_write(self, stat, errmsg)
    class(sar_trace), intent(inout) :: self
    integer, intent(out), optional :: stat
    character(len=*), intent(inout), optional :: errmsg
    type(c_ptr) :: old
    call take(self%handle, old)
    call tell(c_trace_write(old), stat, errmsg)
  end subroutine
end module

! SPDX-License-Identifier: MIT

!> What the module does beside training: errors, orders and kinds of arrays, parameters, files, numbers from
!> 1. `fortran_test stop` makes an error without stat.
program fortran_test
  use, intrinsic :: ieee_arithmetic, only: ieee_is_nan, ieee_quiet_nan, ieee_value
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real32, real64
  use sar
  implicit none
  integer, parameter :: num_nodes = 30
  character(len=*), parameter :: description = &
    '{"sar_model": 1, "type": "sage", "in_feats": 2, "hidden": 8, "out_feats": 3, "layers": 2}'
  type(sar_comm) :: comm
  type(sar_graph) :: graph
  type(sar_model) :: model
  type(sar_optimizer) :: optimizer
  integer(int64), allocatable :: ids(:), src(:), dst(:)
  real(real64), allocatable :: x(:, :), target(:, :)
  real(real64) :: tolerance
  character(len=300) :: errmsg
  integer :: n, stat
  logical :: failed = .false.

  call sar_init()
  call comm%world()
  call make_arrays()
  call graph%from_global(comm, ids, src, dst)
  call model%create(comm, description, seed=3)
  call optimizer%create(model, '{"optimizer": "sgd", "lr": 0.1}')
  tolerance = merge(1e-12_real64, 1e-6_real64, sar_real_kind() == real64)
  if (command_argument_count() > 0) call train_without_stat()

  call test_errors()
  call test_graphs()
  call test_arrays()
  call test_training()
  call test_types()
  call test_couplings()
  call test_differing_calls()
  call test_finite_steps()
  call test_statistics()
  call test_empty_rank()
  call test_rebuilding()
  call test_parameters()
  call test_files()
  call test_potential('SAR_TEST_POTENTIAL')
  call test_potential('SAR_TEST_MACE')
  call test_library()

  call optimizer%free()
  call model%free()
  call graph%free()
  call comm%free()
  call sar_finalize()
  if (failed) error stop 1

contains

  subroutine make_arrays()
    integer :: first, last, i
    first = comm%rank() * num_nodes / comm%size()
    last = (comm%rank() + 1) * num_nodes / comm%size() - 1
    n = last - first + 1
    ids = [(i, i=first, last)]
    src = [(modulo(i - 1, num_nodes), modulo(i + 7, num_nodes), i=first, last)]
    dst = [(i, i, i=first, last)]
    allocate (x(2, n), target(3, n))
    x(1, :) = modulo(7 * ids, 11_int64) / 10.0_real64
    x(2, :) = modulo(5 * ids, 13_int64) / 10.0_real64
    target = 0.5_real64
  end subroutine

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    failed = .true.
    write (error_unit, '(a, i0, 2a)') 'rank ', comm%rank(), ': FAILED: ', what
  end subroutine

  ! The last call returned this status, and a text with these words.
  subroutine check_error(expected, words)
    integer, intent(in) :: expected
    character(len=*), intent(in) :: words
    call check(stat == expected, 'status of: '//trim(errmsg))
    call check(index(errmsg, words) > 0, 'the text "'//trim(errmsg)//'" says "'//words//'"')
  end subroutine

  subroutine train_without_stat()
    real(real64) :: loss
    real(real64) :: wrong(5, n)
    wrong = 0
    call model%train_step(optimizer, graph, wrong, target, loss)
  end subroutine

  subroutine test_errors()
    type(sar_model) :: no_model, freed
    type(sar_graph) :: no_graph
    type(sar_comm) :: no_comm
    real(real64) :: loss, wrong(5, n)
    integer(int64), allocatable :: shorter(:)
    wrong = 0
    loss = -1
    errmsg = 'as it was'
    call model%train_step(optimizer, graph, wrong, target, loss, stat=stat, errmsg=errmsg)
    call check_error(sar_error_shape, '5')
    call check(loss == -1, 'the loss is as it was')
    call check(sar_last_error() == trim(errmsg), 'sar_last_error is the text of the error')

    errmsg = 'as it was'
    call model%evaluate(graph, x, target, loss, stat=stat, errmsg=errmsg)
    call check_error(sar_ok, 'as it was')
    call check(loss > 0, 'a loss after an error')

    call no_model%train_step(optimizer, graph, x, target, loss, stat=stat, errmsg=errmsg)
    call check_error(sar_error_handle, '')
    call no_model%free(stat, errmsg)
    call check_error(sar_error_handle, '')
    call freed%create(comm, description, seed=3)
    no_model = freed
    call freed%free()
    call no_model%evaluate(graph, x, target, loss, stat=stat, errmsg=errmsg)
    call check_error(sar_error_handle, '')

    call no_model%create(comm, &
      '{"sar_model": 1, "type": "sage", "in_feats": 2, "out_feats": 1, "width": 3}', seed=1, &
                         stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'width')
    call no_model%load(comm, 'no_such_file.safetensors   ', stat, errmsg)
    call check_error(sar_error_input, 'no_such_file.safetensors')

    call check(no_comm%rank(stat, errmsg) == -1, 'a function after an error')
    call check_error(sar_error_handle, 'null')
    call sar_refuse_next('not this one')
    call model%evaluate(graph, x, target, loss, stat=stat, errmsg=errmsg)
    call check_error(sar_error_shape, 'not this one')

    ! an error of the last rank, which the others are told
    shorter = dst
    if (comm%rank() == comm%size() - 1) shorter = dst(2:)
    call no_graph%from_global(comm, ids, src, shorter, stat=stat, errmsg=errmsg)
    call check_error(sar_error_shape, 'as many as src')
    call no_graph%from_global(comm, ids, src, dst, edge_ids=ids(:1), stat=stat, errmsg=errmsg)
    call check_error(sar_error_shape, 'edge_ids has 1 numbers, expected')
    call no_graph%from_global(comm, ids, src, dst, options='{"mode": "fast"}', stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'fast')
  end subroutine

  subroutine test_graphs()
    type(sar_graph) :: other
    integer(int64) :: nodes, edges, given_edges
    integer(int64), allocatable :: global_ids(:), edge_ids(:)
    integer, allocatable :: local_src(:), local_dst(:)
    real(real64) :: loss(3), rows(1, 2 * n), ordered(1, 2 * n), back(1, 2 * n), weight(2 * n)
    integer(int64) :: global_nodes, global_edges
    integer :: e
    call graph%num_nodes(nodes, global_nodes)
    call graph%num_edges(edges, global_edges, given_edges)
    call check(nodes == n .and. edges == 2 * n .and. given_edges == 2 * n, 'sizes of this rank')
    call check(global_nodes == num_nodes .and. global_edges == 2 * num_nodes, 'sizes of the graph')
    edges = -1
    call graph%num_edges(edges=edges)
    call check(edges == 2 * n, 'one of the sizes')

    allocate (edge_ids(2 * n))
    rows(1, :) = real(10 * dst + modulo(dst - src, 10_int64), real64)
    call graph%edges_to_graph_order(rows, ordered)
    call check(nint(sum(ordered)) == nint(sum(rows)), 'edges in the order of the graph')
    call graph%edges_to_given_order(ordered, back)
    call check(all(abs(back - rows) < 1e-3_real64), 'edges in the order in which they were given')
    call graph%edge_ids(edge_ids)
    call check(minval(edge_ids) >= 0 .and. maxval(edge_ids) < 2 * num_nodes, 'ids of edges')

    ! in local numbers from 1: a ghost for each edge, where it is not a node of this rank
    global_ids = ids
    allocate (local_src(2 * n), local_dst(2 * n))
    do e = 1, 2 * n
      if (.not. any(global_ids == src(e))) global_ids = [global_ids, src(e)]
      local_src(e) = position(global_ids, src(e))
      local_dst(e) = position(global_ids, dst(e))
    end do
    call other%from_local(comm, n, global_ids, local_src, local_dst)
    call model%evaluate(graph, x, target, loss(1))
    call model%evaluate(other, x, target, loss(2))
    call check(abs(loss(1) - loss(2)) <= tolerance, 'local numbers make the same graph')
    call other%from_local(comm, n, int(global_ids, int32), local_src, local_dst)
    call model%evaluate(other, x, target, loss(2))
    call other%from_global(comm, int(ids, int32), int(src, int32), int(dst, int32), &
      options='{"mode": "one_shot"}')
    call model%evaluate(other, x, target, loss(3))
    call check(all(abs(loss - loss(1)) <= tolerance), &
      'local numbers and ids of both kinds make the same graph')

    weight = 0
    call other%from_global(comm, ids, src, dst, edge_weight=weight)
    call model%evaluate(other, x, target, loss(2))
    call check(abs(loss(1) - loss(2)) > 1e-6_real64, 'weights of edges count')
    call other%free()
  end subroutine

  integer function position(values, value)
    integer(int64), intent(in) :: values(:), value
    do position = 1, size(values)
      if (values(position) == value) return
    end do
  end function

  subroutine test_arrays()
    type(sar_predictor) :: predictor
    real(real64) :: y(3, n), transposed(n, 3), wide(4, 2 * n)
    real(real32) :: y32(3, n)
    call predictor%create(model, graph)
    call predictor%run(x, y)
    call predictor%run(transpose(x), transposed, rows_first=.true.)
    call check(all(abs(transposed - transpose(y)) <= tolerance), '(node, field)')
    call predictor%run(real(x, real32), y32)
    call check(all(abs(y32 - y) <= 1e-5_real64), 'real32')
    wide = -1
    wide(2:3, 2::2) = x
    call predictor%run(wide(2:3, 2::2), wide(1:3, 1::2))
    call check(all(abs(wide(1:3, 1::2) - y) <= tolerance), 'sections that are not contiguous')
    call check(all(wide(4, :) == -1), 'around a section')
    call predictor%run(x, y(:2, :), stat=stat, errmsg=errmsg)
    call check_error(sar_error_shape, '2')
    call predictor%free()
  end subroutine

  ! Two atoms that a potential learns, in a cell and alone.
  subroutine test_learner(potential)
    type(sar_potential), intent(in) :: potential
    type(sar_learner) :: learner
    real(real64) :: two(3, 2) = reshape([0, 0, 0, 2, 0, 0], [3, 2]), forces(3, 2) = 0, cube(3, 3) = 0
    real(real64) :: loss, later, energy_error, force_error
    cube(1, 1) = 5
    cube(2, 2) = 5
    cube(3, 3) = 5
    call learner%create(potential, batch_size=1, lr=0.01_real64)
    call learner%train(1, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'no structures')
    call learner%add([1, 2], two, -3.0_real64, forces=forces, cell=cube, stress=0 * cube)
    call learner%add([1, 2], two, -3.0_real64)
    call check(learner%num_structures() == 2, 'two structures')
    call learner%train(2, loss, energy_error, force_error)
    call learner%train(100, later)
    call check(later < loss .and. energy_error > 0 .and. force_error >= 0, 'the loss falls')
    call learner%free()
  end subroutine

  ! Atoms on a helix whose first and last are neighbors: positions, and the vectors of edges.
  subroutine test_potential(variable)
    character(len=*), intent(in) :: variable
    type(sar_potential) :: potential
    type(sar_graph) :: chain
    character(len=1000) :: path
    real(real64) :: energy, by_vectors, virial(3, 3), energies(n), forces(3, n), same(3, n), virials(9, n)
    real(real64) :: centroid_virials(9, n)
    real(real64), allocatable :: given(:, :), vectors(:, :)
    integer(int64), allocatable :: from(:), to(:)
    integer :: species(n), i
    call get_environment_variable(variable, path)
    call potential%load(comm, trim(path))
    call check(potential%species('b') == 2, 'the number of a species')
    call check(potential%cutoff() == 4, 'the cutoff')
    i = potential%species('c', stat, errmsg)
    call check_error(sar_error_input, "species 'c', expected one of a, b")
    from = [(modulo(ids(i) - 1, int(num_nodes, int64)), modulo(ids(i) + 1, int(num_nodes, int64)), i=1, n)]
    to = [(ids(i), ids(i), i=1, n)]
    call chain%from_global(comm, ids, from, to)
    species = int(modulo(ids, 2_int64)) + 1
    call potential%evaluate(chain, species, forces, energy, positions=places(ids), virial=virial, &
      energies=energies, virials=virials, centroid_virials=centroid_virials)
    given = places(from) - places(to)
    allocate (vectors(3, size(given, 2)))
    call chain%edges_to_graph_order(given, vectors)
    call potential%evaluate(chain, species, same, by_vectors, edges=vectors)
    call check(abs(by_vectors - energy) <= 10 * tolerance * abs(energy), 'the energy by edge vectors')
    call check(all(abs(same - forces) <= 100 * tolerance), 'forces by edge vectors')
    call check(maxval(abs(virial)) > 0.01, 'there is a virial')
    if (comm%size() == 1) then
      call check(abs(sum(energies) - energy) <= tolerance * n * maxval(abs(energies)), 'energies of atoms')
      call check(all(abs(reshape(sum(virials, 2), [3, 3]) - virial) <= 1000 * tolerance), &
        'virials of atoms')
      call check(all(abs(reshape(sum(centroid_virials, 2), [3, 3]) - virial) <= 1000 * tolerance), &
        'centroid virials of atoms')
    end if
    energy = -1
    call potential%evaluate(chain, species, forces, energy, edges=vectors, energies=energies(:0), stat=stat, &
      errmsg=errmsg)
    if (comm%size() == 1) call check_error(sar_error_shape, 'energies has 0 numbers, expected')
    if (comm%size() == 1) call check(energy == -1, 'the energy is as it was')
    call potential%evaluate(chain, species, forces, virial=virial(:, :2), edges=vectors, stat=stat, errmsg=errmsg)
    call check_error(sar_error_shape, 'virial is (3, 2), expected (3, 3)')
    call test_learner(potential)
    call potential%free()
    call chain%free()
  end subroutine

  function places(of) result(x)
    integer(int64), intent(in) :: of(:)
    real(real64) :: x(3, size(of))
    x(1, :) = 0.2_real64 * of
    x(2, :) = cos(1.1_real64 * of)
    x(3, :) = sin(1.1_real64 * of)
  end function

  subroutine test_training()
    real(real64) :: before, after, masked, weights_lr
    logical :: mask(n)
    integer :: labels(n), i
    call model%evaluate(graph, x, target, before)
    do i = 1, 5
      call model%train_step(optimizer, graph, x, target, after)
    end do
    call check(after < before, 'the loss goes down')
    call model%evaluate(graph, x, target, before, loss_kind=sar_loss_mse)
    call model%evaluate(graph, x, target, after, loss_kind=sar_loss_l1)
    call check(after**2 <= before + tolerance, 'mean |d| is at most the root of the mean square')
    call optimizer%set_lr(0.25_real64)
    weights_lr = optimizer%get_lr()
    call check(abs(weights_lr - 0.25_real64) < 1e-7_real64, 'the learning rate')

    labels = 1 + int(modulo(ids, 3_int64))
    call model%evaluate_labels(graph, x, labels, before)
    do i = 1, 5
      call model%train_step_labels(optimizer, graph, x, labels, after)
    end do
    call check(after < before, 'the cross entropy goes down')
    call model%evaluate_labels(graph, x, labels, before)
    mask = modulo(ids, 2_int64) == 0
    call model%evaluate_labels(graph, x, labels, masked, mask=mask)
    call check(abs(masked - before) > 1e-9_real64, 'the mask counts')
    where (.not. mask) labels = -5
    call model%evaluate_labels(graph, x, labels, after, mask=mask)
    call check(abs(after - masked) <= tolerance, 'labels that the mask leaves out')
    labels = 4
    call model%evaluate_labels(graph, x, labels, after, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, '3')
    call model%evaluate(graph, x, target, after, mask=mask(2:), stat=stat, errmsg=errmsg)
    call check_error(sar_error_shape, '')
  end subroutine

  ! A graph with one type of nodes, whose edges also get their reverse.
  subroutine test_types()
    type(sar_graph) :: types
    type(sar_model) :: typed
    type(sar_optimizer) :: steps
    integer(int64) :: nodes, edges, global
    real(real64) :: result(3, n), loss(2)
    integer :: labels(n), i
    character(len=*), parameter :: typed_description = '{"sar_model": 1, "type": "rgcn", "in_feats": 2, "hidden": 4, ' // &
      '"out_feats": 3, "layers": 2, "node_types": ["a"], "edge_types": [["a", "r", "a"]]}'
    call types%create(comm, '{"pipeline_depth": 2}')
    call types%add_nodes('a', int(ids, int32))
    call types%add_edges('a', 'r', 'a', int(src, int32), int(dst, int32), edge_weight=[(1.0_real64, i=1, 2 * n)], &
      add_reverse_edges=.true.)
    call types%num_nodes(nodes, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'sar_graph_build()')
    call types%build()
    call types%num_nodes(nodes, global, type='a')
    call check(nodes == n .and. global == num_nodes, 'nodes of a type')
    call types%num_edges(global_edges=edges, edge_type='r')
    call check(edges == 4 * num_nodes, 'edges of a type, with their reverse edges')
    call types%num_nodes(nodes, type='b', stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'b')
    call check(nodes == n, 'a result is as it was')
    call types%set_rows(x, 'a')
    call typed%create(comm, typed_description, seed=1_int64)
    call steps%create(typed, '{"optimizer": "adam", "lr": 0.01}')
    labels = 1 + int(modulo(ids, 3_int64))
    call typed%evaluate_labels(types, x, labels, loss(1), type='a')
    do i = 1, 5
      call typed%train_step_labels(steps, types, x, labels, mask=labels > 0, type='a')
    end do
    call typed%evaluate_labels(types, x, labels, loss(2))
    call check(loss(2) < loss(1), 'the cross entropy of a type goes down')
    call typed%predict(types, x, result, type='a')
    call typed%evaluate(types, x, result, loss(1), type='a')
    call check(loss(1) <= tolerance, 'predictions of a type are those of the loss')
    call steps%free()
    call typed%free()
    call types%free()
  end subroutine

  ! Two types of nodes and two of edges. Rows are in the order (node, field).
  subroutine test_couplings()
    type(sar_graph) :: both
    type(sar_model) :: typed
    integer(int64) :: nodes, global, edges, given
    integer(int64), allocatable :: edge_ids(:)
    real(real64) :: rows(n, 1), back(n, 1), by_field(n, 2), result(3, n), transposed(n, 3)
    real(real64), allocatable :: ordered(:, :)
    character(len=*), parameter :: typed_description = '{"sar_model": 1, "type": "rgcn", "in_feats": 2, "hidden": 4, ' // &
      '"out_feats": 3, "layers": 2, "node_types": ["a", "b"], "edge_types": [["a", "r", "a"], ["b", "s", "a"]]}'
    call both%create(comm)
    call both%add_nodes('a', ids)
    call both%add_nodes('b', ids)
    call both%add_edges('a', 'r', 'a', src, dst)
    call both%add_edges('b', 's', 'a', ids, modulo(ids + n, int(num_nodes, int64)), edge_ids=1000 + ids)
    call both%build()
    call both%num_nodes(nodes, global)
    call check(nodes == 2 * n .and. global == 2 * num_nodes, 'nodes of all types')
    call both%num_edges(edges, global, given)
    call check(global == 3 * num_nodes .and. given == 3 * n, 'edges of all types')
    call both%num_edges(edges, global, given, 'b:s:a')
    call check(global == num_nodes .and. given == n, 'edges of one of the types')
    allocate (edge_ids(edges), ordered(edges, 1))
    call both%edge_ids(edge_ids, 's')
    call check(all(edge_ids >= 1000) .and. all(edge_ids < 1000 + num_nodes), 'ids of the edges of a type')
    call both%edge_ids(edge_ids, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'a:r:a, b:s:a')
    rows(:, 1) = real(1000 + ids, real64)
    call both%edges_to_graph_order(rows, ordered, edge_type='s', rows_first=.true.)
    call check(all(nint(ordered(:, 1), int64) == edge_ids), 'rows of edges of a type are in the order of their ids')
    call both%edges_to_given_order(ordered, back, edge_type='s', rows_first=.true.)
    call check(all(abs(back - rows) < 1e-3_real64), 'rows of edges of a type, in the order in which they were given')
    call both%edges_to_graph_order(rows, ordered, rows_first=.true., stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'expected one of them')
    by_field = transpose(x)
    call both%set_rows(by_field, 'b', rows_first=.true.)
    call both%set_rows(by_field, rows_first=.true., stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'the node types a, b')
    call typed%create(comm, typed_description, seed=1)
    call typed%predict(both, by_field, transposed, type='a', rows_first=.true.)
    call typed%predict(both, x, result, type='a')
    call check(all(transposed == transpose(result)), 'predictions of a type, in both orders of an array')
    call typed%predict(both, x, result, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'the node types a, b')
    call typed%free()
    call both%free()
  end subroutine

  ! One rank trains and the others evaluate.
  subroutine test_differing_calls()
    real(real64) :: loss
    if (comm%size() == 1) return
    if (comm%rank() == 0) then
      call model%train_step(optimizer, graph, x, target, loss, stat=stat, errmsg=errmsg)
    else
      call model%evaluate(graph, x, target, loss, stat=stat, errmsg=errmsg)
    end if
    call check_error(sar_error_communication, &
      'the ranks make different calls: rank 0 calls sar_train_step, rank 1 calls sar_evaluate')
    call optimizer%set_lr(0.01_real64 * (1 + comm%rank()))
    call model%train_step(optimizer, graph, x, target, loss, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'different learning rate')
    call optimizer%set_lr(0.25_real64)
  end subroutine

  ! A value of the last rank that is not finite: all ranks refuse the step, and nothing changes.
  subroutine test_finite_steps()
    type(sar_optimizer) :: clipping, careless
    real(real64) :: before, after, loss, broken(2, n), huge_target(3, n)
    real(real64), allocatable :: old(:, :), new(:, :)
    integer(int64) :: rows, fields
    character(len=:), allocatable :: name
    integer :: i
    broken = x
    if (comm%rank() == comm%size() - 1) broken(2, 3) = ieee_value(0.0_real64, ieee_quiet_nan)
    call model%evaluate(graph, x, target, before)
    loss = -1
    call model%train_step(optimizer, graph, broken, target, loss, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, "the array 'x' has the value nan in row 2, field 1")
    call check(loss == -1, 'the loss of a refused step')
    huge_target = 1e300_real64
    call model%train_step(optimizer, graph, x, huge_target, loss, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'expected a finite number')
    call model%evaluate(graph, x, target, after)
    call check(before == after, 'refused steps change nothing')

    ! with clipped gradients, a step of length lr moves all parameters together by c at most
    call clipping%create(model, '{"optimizer": "sgd", "lr": 1, "clip_grad_norm": 0.001}')
    loss = 0
    do i = 1, int(model%num_parameters())
      call model%parameter(i, name, rows, fields)
      allocate (old(fields, rows), new(fields, rows))
      call model%get_parameter(i, old)
      call model%train_step(clipping, graph, x, target, after)
      call model%get_parameter(i, new)
      call check(sqrt(sum((new - old)**2)) <= 0.00101_real64, 'clipped gradients: '//name)
      loss = loss + sum((new - old)**2)
      deallocate (old, new)
    end do
    call check(loss > 0, 'clipped steps move the parameters')
    call clipping%create(model, '{"optimizer": "sgd", "clip_grad_norm": -1}', stat, errmsg)
    call check_error(sar_error_input, 'clip_grad_norm is -1')

    ! a program that wants such steps gets them
    call careless%create(model, '{"optimizer": "sgd", "lr": 0, "require_finite": false}')
    call model%train_step(careless, graph, broken, target, loss)
    call check(ieee_is_nan(loss), 'a loss that is not finite')
    call careless%free()
    call model%create(comm, description, seed=3)
    call optimizer%create(model, '{"optimizer": "sgd", "lr": 0.1}')
  end subroutine

  subroutine test_statistics()
    type(sar_model) :: mesh
    type(sar_optimizer) :: steps
    real(real64) :: loss, last, edges(1, 2 * n), far_target(1, n)
    integer :: i
    character(len=*), parameter :: normalizing = '{"sar_model": 1, "type": "mesh_graph_net", "in_feats": 2, ' // &
      '"edge_feats": 1, "hidden": 8, "out_feats": 1, "layers": 1, "normalize": true}'
    edges(1, :) = [(real(modulo(i, 5), real64), i=1, 2 * n)]
    far_target(1, :) = 5e4_real64 + x(1, :)
    call mesh%create(comm, normalizing, seed=1)
    call steps%create(mesh, '{"optimizer": "adam", "lr": 0.01}')
    call mesh%train_step(steps, graph, x, far_target, loss, edges=edges, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'sar_model_update_statistics')
    call mesh%update_statistics(x, edges(:, :0), far_target, stat=stat, errmsg=errmsg)
    call mesh%train_step(steps, graph, x, far_target, loss, edges=edges, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, 'has no statistics')
    call mesh%update_statistics(x, edges, far_target)
    call mesh%train_step(steps, graph, x, far_target, loss, edges=edges)
    call check(loss < 1e3_real64, 'results are near the mean of the targets')
    do i = 1, 30
      call mesh%train_step(steps, graph, x, far_target, last, edges=edges)
    end do
    call check(last < loss, 'the loss of a network that normalizes goes down')
    call model%update_statistics(x, edges, far_target, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, '"normalize": true')
    call steps%free()
    call mesh%free()
  end subroutine

  ! The last rank has no nodes, the others have all.
  subroutine test_empty_rank()
    type(sar_graph) :: other
    type(sar_predictor) :: predictor
    integer(int64), allocatable :: mine(:), from(:)
    real(real64), allocatable :: rows(:, :), wanted(:, :), result(:, :)
    real(real64) :: loss(2)
    integer :: parts, i
    parts = max(1, comm%size() - 1)
    mine = [(int(i, int64), i=comm%rank() * num_nodes / parts, min(num_nodes, &
      (comm%rank() + 1) * num_nodes / parts) - 1)]
    if (comm%rank() >= parts) mine = mine(:0)
    from = modulo(mine + 1, int(num_nodes, int64))
    allocate (rows(2, size(mine)), wanted(3, size(mine)), result(3, size(mine)))
    rows(1, :) = modulo(7 * mine, 11_int64) / 10.0_real64
    rows(2, :) = modulo(5 * mine, 13_int64) / 10.0_real64
    wanted = 0.5_real64
    call other%from_global(comm, mine, from, mine)
    call model%evaluate(other, rows, wanted, loss(1))
    call predictor%create(model, other)
    call predictor%run(rows, result)
    call predictor%free()

    from = modulo(ids + 1, int(num_nodes, int64))
    call other%from_global(comm, ids, from, ids)
    call model%evaluate(other, x, target, loss(2))
    call check(abs(loss(1) - loss(2)) <= 10 * tolerance * abs(loss(1)), &
      'a rank without nodes changes nothing')
    call other%free()
  end subroutine

  ! Each time the mesh changes, a graph and its predictor become those of the new mesh. The last mesh has no
  ! node on the first rank, where there are several.
  subroutine test_rebuilding()
    type(sar_graph) :: changing, fresh
    integer(int64) :: given_edges, edges
    type(sar_predictor) :: predictor, fresh_predictor
    integer(int64), allocatable :: from(:), mine(:), global_ids(:)
    integer, allocatable :: local_src(:), local_dst(:)
    real(real64), allocatable :: rows(:, :), result(:, :), wanted(:, :), weight(:)
    real(real64) :: loss(2)
    integer :: e, i, parts
    character(len=*), parameter :: options = '{"add_reverse_edges": true}'
    call changing%from_global(comm, ids, src, dst, options=options)
    call predictor%create(model, changing)
    allocate (result(3, n), wanted(3, n))
    call predictor%run(x, result)

    from = modulo(ids + 3, int(num_nodes, int64))
    weight = [(0.5_real64 + 0.01_real64 * ids(i), i=1, n)]
    call fresh%from_global(comm, ids, from, ids, edge_weight=weight, options=options)
    call fresh_predictor%create(model, fresh)
    call fresh_predictor%run(x, wanted)
    call changing%rebuild_from_global(ids, from, ids, edge_weight=weight)
    call changing%num_edges(given_edges=given_edges, global_edges=edges)
    call check(given_edges == n .and. edges == 2 * num_nodes, 'sizes after rebuilding')
    call predictor%run(x, result)
    call check(all(result == wanted), 'a predictor follows a graph that is rebuilt from ids')
    call model%evaluate(changing, x, target, loss(1))
    call model%evaluate(fresh, x, target, loss(2))
    call check(loss(1) == loss(2), 'the loss on a graph that is rebuilt')
    call changing%rebuild_from_global(int(ids, int32), int(from, int32), int(ids, int32), edge_weight=weight)
    call predictor%run(x, result)
    call check(all(result == wanted), 'a predictor follows a graph that is rebuilt from default integers')

    ! errors leave it as it was
    call changing%rebuild_from_global(ids, from, ids(2:), stat=stat, errmsg=errmsg)
    call check(stat /= sar_ok, 'fewer destinations than sources: '//trim(errmsg))
    call changing%rebuild_from_global(ids, from + 1000, ids, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, '10')
    call fresh%free()
    call fresh%rebuild_from_global(ids, from, ids, stat=stat, errmsg=errmsg)
    call check_error(sar_error_handle, 'null')
    call predictor%run(x, result)
    call check(all(result == wanted), 'a predictor after a graph could not be rebuilt')

    ! in local numbers
    global_ids = ids
    allocate (local_src(n), local_dst(n))
    do e = 1, n
      if (.not. any(global_ids == from(e))) global_ids = [global_ids, from(e)]
      local_src(e) = position(global_ids, from(e))
      local_dst(e) = e
    end do
    call changing%rebuild_from_local(n, global_ids, local_src, local_dst, edge_weight=weight)
    call predictor%run(x, result)
    call check(all(result == wanted), 'a predictor follows a graph that is rebuilt from local numbers')
    local_src(1) = size(global_ids) + 1
    call changing%rebuild_from_local(n, global_ids, local_src, local_dst, stat=stat, errmsg=errmsg)
    call check_error(sar_error_input, '')

    parts = max(1, comm%size() - 1)
    i = comm%rank() + parts - comm%size()  ! of the parts, from 0
    mine = [(int(e, int64), e=max(0, i * num_nodes / parts), (i + 1) * num_nodes / parts - 1)]
    if (i < 0) mine = mine(:0)
    from = modulo(mine + 1, int(num_nodes, int64))
    deallocate (result, wanted)
    allocate (rows(2, size(mine)), result(3, size(mine)), wanted(3, size(mine)))
    rows(1, :) = modulo(7 * mine, 11_int64) / 10.0_real64
    rows(2, :) = modulo(5 * mine, 13_int64) / 10.0_real64
    call fresh%from_global(comm, mine, from, mine, options=options)
    call fresh_predictor%create(model, fresh)
    call fresh_predictor%run(rows, wanted)
    call changing%rebuild_from_global(mine, from, mine)
    call predictor%run(rows, result)
    call check(all(result == wanted), 'a rank without nodes after rebuilding')
    call fresh_predictor%free()
    call predictor%free()
    call fresh%free()
    call changing%free()
  end subroutine

  subroutine test_parameters()
    integer(int64) :: in_feats, out_feats, edge_feats, rows, fields
    character(len=:), allocatable :: name
    real(real64), allocatable :: values(:, :), again(:, :), transposed(:, :)
    integer :: i
    call model%feats(in_feats, out_feats, edge_feats)
    call check(in_feats == 2 .and. out_feats == 3 .and. edge_feats == 0, 'fields of the model')
    call check(index(model%description(), '"sage"') > 0, 'the description')
    call check(model%num_parameters() > 0, 'the number of parameters')
    do i = 1, int(model%num_parameters())
      call model%parameter(i, name, rows, fields)
      call check(len(name) > 0, 'a name')
      allocate (values(fields, rows), again(fields, rows), transposed(rows, fields))
      call model%get_parameter(i, values)
      call model%get_parameter(i, transposed, rows_first=.true.)
      call check(all(transposed == transpose(values)), 'a parameter in the other order: '//name)
      call model%set_parameter(i, values + 1)
      call model%get_parameter(i, again)
      call check(all(abs(again - values - 1) < 1e-6_real64), 'a parameter is set: '//name)
      call model%set_parameter(i, values)
      deallocate (values, again, transposed)
    end do
    call model%parameter(0, name, rows, fields, stat, errmsg)
    call check_error(sar_error_input, '')
    call model%parameter(i, name, rows, fields, stat, errmsg)
    call check_error(sar_error_input, '')
  end subroutine

  subroutine test_files()
    type(sar_model) :: loaded
    type(sar_checkpoints) :: checkpoints
    type(sar_trace) :: trace
    real(real64) :: before, after, ignored
    character(len=20) :: folder
    integer :: epoch
    write (folder, '(a, i0)') 'fortran_test_', comm%size()
    call model%evaluate(graph, x, target, before)
    call model%save(trim(folder)//'.safetensors')
    call loaded%load(comm, trim(folder)//'.safetensors')
    call loaded%evaluate(graph, x, target, after)
    call check(before == after, 'a model is what was saved')
    call loaded%free()

    call checkpoints%create(comm, folder, keep_last=1, seed=3)
    call checkpoints%save(7, model, optimizer)
    call model%train_step(optimizer, graph, x, target, ignored)
    call checkpoints%load_latest(model, optimizer, epoch)
    call model%evaluate(graph, x, target, after)
    call check(epoch == 7 .and. before == after, 'a checkpoint')
    epoch = 0
    call checkpoints%load('no_such_checkpoint', model, optimizer, epoch, stat, errmsg)
    call check_error(sar_error_input, 'no_such_checkpoint')
    call checkpoints%free()

    call trace%start(comm, trim(folder)//'.json')
    call model%evaluate(graph, x, target, after)
    call trace%write()
  end subroutine

  subroutine test_library()
    integer(int64) :: peak
    call check(index(sar_version(), '.') > 0, 'the version')
    call check(sar_memory_current() > 0, 'bytes')
    peak = sar_memory_peak()
    call check(peak >= sar_memory_current(), 'bytes at the peak')
    call sar_memory_reset_peak()
    call sar_memory_release()
    call check(comm%default_num_threads() >= 1, 'threads')
    call sar_set_num_threads(1)
    call sar_set_num_threads(-1, stat, errmsg)
    call check_error(sar_error_input, '-1')
  end subroutine
end program

! SPDX-License-Identifier: MIT

!> The losses of a small training, one a line. The other programs of this folder are the same in other
!> languages.
program losses
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use sar
  implicit none
  integer, parameter :: num_nodes = 60, num_steps = 20
  type(sar_comm) :: comm
  type(sar_graph) :: graph
  type(sar_model) :: model
  type(sar_optimizer) :: optimizer
  integer(int64), allocatable :: ids(:), src(:), dst(:)
  real(real64), allocatable :: x(:, :), target(:, :)
  real(real64) :: loss
  integer :: first, last, i, step

  call sar_init()
  call comm%world()
  first = comm%rank() * num_nodes / comm%size()
  last = (comm%rank() + 1) * num_nodes / comm%size() - 1
  ids = [(i, i=first, last)]
  src = [(modulo(i - 1, num_nodes), modulo(i + 7, num_nodes), i=first, last)]
  dst = [(i, i, i=first, last)]
  allocate (x(2, size(ids)), target(1, size(ids)))
  x(1, :) = modulo(7 * ids, 11_int64) / 10.0_real64
  x(2, :) = modulo(5 * ids, 13_int64) / 10.0_real64
  target(1, :) = modulo(7 * (ids + num_nodes - 1), 11_int64) / 20.0_real64

  call graph%from_global(comm, ids, src, dst)
  call model%create(comm, &
    '{"sar_model": 1, "type": "sage", "in_feats": 2, "hidden": 8, "out_feats": 1, "layers": 2}', seed=5)
  call optimizer%create(model, '{"optimizer": "adam", "lr": 0.01}')
  do step = 1, num_steps
    call model%train_step(optimizer, graph, x, target, loss)
    if (comm%rank() == 0) print '(es24.16e3)', loss
  end do
  call optimizer%free()
  call model%free()
  call graph%free()
  call comm%free()
  call sar_finalize()
end program

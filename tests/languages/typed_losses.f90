! SPDX-License-Identifier: MIT

!> The losses of small trainings on a graph with node and edge types, one a line. The other programs whose name
!> begins with typed_losses are the same in other languages. The argument is a file for the model.
program typed_losses
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use sar
  implicit none
  integer, parameter :: num_fluid = 30, num_solid = 12, num_steps = 5
  character(len=11), parameter :: types(4) = [character(len=11) :: 'rgcn', 'hgt', 'hetero-sage', 'hetero-gat']
  type(sar_comm) :: comm
  character(len=1000) :: path
  integer :: k

  call get_command_argument(1, path)
  call sar_init()
  call comm%world()
  do k = 1, 4
    call train(trim(types(k)))
  end do
  call comm%free()
  call sar_finalize()

contains

  ! Nodes of this rank.
  function own_nodes(nodes) result(own)
    integer, intent(in) :: nodes
    integer(int64), allocatable :: own(:)
    integer :: first, last, i
    first = comm%rank() * nodes / comm%size()
    last = (comm%rank() + 1) * nodes / comm%size() - 1
    allocate (own(last - first + 1))
    do i = first, last
      own(i - first + 1) = i
    end do
  end function

  subroutine train(kind_of)
    character(len=*), intent(in) :: kind_of
    type(sar_graph) :: graph
    type(sar_model) :: model
    type(sar_optimizer) :: optimizer
    integer(int64), parameter :: fluids = num_fluid, solids = num_solid
    integer(int64), allocatable :: fluid(:), solid(:), src(:), dst(:), from(:), to(:)
    real(real64), allocatable :: weight(:), x(:, :), of_solid(:, :), target(:, :)
    real(real64) :: loss
    integer :: i, step
    allocate (fluid, source=own_nodes(num_fluid))
    allocate (solid, source=own_nodes(num_solid))
    allocate (src(2 * size(fluid)), dst(2 * size(fluid)), from(size(fluid)), to(size(fluid)), weight(size(fluid)))
    src(1::2) = 100 + modulo(fluid - 1, fluids)
    src(2::2) = 100 + modulo(fluid + 7, fluids)
    dst(1::2) = 100 + fluid
    dst(2::2) = 100 + fluid
    from(:) = modulo(5 * fluid, solids)
    to(:) = 100 + fluid
    weight(:) = (1 + modulo(fluid, 4_int64)) / 4.0_real64
    call graph%create(comm)
    call graph%add_nodes('fluid', 100 + fluid)
    call graph%add_nodes('solid', solid)
    call graph%add_edges('fluid', 'flows', 'fluid', src, dst)
    if (kind_of == 'hgt') then
      call graph%add_edges('solid', 'heats', 'fluid', from, to)
    else
      call graph%add_edges('solid', 'heats', 'fluid', from, to, edge_weight=weight)
    end if
    call graph%add_edges('fluid', 'cools', 'solid', to, from)
    call graph%build()

    allocate (x(2, size(fluid)), of_solid(3, size(solid)), target(1, size(fluid)))
    x(1, :) = modulo(7 * fluid, 11_int64) / 10.0_real64
    x(2, :) = modulo(5 * fluid, 13_int64) / 10.0_real64
    target(1, :) = modulo(7 * (fluid + num_fluid - 1), 11_int64) / 20.0_real64
    do i = 1, 3
      of_solid(i, :) = modulo(3 * solid + i - 1, 7_int64) / 7.0_real64
    end do
    call graph%set_rows(of_solid, 'solid')
    call model%create(comm, '{"sar_model": 1, "type": "'//kind_of//'", "in_feats": 2, "hidden": 8, '// &
      '"out_feats": 1, "layers": 2, "node_types": ["fluid", "solid"], "edge_types": [["fluid", "flows", '// &
      '"fluid"], ["solid", "heats", "fluid"], ["fluid", "cools", "solid"]], "inputs": {"solid": 3}}', seed=5)
    call model%save(path)
    call model%load(comm, path)
    call optimizer%create(model, '{"optimizer": "adam", "lr": 0.01}')
    do step = 1, num_steps
      call model%train_step(optimizer, graph, x, target, loss, type='fluid')
      if (comm%rank() == 0) print '(es24.16e3)', loss
    end do
    call optimizer%free()
    call model%free()
    call graph%free()
  end subroutine
end program

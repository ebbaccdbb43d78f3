# SPDX-License-Identifier: MIT

"""coupled_surrogate_test.py MPIRUN_SH MPIEXEC RANKS PROGRAM PRECISION: examples/coupled_surrogate as a user runs it, on each number of ranks in RANKS
("1,2,3"): the same curves, a surrogate of both meshes that is better than none, wrong options."""
import subprocess
import sys

mpirun, mpiexec, ranks, program, precision = sys.argv[1:]
# The curves are the same to rounding, which training makes grow: their beginning is compared.
tolerance, compared = (1e-9, 4) if precision == "double" else (1e-4, 2)


def run(ranks, *options):
    return subprocess.run([mpirun, mpiexec, ranks, program, "--quick", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)


first = None
for number in ranks.split(","):
    done = run(number)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    losses = [float(line[3]) for line in lines if line[0] == "run"]
    errors = [[float(word) for word in line[2:]] for line in lines if line[0] == "rollout" and line[1].isdigit()]
    assert len(losses) == 7 and len(errors) == 4, done.stdout
    for fluid, plate, fluid_alone, plate_alone in errors:
        assert fluid < 0.5 * fluid_alone and plate < 0.5 * plate_alone, "hardly better than nothing: %s" % errors
    curve = [*losses, *sum(errors, [])]
    first = first or curve
    for a, b in list(zip(curve, first))[:compared]:
        assert abs(a - b) <= tolerance * abs(b), "on %s ranks %.12g, on one %.12g" % (number, a, b)

for code, sentence, options in ((2, "--rounds", ["--rounds", "0"]), (2, "--speed", ["--speed", "1"]),
                                (1, ", expected a number: try a smaller --lr than 1e+100", ["--lr", "1e100"])):
    done = run(ranks.split(",")[-1], *options)
    text = done.stdout + done.stderr
    assert done.returncode == code and text.count(sentence) == 1, "%s ends with %d: %s" % (options, done.returncode, text)
    assert "rollout" not in done.stdout, "%s: something goes on: %s" % (options, text)

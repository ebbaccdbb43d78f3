# SPDX-License-Identifier: MIT

"""silicon_rdf.py SW SAR OUT.svg: draws two files of LAMMPS's fix ave/time of compute rdf, and prints their largest and mean difference"""
import sys

from pathlib import Path

SW, SAR, INK, QUIET, GRID = "#5c6b78", "#c2571a", "#22303c", "#5c6b78", "#e3e7eb"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LONGEST, HIGHEST = 720, 380, 60, 690, 70, 320, 8.0, 3.0


def read(path):
    """[(r, g(r))]"""
    rows = [line.split() for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    return [(float(row[1]), float(row[2])) for row in rows if len(row) == 4]


def x(r):
    return LEFT + (RIGHT - LEFT) * r / LONGEST


def y(g):
    return BOTTOM - (BOTTOM - TOP) * g / HIGHEST


def text(at_x, at_y, words, anchor="middle", size=13, colour=INK, weight="normal"):
    return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}" font-weight="{weight}">{words}</text>'


def curve(rows, colour, extra=""):
    points = " ".join(f"{x(r):.1f},{y(g):.1f}" for r, g in rows if r <= LONGEST)
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" {extra}/>'


sw, sar = read(sys.argv[1]), read(sys.argv[2])
differences = [abs(a[1] - b[1]) for a, b in zip(sw, sar, strict=True)]
print(f"g(r): largest {max(g for _, g in sw):.2f} of sw and {max(g for _, g in sar):.2f} of the potential, difference at most {max(differences):.2f}, "
      f"on average {sum(differences) / len(differences):.3f}")
out = [text(LEFT, 28, "Liquid silicon, 2000 K", "start", 18, weight="bold"), text(LEFT, 50, "radial distribution function g(r), r in Å", "start", colour=QUIET)]
for g in range(4):
    out += [f'<line x1="{LEFT}" y1="{y(g):.1f}" x2="{RIGHT}" y2="{y(g):.1f}" stroke="{GRID}"/>', text(LEFT - 10, y(g) + 4, str(g), "end", 12, QUIET)]
out += [text(x(r), BOTTOM + 22, str(r), size=12, colour=QUIET) for r in range(9)]
out += [curve(sw, SW), curve(sar, SAR, 'stroke-dasharray="6 4"')]
for k, (name, colour, extra) in enumerate((("pair_style sw", SW, ""), ("pair_style sar", SAR, 'stroke-dasharray="6 4"'))):
    at = TOP + 20 + 22 * k
    out += [f'<line x1="540" y1="{at}" x2="572" y2="{at}" stroke="{colour}" stroke-width="2" {extra}/>', text(580, at + 4, name, "start")]
Path(sys.argv[3]).write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">'
                             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(out) + "\n</svg>\n")

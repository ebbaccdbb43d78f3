#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""Draws docs/images/overview.svg from the measured numbers in bench/picture.json:  python3 bench/picture.py

Left, memory per rank against the number of ranks. Right, seconds per epoch beside DGL; each pair of bars has its own scale.
"""
import json
from pathlib import Path

SAR, DGL, DASH, INK, QUIET, GRID = "#4b8bbf", "#cdd3da", "#c2571a", "#22303c", "#5c6b78", "#e3e7eb"
WIDTH, HEIGHT, TOP, BOTTOM = 900, 380, 96, 322
out = []


def rect(x, y, width, height, fill):
    out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" fill="{fill}"/>')


def line(x1, y1, x2, y2, colour, extra=""):
    out.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {extra}/>')


def text(x, y, words, anchor="middle", size=14, colour=INK, weight="normal"):
    out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}" '
               f'font-weight="{weight}">{words}</text>')


def heading(x, panel):
    text(x, 36, panel["title"], "start", 18, weight="bold")
    text(x, 58, panel["subtitle"], "start", 13, QUIET)


def memory(panel, x0, x1):
    """One bar for each number of ranks; the dashes are memory of one rank divided by P."""
    heading(x0, panel)
    points = panel["points"]
    alone = points[0]["value"] / points[0]["ranks"]
    scale = (BOTTOM - TOP) / 700
    for value in range(0, 601, 200):
        y = BOTTOM - value * scale
        line(x0 + 36, y, x1, y, GRID)
        text(x0 + 28, y + 5, str(value), "end", 12, QUIET)
    step = (x1 - x0 - 36) / len(points)
    bar = step * 0.52
    for i, point in enumerate(points):
        middle = x0 + 36 + (i + 0.5) * step
        top = BOTTOM - point["value"] * scale
        rect(middle - bar / 2, top, bar, BOTTOM - top, SAR)
        text(middle, top - 12, f'{point["value"]} {panel["unit"]}', weight="bold")
        ideal = BOTTOM - alone / point["ranks"] * scale
        line(middle - bar / 2 - 6, ideal, middle + bar / 2 + 6, ideal, DASH, 'stroke-width="2" stroke-dasharray="5 3"')
        text(middle, BOTTOM + 22, f'P = {point["ranks"]}')
    line(x1 - 152, TOP + 4, x1 - 124, TOP + 4, DASH, 'stroke-width="2" stroke-dasharray="5 3"')
    text(x1 - 116, TOP + 9, "1 / P of one rank", "start", 12, QUIET)


def epoch(panel, x0, x1):
    """Two bars for each network and graph, and how many times as long DGL takes."""
    heading(x0, panel)
    left, right = x0 + 96, x1 - 72
    height = (BOTTOM - TOP) / len(panel["groups"])
    for i, group in enumerate(panel["groups"]):
        y = TOP + i * height
        scale = (right - left) / max(group["values"])
        text(left - 12, y + 18, group["label"], "end", 14, weight="bold")
        text(left - 12, y + 35, group["graph"], "end", 12, QUIET)
        for j, (value, colour) in enumerate(zip(group["values"], (SAR, DGL))):
            rect(left, y + 4 + 19 * j, value * scale, 16, colour)
            digits = 2 if value < 10 else 1
            text(left + value * scale + 7, y + 17 + 19 * j, f'{value:.{digits}f} {panel["unit"]}', "start", 13)
        ratio = group["values"][1] / group["values"][0]
        text(right - 8, y + 36, f"{ratio:.1f} times", "end", 13)
    for j, (name, colour) in enumerate(zip(panel["series"], (SAR, DGL))):
        rect(left + 76 * j, BOTTOM + 10, 14, 14, colour)
        text(left + 76 * j + 20, BOTTOM + 22, name, "start", 13)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    data = json.loads((here / "picture.json").read_text())
    memory(data["memory"], 30, 410)
    epoch(data["epoch"], 470, 880)
    text(WIDTH / 2, HEIGHT - 10, f'Measured on {data["memory"]["machine"]}, {data["memory"]["date"]}. '
         'Commands: bench/RESULTS.md', size=12, colour=QUIET)
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           'font-family="Helvetica, Arial, sans-serif">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>', *out, "</svg>", ""]
    (here.parent / "docs" / "images" / "overview.svg").write_text("\n".join(svg))

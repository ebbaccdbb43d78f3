#!/usr/bin/env python3
# SPDX-License-Identifier: MIT

"""Draws spans of a trace as an SVG: a band for each rank, with what its first thread does (outermost scope on
top) and the messages under way.

    docs/timeline_svg.py TRACE.json PICTURE.svg [SCOPE[:K]]...

draws a panel for each SCOPE (default: update_all): the K-th scope of that name on rank 0 (from 0; negative: from
the last, the default), and what all ranks do meanwhile.
"""
import argparse
import json
from collections import defaultdict

COLOURS = {"compute": "#7da7d9", "communication": "#f2b84b", "wait": "#d9534f", "host": "#b9a5d6",
           "send": "#8cc084", "receive": "#4f8a5b"}
LEGEND = {"compute": "compute", "communication": "pack, add, collectives", "wait": "wait for messages",
          "send": "send under way", "receive": "receive under way"}
WIDTH, LEFT, ROW = 900, 74, 17
SEND, RECEIVE = 10, 11  # rows of a band, below the nested scopes


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def rows_of(spans, lanes):
    """Of each rank and row: the events in it with their colours."""
    bars = defaultdict(list)
    ends = defaultdict(list)  # of the scopes that are open, of each rank
    for e in spans:
        rank, lane = e["pid"], lanes[e["pid"], e["tid"]]
        if lane == "thread 0":
            while ends[rank] and ends[rank][-1] <= e["ts"]:
                ends[rank].pop()
            ends[rank].append(e["ts"] + e["dur"])
            bars[rank, len(ends[rank]) - 1].append((e, e["cat"]))
        elif lane.startswith(("send", "receive")):
            kind = lane.split()[0]
            bars[rank, SEND if kind == "send" else RECEIVE].append((e, kind))
    return bars


def panel(chosen, bars, y):
    """The lines of one panel that begins at height y, and the height where it ends."""
    zero, margin = chosen["ts"], 0.01 * chosen["dur"]
    begin, end = zero - margin, zero + chosen["dur"] + margin

    def x(time):
        return LEFT + (min(max(time, begin), end) - begin) / (end - begin) * (WIDTH - LEFT - 10)

    drawn, top, last_rank = [], y, None
    for rank, row in sorted(bars):
        visible = [(e, kind) for e, kind in bars[rank, row] if e["ts"] < end and e["ts"] + e["dur"] > begin]
        if not visible:
            continue
        if rank != last_rank:
            y += 8
            drawn.append(f'<text x="4" y="{y + 12}" font-weight="bold">rank {rank}</text>')
            last_rank = rank
        message = row in (SEND, RECEIVE)
        if message:
            drawn.append(f'<text x="4" y="{y + 12}" fill="#555">{visible[0][1]}</text>')
        for e, kind in visible:
            left, right = x(e["ts"]), x(e["ts"] + e["dur"])
            width = max(right - left, 0.4)
            style = ' fill-opacity="0.35"' if message else ' stroke="white" stroke-width="0.4"'
            drawn.append(f'<rect x="{left:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 2}" '
                         f'fill="{COLOURS[kind]}"{style}/>')
            if not message and width > 7 * len(e["name"]) + 4:
                drawn.append(f'<text x="{left + 3:.1f}" y="{y + 11.5}">{escaped(e["name"])}</text>')
        y += ROW

    step = 10 ** len(str(int((end - begin) / 10)))
    step = step / 2 if (end - begin) / step < 4 else step
    grid, tick = [], 0
    while tick < chosen["dur"] - margin:
        at = x(zero + tick)
        grid.append(f'<path d="M{at:.1f} {top + 6}V{y}" stroke="#ddd" stroke-width="0.6"/>'
                    f'<text x="{at:.1f}" y="{y + 14}" text-anchor="middle" fill="#555">{tick / 1000:g} ms</text>')
        tick += step
    return grid + drawn, y + 20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("picture")
    parser.add_argument("scopes", nargs="*", default=["update_all"])
    options = parser.parse_args()

    with open(options.trace) as file:
        events = json.load(file)["traceEvents"]
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"]))
    bars = rows_of(spans, lanes)

    drawn, y = [], 0
    for scope in options.scopes:
        name, _, number = scope.partition(":")
        named = [e for e in spans if e["pid"] == 0 and e["name"] == name]
        lines, y = panel(named[int(number or -1)], bars, y)
        drawn += lines
        y += 4
    y += 4
    for k, (kind, meaning) in enumerate(LEGEND.items()):
        left = LEFT + 160 * k
        drawn.append(f'<rect x="{left}" y="{y}" width="12" height="12" fill="{COLOURS[kind]}"/>'
                     f'<text x="{left + 17}" y="{y + 10}">{meaning}</text>')
    y += 20
    with open(options.picture, "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" '
                   'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n'
                   + "\n".join(drawn) + "\n</svg>\n")


if __name__ == "__main__":
    main()

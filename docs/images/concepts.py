# SPDX-License-Identifier: MIT

"""Draws docs/images/concepts.svg:  python3 docs/images/concepts.py > docs/images/concepts.svg

Left, the edges of a graph on four ranks, as shards. Right, the memory law of docs/concepts.md for its example.
"""
OWN, LOCAL, HALO, GRAPH, INK, FAINT = "#4878a8", "#9dbdd9", "#e0a458", "#7fa67a", "#333333", "#bbbbbb"
out = []


def rect(x, y, w, h, fill, stroke="#ffffff"):
    out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{fill}" stroke="{stroke}"/>')


def text(x, y, words, anchor="middle", size=12, colour=INK):
    out.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{words}</text>')


def shards(x0, y0, side):
    """Rows: owners of destinations; columns: owners of sources. Rank 1 walks its row."""
    text(x0 + 2 * side, y0 - 38, "owner of an edge's source")
    text(x0 - 8, y0 - 12, "rank", "end")
    for p in range(4):
        text(x0 + (p + 0.5) * side, y0 - 12, str(p))
        text(x0 - 12, y0 + (p + 0.5) * side + 4, str(p), "end")
        for q in range(4):
            mine = p == 1
            fill = (LOCAL if q == p else HALO if mine else "#f2e3cc") if q != p or mine else "#dbe7f1"
            rect(x0 + q * side, y0 + p * side, side, side, fill)
            stage = (p - q) % 4  # in this order, the halo rows are taken
            if mine:
                text(x0 + (q + 0.5) * side, y0 + (p + 0.5) * side - 2, ("local", "first", "second", "third")[stage])
                text(x0 + (q + 0.5) * side, y0 + (p + 0.5) * side + 14, "" if stage == 0 else f"rows of {q}", size=11)
    out.append(f'<rect x="{x0}" y="{y0 + side}" width="{4 * side}" height="{side}" fill="none" stroke="{INK}" stroke-width="2"/>')
    text(x0 + 2 * side, y0 + 4 * side + 22, "Rank 1 holds the in-edges of its nodes: one row of shards.")
    text(x0 + 2 * side, y0 + 4 * side + 40, "The halo rows of one stage are in use while the next arrive.")


def law(ranks):
    """MB of docs/concepts.md: N = 160000, E = 28 N, SAGE 3 x 256, 64 features, 16 classes, random parts."""
    nodes, edges, hidden, layers, features, classes = 160000 / ranks, 28 * 160000 / ranks, 256, 3, 64, 16
    columns = 2 * features + hidden * (layers - 1) + hidden + 2 * classes
    parameters = 2 * (features * hidden + hidden * hidden + hidden * classes)
    halo = 160000 - nodes
    own = 4 * nodes * columns + 16 * parameters
    graph = 8 * edges + 55 * nodes + (8 * nodes if ranks > 1 else 0) + 8 * halo
    stage = 4 * hidden * min(halo, nodes / 2)
    return own / 1e6, graph / 1e6, stage / 1e6, 4 * hidden * halo / 1e6


def memory(x0, y0, width, height):
    measured = {1: 652, 2: 361, 4: 183, 8: 96}
    scale = height / 1100
    for megabytes in range(0, 1101, 250):
        y = y0 + height - megabytes * scale
        out.append(f'<line x1="{x0}" y1="{y:.1f}" x2="{x0 + width}" y2="{y:.1f}" stroke="{FAINT}" stroke-width="0.5"/>')
        text(x0 - 6, y + 4, str(megabytes), "end", 11)
    text(x0 - 30, y0 - 12, "MB of a rank", "start")
    for i, ranks in enumerate(measured):
        own, graph, stage, all_halo = law(ranks)
        x, bar = x0 + 24 + i * (width - 10) / 4, 26
        y = y0 + height
        for size, fill in ((own, OWN), (graph, GRAPH), (stage, HALO)):
            y -= size * scale
            rect(x, y, bar, size * scale, fill)
        if all_halo:
            rect(x + bar + 4, y0 + height - all_halo * scale, 12, all_halo * scale, "#ffffff", HALO)
        y = y0 + height - measured[ranks] * scale
        out.append(f'<line x1="{x - 6}" y1="{y:.1f}" x2="{x + bar + 2}" y2="{y:.1f}" stroke="{INK}" stroke-width="2.5"/>')
        text(x + bar / 2, y0 + height + 18, f"P = {ranks}")
    keys = ((OWN, OWN, "activations of its nodes, parameters"), (GRAPH, GRAPH, "index arrays of its edges"),
            (HALO, HALO, "halo rows of two stages"), ("#ffffff", HALO, "all halo rows of one layer, for comparison"))
    for i, (fill, stroke, words) in enumerate(keys):
        rect(x0 + 150, y0 + 4 + 20 * i, 12, 12, fill, stroke)
        text(x0 + 168, y0 + 14 + 20 * i, words, "start", 11)
    out.append(f'<line x1="{x0 + 148}" y1="{y0 + 90}" x2="{x0 + 164}" y2="{y0 + 90}" stroke="{INK}" stroke-width="2.5"/>')
    text(x0 + 168, y0 + 94, "measured", "start", 11)


if __name__ == "__main__":
    shards(70, 70, 72)
    memory(450, 70, 390, 288)
    print('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 410" font-family="sans-serif">')
    print('<rect width="860" height="410" fill="#ffffff"/>')
    print("\n".join(out))
    print("</svg>")
    import sys
    for ranks in (1, 2, 4, 8):
        print(ranks, round(sum(law(ranks)[:3])), file=sys.stderr)

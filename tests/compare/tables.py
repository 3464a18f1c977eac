"""The tables that the comparison prints, at most 100 columns wide."""

import statistics

import kills
import queues


def print_backlog(results, n_runs):
    print(f"A. Queue: jobs that do nothing, 10 at once; medians of {n_runs} runs (run/s: lowest to highest run)")
    print("   added: with the product's call for many; run: from the first start to the last end; start: from")
    print("   before the call that adds one job to its start, with an idle worker, median and 95th percentile")
    row("product", "jobs", "added/s", "run/s", "", "added+run/s", "start", "95 %")
    for peer, runs in results:
        if not runs:
            row(label(peer), "failed: see above")
            continue
        rates = [run["run"] for run in runs]
        middle = [rate(median(runs, name)) for name in ("added", "run", "both")]
        start, late = (statistics.median(run["starts"][i] for run in runs) * 1000 for i in (0, 1))
        row(label(peer), runs[0]["n"], middle[0], middle[1], spread(rates), middle[2], millis(start), millis(late))


def print_keyed(results, n_runs):
    print(f"B. The same with {queues.KEYS} keys, and one job at a time per key; medians of {n_runs} runs")
    print("   overlaps, disorder: jobs of all runs that began during, or before, an earlier one of their key")
    print(f"{'product':34}{'jobs':>6}{'run/s':>8}{'':>15}{'overlaps':>10}{'disorder':>10}")
    for peer, runs in results:
        if not runs:
            row(label(peer), "failed: see above")
            continue
        rates = [run["run"] for run in runs]
        cells = f"{runs[0]['n']:>6}{rate(statistics.median(rates)):>8}{spread(rates):>15}"
        overlaps, disorder = (sum(run[name] for run in runs) for name in ("overlaps", "disorder"))
        print(f"{label(peer):34}{cells}{overlaps:>10}{disorder:>10}")


def print_stores(results, n_runs, n_turns):
    print(f"C. Conversation: the {n_turns} turns after n messages; medians of {n_runs} runs, per turn (two messages)")
    print("   WAL: bytes that Postgres logs, in KB; turn: time of a turn; load: time to read all messages")
    sizes = [size for _, runs in results for size in (runs or [{}])[0]]
    sizes = list(dict.fromkeys(sizes))
    print(f"{'':36}" + "".join(f"{f'n = {size}':>21}" for size in sizes))
    print(f"{'product':36}" + f"{'WAL':>7}{'turn':>7}{'load':>7}" * len(sizes))
    for title, runs in results:
        if not runs:
            print(f"{title:36} failed: see above")
            continue
        cells = ""
        for size in sizes:
            wal, turn, load = (statistics.median(run[size][name] for run in runs) for name in ("wal", "turn_ms", "load_ms"))
            cells += f"{wal / 1000:7.1f}{millis(turn):>7}{millis(load):>7}"
        print(f"{title:36}{cells}")


def print_kills(results, n_runs):
    print(f"D. Kill: kill -9 of the worker amid {kills.JOBS} jobs of {kills.JOB_MS} ms, 10 at once, and a new worker at once;")
    print(f"   medians of {n_runs} runs. waiting: not run within {kills.PATIENCE} s; again: until cut off jobs began again")
    print(f"{'product':24}{'cut off':>8}{'waiting':>8}{'twice':>6}{'again':>12}  what decides it, by default")
    for peer, runs in results:
        if not runs:
            print(f"{peer.title:24} failed: see above")
            continue
        cut_off, waiting, twice = (f"{median(runs, name):g}" for name in ("cut_off", "waiting", "twice"))
        known = [run for run in runs if run["first"] is not None]
        again = f"{median(known, 'first'):.0f} to {median(known, 'last'):.0f} s" if known else f"> {kills.PATIENCE} s"
        print(f"{peer.title:24}{cut_off:>8}{waiting:>8}{twice:>6}{again:>12}  {peer.rescue}")


def row(name, *cells):
    widths = [6, 8, 7, 13, 12, 9, 9]
    print(f"{name:34}" + "".join(f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=False)))


def label(peer):
    return peer.title + ("" if peer.variant == "default" else f", {peer.variant}")


def median(runs, name):
    return statistics.median(run[name] for run in runs)


def spread(rates):
    return f"({rate(min(rates))}-{rate(max(rates))})"


def rate(value):
    return f"{value:.0f}"


def millis(value):
    return f"{value:.1f}ms" if value < 100 else f"{value:.0f}ms"

"""What a pass costs: tools × requirements × history, in microseconds of the processor.

    python -m benchmarks.bench_pass

Each decision is about a history one step longer than the one before; the best of a few runs is printed.
"""

from __future__ import annotations

from benchmarks.peers.of_maymust import decide

HISTORIES = (0, 10, 1000, 100_000)
CELLS = [(tools, requirements) for tools in (10, 100, 1000) for requirements in (1, 10, 100)]
TIMES = 1000
REPEATS = 3


def main() -> None:
    """Print the grid."""
    print("tools  requirements" + "".join(f"{f'history {history:,}':>18}" for history in HISTORIES) + "   (µs)")
    for tools, requirements in CELLS:
        best = [min(decide(tools, requirements, history, TIMES) for _ in range(REPEATS)) for history in HISTORIES]
        print(f"{tools:>5}{requirements:>14}" + "".join(f"{value:>18.2f}" for value in best))
    print("at most 10 µs for 10 tools and 10 requirements, 120 µs for 1,000 and 100; the same at any length of the history")


if __name__ == "__main__":
    main()

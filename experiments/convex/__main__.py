"""Draw what privacy costs when points of a convex domain are played, by study.toml."""

from dpbandit.experiments.study import command_of, start

main = command_of("convex")

if __name__ == "__main__":
    start(main)

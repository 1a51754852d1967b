"""Draw what trust costs and what returning costs, by study.toml."""

from dpbandit.experiments.study import command_of, start

main = command_of("trust")

if __name__ == "__main__":
    start(main)

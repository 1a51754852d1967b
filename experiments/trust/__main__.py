"""The command of the study of trust and returning users."""

from dpbandit.experiments.study import command_of, start

main = command_of("trust")

if __name__ == "__main__":
    start(main)

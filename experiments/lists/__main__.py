"""The command of the study of lists."""

from dpbandit.experiments.study import command_of, start

main = command_of("lists")

if __name__ == "__main__":
    start(main)

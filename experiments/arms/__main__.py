"""The command of the study of arms without contexts."""

from dpbandit.experiments.study import command_of, start

main = command_of("arms")

if __name__ == "__main__":
    start(main)

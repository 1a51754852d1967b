"""The command of the study of convex domains."""

from dpbandit.experiments.study import command_of, start

main = command_of("convex")

if __name__ == "__main__":
    start(main)

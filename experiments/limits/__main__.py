"""The command of the study of lower bounds."""

from dpbandit.experiments.limits import STUDY, run
from dpbandit.experiments.study import command, start

main = command("limits", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)

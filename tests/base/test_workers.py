"""Progress bars of worker processes: one for all, and one for each part under way."""

import time

from dpbandit import compare
from dpbandit.base import processes, progress


def rows(board, wanted):
    """The bars once they are `wanted`, or what they are after two seconds."""
    for _ in range(200):
        tasks = [] if board._bar is None else board._bar.tasks
        found = {task.description.strip(): (task.completed, task.total) for task in tasks}
        if found == wanted:
            break
        time.sleep(0.01)
    return found


def test_a_bar_for_all_and_one_for_each_that_is_under_way(monkeypatch):
    """A note that is half written is none."""
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_POLL_SECONDS", 0.001)
    with progress.Board({"one": 40, "two": 60}) as board:
        note = board.note("one")
        note.working_on("fade", rate=4)
        note.advance(5)
        wanted = {"all": (20, 100), "one: fade": (20, 40)}
        assert rows(board, wanted) == wanted
        board.note("two").advance(6)
        board.finish("one")
        wanted = {"all": (46, 100), "two:": (6, 60)}
        assert rows(board, wanted) == wanted
    with progress.Board({"one": 40}, visible=False) as board:
        board._files["one"].write_text("")
        assert board.counts() == {}


def test_workers_write_down_how_far_they_are(monkeypatch):
    """In processes, whatever they are at; the folder of notes is gone when all is done."""
    boards, finish = [], progress.Board.finish

    def seen(board, part):
        boards.append((board, board.counts().get(part)))
        finish(board, part)

    monkeypatch.setattr(progress.Board, "finish", seen)
    monkeypatch.setattr(processes, "_START_SECONDS", -1.0)  # however short the run
    compare("TwoArms", "linucb", horizon=9, replicas=4, jobs=2, progress=False)
    assert {name for _, (_, name) in boards} <= {"linucb", "Uniform", "BestFixed"}
    assert all(done > 0 for _, (done, _) in boards)
    assert not any(file.parent.exists() for file in boards[0][0]._files.values())

# What every change must pass, by name. `make lint test` before a commit, `.ci/run` for all of it.
.PHONY: lint test coverage slow other-cpus lowest mutants docs labs bench bench-quick reading monotone

lint:  ## style, spelling, types, sizes: what reads text alone
	ruff check .
	ruff format --check .
	codespell
	python tools/words.py
	python tools/measures.py
	python tools/linktree.py
	MYPYPATH=build/types mypy -p dpbandit

test:  ## the default tests
	pytest

coverage:  ## the default tests, and the share of lines that they run; quick from Python 3.12 on
	COVERAGE_CORE=$$(python -c "import sys; print('sysmon' if sys.version_info >= (3, 12) else 'ctrace')") \
	    pytest --cov --cov-report=
	@coverage report --skip-covered --sort=cover | sed -n 1,12p
	@echo "lines that the tests run, in percent: $$(coverage report --format=total)"

slow:  ## statistical checks that take minutes
	pytest -m slow

other-cpus:  ## the default tests, or TESTS, in the arithmetic of other processors
	python tools/other_cpus.py $(TESTS)

lowest:  ## the default tests, or TESTS, with the lowest versions that pyproject.toml allows
	python tools/lowest.py $(TESTS)

mutants:  ## faults that the tests have to notice, put into a copy one at a time
	python tools/mutants.py

docs:  ## the pages; warnings are errors
	sphinx-build -q -W -E --keep-going docs docs/_build

labs:  ## what labs print and draw, for their pages: those whose code has changed
	python tools/labs.py

bench:  ## every agent and environment against a floor
	pytest benchmarks/test_floors.py -n 0 --benchmark-timer=time.process_time

bench-quick:  ## the same for a few rounds, to show that it runs
	pytest benchmarks/test_floors.py -n 0 -q --benchmark-disable

reading:  ## how many files and lines a reader of a round has to open, at most
	python tools/reading.py

monotone:  ## defaults whose regret rises with epsilon, or per round with the rounds: an hour
	python -m dpbandit.experiments.choosing.monotone

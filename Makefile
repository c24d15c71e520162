# The everyday commands. Each is a script below scripts/ that also runs alone.

.PHONY: help run test lint fmt bench

help:
	@echo "make run    build, start on SQLite in ./.home, install the example plugin, stay until Ctrl-C"
	@echo "make test   every test; TEST_ARGS go to the test programs"
	@echo "make lint   format, clippy, documentation, dependencies"
	@echo "make fmt    format the code"
	@echo "make bench  measure the host against bare baselines; BENCH_ARGS go to the bench"

run:
	@exec scripts/run.sh

test:
	@exec scripts/test.sh $(TEST_ARGS)

lint:
	@exec scripts/lint.sh

fmt:
	@cargo fmt --all

bench:
	@exec scripts/bench.sh $(BENCH_ARGS)

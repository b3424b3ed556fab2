"""Rules that tie two choices together: plugins, gradient clipping, mesh sizes, checkpoints."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from workers.training.rules.choices import Choices
from workers.training.rules.plugins import OTHER, OWN, PLUGINS, PRECISION, Plugin
from workers.training.rules.strategies import DEEPSPEED, FSDP, MODEL_PARALLEL, Strategy
from workers.training.rules.words import CUDA, FABRIC, TRAINER, Resolved

Rule = Callable[[Choices, Resolved, Strategy], Resolved | None]
"""Adds to the faults and warnings of the choices; answers another resolution where it changes what runs."""


def plugins(choices: Choices, resolved: Resolved, row: Strategy) -> Resolved | None:
    """At most one of each sort; a precision plugin takes the place of `precision`."""
    seen: set[str] = set()
    for where, path, known in _plugins(choices.section.get("plugins")):
        name = path.rpartition(".")[2]

        def wrong(detail: str, at: tuple[str, ...] = (*where, "class_path"), name: str = name) -> None:
            choices.wrong("plugins", f"{name}: {detail}", *at)

        if known.refusal:
            wrong(known.refusal)
        elif known.needs == CUDA and resolved.accelerator != CUDA:
            wrong(f"it needs CUDA, and accelerator is {resolved.accelerator!r}: {choices.machine.cuda_reason}")
        elif choices.machine.lacks(known.package):
            wrong(f"it needs the package {known.package!r}, which the workers do not have")
        elif known.only_with not in (None, row.family):
            wrong(f"it belongs to the strategy {known.only_with!r}, and the strategy is {resolved.strategy!r}")
        elif known.sort == PRECISION and row.family == FSDP and known.only_with != FSDP:
            wrong("the strategy 'fsdp' takes FSDPPrecision alone; give `precision` instead")
        if known.sort in seen and known.sort != OTHER:
            wrong(f"a second plugin for {known.sort}; Lightning takes one", where)
        seen.add(known.sort)
        if known.sort == PRECISION:
            if choices.section.get("precision") is not None:
                choices.wrong(
                    "precision", f"`precision` and the plugin {name} say the same thing twice; give one of them"
                )
            resolved = resolved.model_copy(update={"precision": name})
    return resolved


def _plugins(sent: Any) -> Iterator[tuple[tuple[str, ...], str, Plugin]]:
    for index, each in enumerate(sent if isinstance(sent, list) else [sent]):
        if isinstance(each, dict) and isinstance(path := each.get("class_path"), str):
            yield (str(index),) if isinstance(sent, list) else (), path, PLUGINS.get(path.rpartition(".")[2], OWN)


def clipping(choices: Choices, resolved: Resolved, row: Strategy) -> None:
    """Lightning finds these out at the first step."""
    value, algorithm = choices.section.get("gradient_clip_val"), choices.section.get("gradient_clip_algorithm")
    if algorithm is not None and str(algorithm).lower() not in ("norm", "value"):
        choices.wrong("gradient_clip_algorithm", f'must be "norm" or "value", not {algorithm!r}')
    elif row.family == DEEPSPEED and algorithm == "value":
        choices.wrong("gradient_clip_algorithm", 'DeepSpeed clips by "norm" alone')
    elif row.family == FSDP and value and algorithm in (None, "norm"):
        at = "gradient_clip_algorithm" if algorithm else "gradient_clip_val"
        choices.wrong(at, 'under fsdp no rank sees the whole norm: clip with `gradient_clip_algorithm: "value"`')


def mesh(choices: Choices, resolved: Resolved, row: Strategy) -> None:
    """Data-parallel times tensor-parallel size is the number of processes."""
    if row.family != MODEL_PARALLEL:
        return
    arguments = _arguments(choices)
    sizes = {"data_parallel_size": resolved.num_nodes, "tensor_parallel_size": resolved.devices}
    for key, default in sizes.items():
        sent = arguments.get(key, "auto")
        if sent == "auto":
            continue
        if isinstance(sent, bool) or not isinstance(sent, int) or sent < 1:
            choices.wrong(
                "strategy", f'must be a whole number from 1 up, or "auto" for {default}, not {sent!r}', "init_args", key
            )
            return
        sizes[key] = sent
    data, tensor = sizes.values()
    if data * tensor != resolved.world_size:
        key = next((key for key in sizes if arguments.get(key, "auto") != "auto"), "")
        detail = f"data_parallel_size {data} times tensor_parallel_size {tensor} must be the {resolved.world_size} process(es) asked for"
        choices.wrong("strategy", detail, *(("init_args", key) if key else ()))
    if choices.params.mode == FABRIC and not arguments.get("parallelize_fn"):
        choices.wrong(
            "strategy",
            "under Fabric, ModelParallelStrategy needs `parallelize_fn`: the dotted path of a function",
            "init_args",
        )


def engine_settings(choices: Choices, resolved: Resolved, row: Strategy) -> None:
    """DeepSpeed's own configuration may be an object, not a file."""
    if row.family == DEEPSPEED and isinstance(config := _arguments(choices).get("config"), str):
        choices.wrong("strategy", f"must be an object; {config!r} would be read as a file", "init_args", "config")


def _arguments(choices: Choices) -> dict[str, Any]:
    strategy = choices.section.get("strategy")
    arguments = strategy.get("init_args") if isinstance(strategy, dict) else None
    return arguments if isinstance(arguments, dict) else {}


def keeping(choices: Choices, resolved: Resolved, row: Strategy) -> None:
    """What a job leaves to go on from."""
    if choices.params.mode != TRAINER:
        return
    if choices.section.get("barebones") not in (None, False):
        choices.wrong(
            "barebones", "would turn off the logging and the checkpoints that a job is watched by and goes on from"
        )
    if choices.section.get("enable_checkpointing") is False:
        callbacks = choices.section.get("callbacks")
        for index, each in enumerate(callbacks if isinstance(callbacks, list) else [callbacks]):
            if isinstance(each, dict) and str(each.get("class_path", "")).endswith("Checkpoint"):
                below = (str(index),) if isinstance(callbacks, list) else ()
                choices.wrong("callbacks", "keeps checkpoints, which `enable_checkpointing: false` forbids", *below)
        choices.warnings.append(
            "With `enable_checkpointing: false` there is nothing to go on from: "
            "a job that is stopped, retried or loses its worker begins again."
        )


def counts(choices: Choices, resolved: Resolved, row: Strategy) -> None:
    """Numbers that Lightning divides by, and does not look at before."""
    for key in DIVISORS:
        sent = choices.section.get(key)
        if isinstance(sent, int | float) and not isinstance(sent, bool) and sent < 1:
            choices.wrong(key, f"must be at least 1, not {sent!r}")


def unread(choices: Choices, resolved: Resolved, row: Strategy) -> None:
    """What is legal, and seldom meant."""
    params = choices.params
    if params.mode == TRAINER and params.stage != "fit" and params.config.get("ckpt_path") is None:
        choices.warnings.append(
            f"Stage {params.stage!r} without `ckpt_path` runs the model with the weights it was built with."
        )


DIVISORS: Final = ("accumulate_grad_batches", "check_val_every_n_epoch")
RULES: Final[tuple[Rule, ...]] = (plugins, clipping, mesh, engine_settings, keeping, counts, unread)

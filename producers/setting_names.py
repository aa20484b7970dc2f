"""Which facet of a job a setting belongs to, by the names that frameworks give it."""

from __future__ import annotations

import re
from typing import Literal

from producers.word_lists import words_of

Facet = Literal["layout", "model", "data", "scale", "code", "versions", "flags", "hyperparameters"]

AXES: dict[str, str] = {
    **dict.fromkeys(
        (
            "tensor_model_parallel_size",
            "tensor_parallel_size",
            "tensor_parallel_degree",
            "tp_size",
            "tp_degree",
            "tp",
        ),
        "tp",
    ),
    **dict.fromkeys(
        (
            "pipeline_model_parallel_size",
            "pipeline_parallel_size",
            "pipeline_parallel_degree",
            "pp_size",
            "pp_degree",
            "pp",
        ),
        "pp",
    ),
    **dict.fromkeys(("data_parallel_size", "dp_size", "dp"), "dp"),
    **dict.fromkeys(("context_parallel_size", "context_parallel_degree", "cp_size", "cp"), "cp"),
    **dict.fromkeys(
        ("expert_model_parallel_size", "expert_parallel_size", "expert_parallel_degree", "ep_size", "ep"), "ep"
    ),
    **dict.fromkeys(
        (
            "micro_batch_size",
            "train_micro_batch_size_per_gpu",
            "per_device_train_batch_size",
            "local_batch_size",
        ),
        "micro_batch",
    ),
    **dict.fromkeys(("global_batch_size", "train_batch_size"), "global_batch"),
}
"""Axes of the layout by the names of their settings: Megatron and NeMo, DeepSpeed, torchtitan, Hugging Face, verl."""

SCALE: dict[str, str] = {
    **dict.fromkeys(("nnodes", "num_nodes", "num_machines"), "nodes"),
    **dict.fromkeys(("nproc_per_node", "n_gpus_per_node", "gpus_per_node", "devices"), "gpus_per_node"),
    **dict.fromkeys(("num_gpus", "ngpus", "n_gpus", "gpus"), "gpus"),
}
WORLD = ("world_size",)

MODEL_NAMES = words_of(
    "model_name_or_path model_name name_or_path pretrained_model_name_or_path base_model model_id model_path"
)
_SIZES = words_of(
    "num_layers num_hidden_layers n_layers n_layer hidden_size hidden_dim dim d_model n_embd "
    "ffn_hidden_size intermediate_size ffn_dim num_attention_heads num_heads n_heads n_head "
    "num_key_value_heads n_kv_heads num_query_groups kv_channels head_dim vocab_size padded_vocab_size "
    "max_position_embeddings n_positions num_experts num_local_experts n_routed_experts moe_router_topk "
    "num_experts_per_tok moe_intermediate_size model_type architectures architecture rope_theta "
    "rotary_base normalization position_embedding_type tie_word_embeddings hidden_act activation_function "
    "parameters total_parameters trainable_parameters flavor rms_norm_eps layer_norm_eps "
    "untie_embeddings_and_output_weights swiglu group_query_attention multi_latent_attention "
    "sliding_window"
)
_DATA = re.compile(
    r"(?:train_|val_|valid_|test_|eval_|training_|validation_)?(?:data(?:set|sets|loader|loaders)?|corpus|shards?)"
    r"(?!_parallel)(?:_(?!parallel)\w{1,60})?"
    r"|(?:train|val|valid|test|eval|validation|training)_(?:file|files|path|paths|split|set)|num_workers|prefetch\w{0,30}"
    r"|pin_memory|persistent_workers|drop_last|tokenizer\w{0,40}|vocab_file|merges?_file|blend|split|shuffle"
    r"|per_split_data_args_path|mock_data|streaming|packing|reset_position_ids|eod_mask_loss",
    re.IGNORECASE,
)
_VERSION = re.compile(r"(?:transformers|torch|pytorch|cuda|nccl|python|nemo|megatron|deepspeed)_version")
_DATA_PARTS = words_of("data dataset datasets dataloader training_dataset data_config tokenizer")
_KNOWN_OTHERS = words_of(
    "lr learning_rate weight_decay adam_beta1 adam_beta2 adam_epsilon adam_eps warmup_steps warmup_ratio "
    "lr_warmup_iters lr_warmup_steps lr_decay_style lr_scheduler_type lr_scheduler clip_grad "
    "max_grad_norm max_norm gradient_clipping gradient_accumulation_steps seq_length seq_len max_seq_len "
    "max_seq_length sequence_length max_steps train_iters num_train_epochs train_samples optimizer optim "
    "precision dtype torch_dtype params_dtype bf16 fp16 fp8 tf32 gradient_checkpointing "
    "recompute_granularity activation_checkpoint zero_optimization zero_stage fsdp fsdp_config deepspeed "
    "overlap_grad_reduce overlap_param_gather use_distributed_optimizer sequence_parallel hidden_dropout "
    "attention_dropout dropout init_method_std loss_scale attn_implementation use_flash_attn compile "
    "cpu_offload distributed_backend backend nccl_communicator_config_path ppo_mini_batch_size rollout "
    "kl_coef temperature data_parallel_shard_degree data_parallel_replicate_degree eval_interval "
    "save_interval"
)
"""Names by which a configuration of training is told; of them ``world_size`` or ``seed`` are too common to be any."""
_SWITCHES = {"true": "true", "false": "false"}


def axis_of(name: str) -> str:
    """The axis of the layout that a setting gives the size of, or an empty string."""
    return AXES.get(last_of(name), "")


def last_of(name: str) -> str:
    """The last part of a dotted name, as settings are spelt."""
    return name.rpartition(".")[2].replace("-", "_").lower().lstrip("_")


def facet_of(name: str, value: str) -> Facet:
    """The facet of a setting that is no size of the layout."""
    last, parts = last_of(name), [part.lower() for part in name.split(".")[:-1]]
    if _VERSION.fullmatch(last):
        return "versions"
    if last in SCALE and value.isdecimal():
        return "scale"
    if is_model_size(last) or (parts and parts[-1] == "model" and last in ("name", "path", "type")):
        return "model"
    if _DATA.fullmatch(last) or any(part in _DATA_PARTS for part in parts):
        return "data"
    return "flags" if value.lower() in _SWITCHES else "hyperparameters"


def is_model_size(last: str) -> bool:
    """Whether a setting says what the model is or measures."""
    return last in _SIZES or last in MODEL_NAMES


def is_telling(name: str) -> bool:
    """Whether a name is one that configurations of training have, and others do not."""
    last = last_of(name)
    # Two letters such as ``tp`` stand for other things elsewhere.
    return last in _KNOWN_OTHERS or (len(last) > 2 and (last in AXES or is_model_size(last)))

"""Which settings of a run were not understood: made, asked for by nobody or of a value that is not
known, and not among those whose value no memory hangs on.

A plan is sure of "does not fit" only where there are none, since each may lower what the run takes.
So the expressions below name what can lower no term, and all else counts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Dict, Iterator, Sequence, Tuple

from ...model.evidence import Fact, Known, Unknown
from .configuration import Configuration
from .settings import Setting, flatten

__all__ = ["other_models", "unread_settings"]

#: Parts of a dotted key below which nothing changes memory: rewards, losses, agents, logs.
_SUBTREES = (
    r"(?:algorithm|algo|custom_reward_function|reward_manager|global_profiler|profiler|retriever"
    r"|reward_kwargs|overlong_buffer|async_training|val_override_config|sandbox_fusion|policy_loss"
    r"|val_kwargs|multi_turn|agent|trace"
    r"|prometheus|apply_chat_template_kwargs|custom_cls|sampler|logger|wandb|env_vars|reward"
    r"|special_tokens|lr_scheduler|metric_logger|checkpointer)"
)
#: Last parts of keys, of options and of files alike.
_NAMES = (
    # data and its columns
    r"(?:train|val|eval|test)_(?:files?|path|data|data_num|dataset\w*|max_samples|split)"
    r"|data(?:set)?_?(?:dir|path|name|names|config|mixture|mixer|text_field|num_proc|shuffle)?"
    r"|prompt_data\w*|prompt_dataset|\w+_split|\w*_?keys?|\w+_column\w*|input_template|template"
    r"|apply_chat_template|chat_template\w*|tokenizer\w*|input_tokenizer|truncation\w*"
    r"|filter_\w+|return_\w+|shuffle\w*|seed|trust_remote_code|preprocessing_num_workers"
    r"|overwrite_cache|max_samples|skip_tokenizer_init|reward_fn\w*|reward_funcs|reward_weights"
    r"|remove_unused_columns|label_names|media_dir|image_dir|video_fps|min_pixels|format_prompt"
    r"|system(?:_prompt)?|override_chat_template|accuracy_\w+_bound|load_from_cache_file"
    r"|split_dataset_ratio|dataset_num_proc|use_chat_template|eot_tokens|special_tokens"
    r"|(?:test_)?datasets|dataset_prepared_path|skip_prepare_dataset|pad_to_sequence_len"
    r"|processor_type|agent_template|enable_thinking|dataloader_drop_last|cached_\w*dataset"
    r"|(?:tokenizer|dataset|dataset_val)\.(?:_component_|path|source|split|merges_file)"
    # names, places, logs
    r"|project_name|experiment_name|run_name|group_name|output_dir|save_path|ckpt_path|output_path"
    r"|default_(?:local|hdfs)_dir|\w*_data_dir|logging_\w+|log_\w+|report_to|tensorboard\w*"
    r"|use_(?:wandb|tensorboard|swanlab)|wandb\w*|swanlab\w*|push_to_hub|hub_\w+|plot_loss"
    r"|overwrite_output_dir|disable_tqdm|disable_log_stats|debug|verbose|nccl_timeout"
    r"|ddp_timeout|include_num_input_tokens_seen|config|logger|reward_manager|model_revision"
    r"|\w*checkpoint(?:ing)?_path|find_last_checkpoint|ckpt\.(?:path|save_hf|load_enable)"
    # how often and how long
    r"|total_epochs|total_training_steps|num_train_epochs|num_epochs|max_epochs|max_steps|epochs"
    r"|num_episodes|test_freq|val_\w+|eval_\w+|evaluation_strategy|do_(?:train|eval|predict)"
    r"|critic_warmup|resume_\w+|load_checkpoint|save_(?:steps|strategy|freq|interval|hf_ckpt)"
    r"|ppo_epochs|num_iterations|balance_batch|eval\.\w+|per_device_eval_batch_size"
    r"|(?:evals|saves)_per_epoch|max_num_(?:steps|epochs)|predict_with_generate"
    r"|metric_for_best_model|greater_is_better|run_val_every_n_steps|num_labels|tf32"
    r"|max_steps_per_epoch|batch_size_val|gradient_accumulation_steps|strict|no_save_rng"
    r"|save_adapter_weights_only|lora_model_dir|loss_watchdog_\w+|model_author"
    r"|external_plugins|vllm_server_(?:host|port)"
    r"|max_try_make_batch|total_rollout_steps|forward_prefetch|use_reentrant|sync_backend"
    r"|actor_init_on_gpu|use_flash_attn\w*|flash_attn\w*|attn_impl(?:ementation)?"
    r"|attention_backend"
    r"|\w*mbridge|enable_full_shard"
    # what a server answers, and where
    r"|host|port|served_model_name|api_key|\w+_parser|enable_auto_tool_choice|enable_reasoning"
    r"|disable_log_\w+|enable_log_\w+|uvicorn_\w+|ssl_\w+|allowed_\w+|root_path|revision"
    r"|\w*generation_config|download_dir|block_size|disable_custom_all_reduce|node_rank"
    r"|distributed_executor_backend|(?:no_)?enable_prefix_caching|dist_init_addr|enable_metrics"
    r"|schedule_\w+|decode_log_interval|tool_server|num_speculative_tokens"
    # optimizer's numbers, losses, sampling
    r"|lr|lr_\w+|learning_rate|\w+_learning_rate|min_lr\w*|weight_decay|warmup_\w+|adam_\w+|betas"
    r"|grad_clip|clip_grad|max_norm|max_grad_norm|l2|kl_\w+|init_kl_coef|use_kl_(?:loss"
    r"|estimator)\w*"
    r"|entropy_coeff|entropy_loss_coef|clip_\w+|cliprange\w*|eps_clip\w*|loss_agg_mode|loss_type"
    r"|advantage_clip_\w+|use_leave_one_out\w*|overlong_filtering|mixed_kl_weight"
    r"|gamma|lambd|lam|epsilon\w*|temperature|top_p|top_k|do_sample|normalize_\w+|norm_\w+"
    r"|scale_rewards|reward_clip_range|tau_\w+|calculate_log_probs|log_prob_\w+|n_val|dropout"
    r"|attention_dropout|hidden_dropout|embd_pdrop|resid_pdrop|max_position_embeddings"
    r"|lora_alpha|lora_dropout|lora_target\w*|target_modules|exclude_modules|alpha|mode"
    r"|lora_attn_modules|apply_lora_to_\w+|(?:moe_)?aux_loss_coeff?|entropy_coef|rpo_alpha"
    r"|overlong_filter|importance_sampling_level|loss_scale"
    r"|bf16|fp16|fused|inference_tp_size|pref_\w+|dpo_\w+|label_smoothing\w*"
)
_WITHOUT_MEMORY = re.compile(rf"(?:^|\.){_SUBTREES}\.|(?:^|\.)(?:{_NAMES})\Z|^hydra\b")


def unread_settings(configuration: Configuration, settings: Sequence[Setting]) -> Tuple[str, ...]:
    """Return the keys that a run sets and nothing here asked for, or whose value is not known, but
    for those whose value no memory hangs on, or is the framework's default; and the file of its
    settings that is not at hand.
    """
    leaves = {leaf.key: leaf for setting in settings for leaf in flatten(setting)}
    keys = [
        key
        for key, leaf in leaves.items()
        if (key not in configuration.asked or _is_unclear(configuration, leaf))
        and not _is_without_memory(key)
        and not _is_default(configuration, leaf)
    ]
    return (*keys, configuration.absent) if configuration.absent else tuple(keys)


def _is_unclear(configuration: Configuration, leaf: Setting) -> bool:
    """Tell whether the value of a setting is not known; of a path the last part is enough."""
    if leaf.unclear:
        return not leaf.last
    refers = isinstance(leaf.value, str) and "${" in leaf.value
    return refers and isinstance(configuration.get(leaf.key), Unknown)


#: Keys of models beside the trained one, its reference, its critic and its reward.
_OTHERS = re.compile(
    r"(?:teacher|draft|speculative|assistant|judge|reward|value|gold)s?_?(?:model)?(?![a-z])"
    r"|(?:teacher|draft)_",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(r"tokenizer|template|data|dir\b|server|url|func|plugin|column|port|host")
_MODEL = re.compile(r"(?:\w[\w.-]*|[./~][\w./~-]*)/[\w.-]+(?<!\.py)(?<!\.json)(?<!l)(?<!\.yaml)/?")


def other_models(configuration: Configuration, settings: Sequence[Setting]) -> Dict[str, Fact[Any]]:
    """Return, as the field of a workload, the model that a run names beside those that are
    understood: a teacher, a draft. What it takes, and where, is not known.
    """
    leaves = {leaf.key: leaf for setting in settings for leaf in _each(setting)}
    models = [
        leaf
        for key, leaf in leaves.items()
        if key not in configuration.asked
        and isinstance(leaf.value, str)
        and _OTHERS.search(key)
        and not _NO_MODEL.search(key)
        and _MODEL.fullmatch(leaf.value)
    ]
    text = ", ".join(dict.fromkeys(f"{leaf.key}={leaf.value}" for leaf in models))
    return {"others": Known(text, models[0].place)} if models else {}


def _each(setting: Setting) -> Iterator[Setting]:
    """Yield the leaves of a setting, those of the mappings in a list too: there may be several
    teachers.
    """
    for leaf in flatten(setting):
        if isinstance(leaf.value, list):
            for number, value in enumerate(leaf.value):
                if isinstance(value, dict):
                    yield from _each(leaf._replace(key=f"{leaf.key}.{number}", value=value))
        else:
            yield leaf


@lru_cache(maxsize=1 << 16)  # several frameworks may be asked for the keys of one run
def _is_without_memory(key: str) -> bool:
    return _WITHOUT_MEMORY.search(key) is not None


def _is_default(configuration: Configuration, leaf: Setting) -> bool:
    defaults = configuration.table.values(leaf.key, configuration.versions)
    return (
        not leaf.unclear
        and sum(len(versions) for _, versions in defaults) == len(configuration.versions)
        and all(value == leaf.value for value, _ in defaults)
    )

"""What is each run's or each process's own, so that two runs of one job are told alike.

Left out by name is what says who or where a process is: ranks, hosts, ports, ids of runs and processes, the shell
around it, and where results go. Put in one form is what stands inside values: a user's home (whose it is says nothing
of the job), temporary folders, moments, UUIDs, addresses and ports. Left as it is: other paths (they name data and
code), dates alone (they name versions of data), and numbers.
"""

from __future__ import annotations

import re

from producers.word_lists import words_of

OWN = "each run's own"
"""Why something is left out."""

_NAMES = re.compile(
    r"(?:global_|local_|node_|group_|role_|world_|cross_|machine_|procid_|data_parallel_|tensor_model_parallel_"
    r"|pipeline_model_parallel_)?rank|local_process_index|process_index|proc_?id|local_?id|node_?id|task_?id|worker_?id"
    r"|p?pid|host(?:name|_?ip)?|node_?(?:name|list)|master_(?:addr|port|ip)|main_process_(?:ip|port)|(?:\w{1,40}_)?port"
    r"|rdzv_(?:id|endpoint|conf)|rendezvous_endpoint|init_method|dist_url|addr(?:ess)?|ip"
    r"|(?:\w{1,40}_)?run_?(?:id|name)|trial_(?:name|id|params)|exp(?:eriment)?_(?:name|id|dir)|job_?id|wandb_\w{1,40}"
    r"|session_?(?:id|dir)|uuid|timestamp|start_?time|end_?time|time_?stamp|date|created_?at|global_step|log_history"
    r"|output_?dir|out_?dir|save_?(?:dir|path)?|log_?(?:dir|file|path)|logging_dir|logs?|tensorboard(?:_log)?_?dir"
    r"|dump_?folder|default_local_dir|default_hdfs_dir|results?_dir|work_?dir|cwd|chdir|best_model_checkpoint|n_gpu|_n_gpu"
    r"|device|stdout|stderr|error|output",
    re.IGNORECASE,
)
_OF_TRACKERS = words_of("wandb exp_manager mlflow tensorboard logger swanlab comet tracking hydra")
"""Parts of a configuration that say where a run is written down."""
_VARIABLES = re.compile(
    r"_|PWD|OLDPWD|SHLVL|SHELL|TERM\w{0,120}|COLORTERM|COLUMNS|LINES|LS_COLORS|LESS\w{0,120}|PAGER|EDITOR|VISUAL|PS[1-4]|PROMPT\w{0,120}"
    r"|HOME|USER|LOGNAME|USERNAME|MAIL|DISPLAY|XDG_\w{1,120}|SSH_\w{1,120}|DBUS_\w{1,120}|TMUX\w{0,120}|STY|WINDOW\w{0,120}|HIST\w{1,120}|LANG|LANGUAGE|LC_\w{1,120}"
    r"|BASH\w{0,120}|ZSH\w{0,120}|FPATH|MANPATH|INFOPATH|MODULE\w{0,120}|LMOD\w{0,120}|_LM\w{0,120}|__\w{1,120}|LOADEDMODULES|_ModuleTable\w{0,120}|KONSOLE\w{0,120}|VSCODE\w{0,120}"
    r"|HOST\w{0,120}|NODE_?NAME|NODENAME|POD_\w{1,120}|MY_POD\w{0,120}|PODNAME|TMPDIR|TEMP|TMP|TEMPDIR|INVOCATION_ID|JOURNAL_STREAM"
    r"|SYSTEMD_\w{1,120}|MEMORY_PRESSURE\w{0,120}|MOTD\w{0,120}|WHICH\w{0,120}|S_COLORS|DEBUGINFOD\w{0,120}|GPG_\w{1,120}|container|CONDA_PROMPT\w{0,120}|CONDA_SHLVL"
    r"|KUBERNETES_\w{1,120}|\w{1,120}_SERVICE_(?:HOST|PORT\w{0,120})|\w{1,120}_PORT(?:_\d+_(?:TCP|UDP)\w{0,120})?|\w{1,120}_TCP_ADDR"
    r"|RANK|LOCAL_RANK|GROUP_RANK|ROLE_RANK|NODE_RANK|MACHINE_RANK|WORLD_RANK|GLOBAL_RANK|MASTER_ADDR|MASTER_IP|PET_\w{1,120}"
    r"|TORCHELASTIC_\w{1,120}|PMI\w{0,120}_\w{1,120}|PMIX_\w{1,120}|OMPI_\w{1,120}|MPI_LOCAL\w{1,120}|PRTE_\w{1,120}|MV2_COMM\w{1,120}|FLUX_\w{1,120}|LSB_\w{1,120}|PBS_\w{1,120}|RAY_\w{0,120}ID\w{0,120}"
    r"|RAY_\w{0,120}(?:ADDRESS|SESSION|PORT)\w{0,120}|WANDB_(?:RUN\w{0,120}|NAME|DIR|SERVICE\w{0,120}|_\w{1,120})|JOB_COMPLETION_INDEX|SLURM_\w{1,120}|SLURMD_\w{1,120}"
    r"|SBATCH_\w{1,120}|SRUN_\w{1,120}|GPU_DEVICE_ORDINAL|ROCR_VISIBLE_DEVICES|ERROR_FILE|COMPUTE_\w{1,120}|NVIDIA_VISIBLE_DEVICES"
)
_OPTIONS = words_of(
    "rdzv_endpoint rdzv_id rdzv_conf node_rank machine_rank master_addr master_port main_process_ip "
    "main_process_port local_addr log_dir nodelist w jobid job_id hostfile H host hosts world_info output "
    "error o e chdir D"
)
"""Options of launchers whose values are a run's own."""

_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<![\w.])(?:/home|/Users|/users|/u|/mnt/home|/nfs/home|/lustre/home)/[^/\s:,;'\"]{1,64}"), "~"),
    (re.compile(r"(?<![\w./])/root(?=[/:\s,;]|$)"), "~"),
    (re.compile(r"(?<![\w.])(?:/var)?/tmp(?:/[^\s:,;'\"]{1,400})?|(?<![\w.])/dev/shm/[^\s:,;'\"]{1,400}"), "<tmp>"),
    (
        re.compile(
            r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![0-9A-Za-z])"
        ),
        "<id>",
    ),
    (
        re.compile(
            r"(?<!\d)20\d\d-?[01]\d-?[0-3]\d[T _-]{1,2}[0-2]\d[:_.-]?[0-5]\d[:_.-]?[0-5]\d(?:[.,]\d{1,9})?"
            r"(?:Z|[+-]\d\d:?\d\d)?(?!\d)"
        ),
        "<time>",
    ),
    (re.compile(r"(?<![\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d{1,5})?(?![\w.])"), "<ip>"),
    (re.compile(r"(?<=[A-Za-z0-9]):(?:[1-5]\d{4}|6[0-5]\d{3})(?![\w.:])"), ":<port>"),
)


def is_own_name(name: str) -> bool:
    """Whether a setting is each run's own, by the last part of its name."""
    *parts, last = name.lower().replace("-", "_").split(".")
    return any(part in _OF_TRACKERS for part in parts) or _NAMES.fullmatch(last.lstrip("_")) is not None


def is_own_variable(name: str) -> bool:
    """Whether an environment variable is each run's own, or the shell's."""
    return _VARIABLES.fullmatch(name) is not None or "%" in name


def is_own_option(option: str) -> bool:
    """Whether an option of a command (``--rdzv-id``, ``--output-dir``) says something of this run alone."""
    name = option.lstrip("-").replace("-", "_")
    return name in _OPTIONS or is_own_name(name)


def in_one_form(value: str) -> str:
    """The value with what differs between runs in one form."""
    for pattern, instead in _FORMS:
        value = pattern.sub(instead, value)
    return value

"""Small files and lines that tell of a job, in the forms of the tools that write them."""

from __future__ import annotations

SCRIPT = """#!/bin/bash
#SBATCH --job-name=gpt7b
#SBATCH -N 4 --ntasks-per-node=1
#SBATCH --partition=h100 --account=language
# torchrun --nnodes=99 old.py
export NCCL_ALGO=Tree OMP_NUM_THREADS=8
export WANDB_API_KEY="0123456789abcdef"
MASTER=$(scontrol show hostnames $SLURM_NODELIST | head -1)
GPUS=8
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096  # wide
)
DATA_ARGS="--data-path /data/corpus-2024-10-01 --num-workers 2"
cat <<END
torchrun nothing.py --lr 1
END
srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node $GPUS --rdzv-id $SLURM_JOB_ID \\
    --rdzv-endpoint ${MASTER}:29500 pretrain_gpt.py ${MODEL_ARGS[@]} $DATA_ARGS --lr 3e-4 --bf16 \\
    --tensor-model-parallel-size 2 --save /home/bob/run1 2>&1 | tee log.txt
"""

ENVIRONMENT = """PATH=/home/bob/bin:/usr/bin
NCCL_DEBUG=INFO
RANK=3
HOSTNAME=node01
HF_TOKEN=abc
"""

PIP = """# made by pip
torch==2.5.1
NumPy==1.26.4
-e git+https://bob:pw@github.com/x/y@0123456789abcdef#egg=my_pkg
wheel @ file:///tmp/wheel.whl
"""

CONDA = """# packages in environment at /opt/conda:
#
# Name                    Version                   Build  Channel
python                    3.11.9               h955ad1f_0
nccl                      2.21.5.1             h3a97aeb_0    conda-forge
"""

SMI = """+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:18:00.0 Off |                    0 |
|   1  NVIDIA H100 80GB HBM3          On  |   00000000:2A:00.0 Off |                    0 |
"""

SCONTROL = """JobId=1234 JobName=gpt7b
   UserId=bob(1000) GroupId=bob(1000) Priority=4294 QOS=high
   JobState=RUNNING Reason=None Account=language
   Partition=h100 NodeList=n[1-4] NumNodes=4 NumTasks=32
   Command=/home/bob/launch.sbatch
"""

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: gpt-worker-0
  namespace: research
  labels: {team: language, pod-template-hash: abc, kueue.x-k8s.io/queue-name: big}
spec:
  priorityClassName: high
  containers:
  - image: registry.example/train:24.05
    command: [bash, -c, "exec torchrun --nnodes=2 train.py --lr 3e-4"]
    env: [{name: NCCL_ALGO, value: Ring}, {name: API_KEY, value: sekret}, {name: POD_IP, value: 10.0.0.1}]
    resources: {limits: {nvidia.com/gpu: 8}}
"""

NEMO = """
trainer: {num_nodes: 4, devices: 8, precision: bf16, max_steps: 100}
exp_manager: {name: x, exp_dir: /results}
model:
  micro_batch_size: 4
  tensor_model_parallel_size: 2
  num_layers: 32
  data: {data_prefix: [1, /data/a], num_workers: 2}
  optim: {name: adam, lr: 1e-4, credentials: {user: u, password: p}}
"""

TITAN = """
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 8
seq_len = 8192
[parallelism]
tensor_parallel_degree = 2
data_parallel_shard_degree = -1
[optimizer]
lr = 3e-4
"""

DEEPSPEED = """{
  "train_micro_batch_size_per_gpu": 4, "train_batch_size": "auto", "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}
}"""

HUGGING_FACE = """{
  "_name_or_path": "org/llama-8b", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "torch_dtype": "bfloat16", "transformers_version": "4.46.0"
}"""

VERL = """
actor_rollout_ref:
  model: {path: /models/qwen}
  actor: {optim: {lr: 1e-6}, megatron: {tensor_model_parallel_size: 4}, ppo_mini_batch_size: 256}
  rollout: {tensor_model_parallel_size: 2, temperature: 1.0}
data: {train_files: /data/gsm8k, train_batch_size: 1024, prompt_key: prompt}
trainer: {nnodes: 2, n_gpus_per_node: 8, experiment_name: mine}
"""

OWN = """{
  "framework": "inhouse", "command": ["torchrun", "train.py"], "world_size": 16, "layout": {"tp": 2},
  "labels": {"team": "language"}, "environment": {"RANK": "3", "NCCL_ALGO": "Tree"}, "code": {"commit": "4f0c2d9"}
}"""

MEGATRON_LINES = """using world size: 16, data-parallel size: 4
------------------------ arguments ------------------------
  adam_beta1 ...................................... 0.9
  bf16 ............................................ True
  tensor_model_parallel_size ...................... 2
  wandb_project ................................... None
  webhook_secret .................................. abcdef
  data_path ....................................... /data/corpus
  num_layers ...................................... 32
  world_size ...................................... 16
  rank ............................................ 0
-------------------- end of arguments ---------------------
node0:1:1 [0] NCCL INFO NCCL_ALGO set by environment to Tree.
NCCL version 2.21.5+cuda12.4"""

HUGGING_FACE_LINES = """10:00:00 - INFO - __main__ - Training/evaluation parameters TrainingArguments(
_n_gpu=1,
bf16=True,
hub_token=<HUB_TOKEN>,
learning_rate=5e-05,
output_dir=/tmp/x,
per_device_train_batch_size=8,
)
Model config LlamaConfig {
  "architectures": ["LlamaForCausalLM"],
  "hidden_size": 4096,
  "num_hidden_layers": 32
}"""

TITAN_LINES = """[titan] 2026-11-29 10:00:00,000 - root - INFO - Running with args: {
  "model": {"name": "llama3", "flavor": "8B"},
  "training": {"local_batch_size": 8, "seq_len": 8192},
  "parallelism": {"tensor_parallel_degree": 2}
}
[titan] 2026-11-29 10:00:01,000 - root - INFO - Model llama3 8B size: 8,030,261,248 total parameters"""

VERL_LINES = """{'actor_rollout_ref': {'actor': {'optim': {'lr': 1e-06},
                                 'ppo_mini_batch_size': 256},
                       'model': {'path': '/models/qwen'},
                       'rollout': {'tensor_model_parallel_size': 2}},
 'data': {'train_files': '/data/gsm8k (it\\'s)'},
 'trainer': {'nnodes': 2, 'n_gpus_per_node': 8}}"""

NEMO_LINES = """[NeMo I 2026-11-29 10:00:00 pretrain:30]
    ************** Experiment configuration ***********
[NeMo I 2026-11-29 10:00:00 pretrain:31]
    trainer:
      num_nodes: 2
      devices: 8
      precision: bf16
    model:
      micro_batch_size: 4
      num_layers: 12
      hidden_size: 768
[NeMo I 2026-11-29 10:00:01 pretrain:40] begins"""

DEEPSPEED_LINES = """[2026-11-29 10:00:00,000] [INFO] [config.py:1001:print] DeepSpeedEngine configuration:
[2026-11-29 10:00:00,000] [INFO] [config.py:1005:print]   train_batch_size ............. 32
[2026-11-29 10:00:00,000] [INFO] [config.py:1005:print]   zero_enabled ................. True
[2026-11-29 10:00:00,000] [INFO] [config.py:990:print_user_config]   json = {
    "train_micro_batch_size_per_gpu": 4,
    "zero_optimization": {"stage": 3},
    "gradient_clipping": 1.0
}
[2026-11-29 10:00:00,000] [INFO] [runner.py:568:main] cmd = python3 -u -m deepspeed.launcher.launch --master_port=2 t.py
+ export NCCL_IB_HCA=mlx5"""

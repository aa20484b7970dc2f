# ruff: noqa: E501 (lines stand here as they are printed)
"""What frameworks say when a phase begins or ends, and sentences that hold the same words."""

from __future__ import annotations

HF = "[INFO|trainer.py:2134] 2026-05-18 16:04:46,338 >> "
DS = "[2023-07-24 13:21:33,263] [INFO] [logging.py:96:log_dist] "
TITAN = "[rank0]:[titan] 2026-05-18 16:04:46,338 - root - INFO - "

TURNS = [
    ("saving checkpoint at iteration    1000 to /ckpt in torch_dist format", "checkpoint"),
    ("  successfully saved checkpoint from iteration    1000 to /ckpt [ t 1/1, p 1/1 ]", "train"),
    (" loading checkpoint from /ckpt at iteration 1000", "checkpoint"),
    ("  successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 1000", "train"),
    ("[before the start of training step] datetime: 2026-11-29 19:15:29 ", "train"),
    (" validation loss at iteration 1000 | lm loss value: 2.1E+00 | lm loss PPL: 8.2E+00 | ", "train"),
    ("[after training is done] datetime: 2026-11-29 19:15:29 ", "shutdown"),
    (DS + "[Rank 0] [Torch] Checkpoint global_step10 is about to be saved!", "checkpoint"),
    (DS + "[Rank 0] Saving model checkpoint: /ckpt/global_step10/mp_rank_00_model_states.pt", "checkpoint"),
    (
        "[2023-07-24 13:21:33,263] [INFO] [torch_checkpoint_engine.py:21:save] [Torch] Saving /ckpt/global_step10/mp_rank_00_model_states.pt...",
        "checkpoint",
    ),
    (
        "[2023-07-24 13:21:33,296] [INFO] [torch_checkpoint_engine.py:33:commit] [Torch] Checkpoint global_step10 is ready now!",
        "train",
    ),
    (
        "[NeMo I 2025-04-11 14:46:18 nemo_logging:393] Successfully saved checkpoint from iteration      99 to /ckpt",
        "train",
    ),
    ("Validation: iteration 3/8", "evaluation"),
    (TITAN + "Training starts at step 1", "train"),
    (TITAN + "Saving the checkpoint (or staging if async is enabled).", "checkpoint"),
    (TITAN + "Saving a full checkpoint at last step, step 1000.", "checkpoint"),
    (TITAN + "Finished saving the checkpoint (or staging if async is enabled)in 12.34 seconds.", "train"),
    (TITAN + "Loading the checkpoint from /ckpt/step-10.", "checkpoint"),
    (TITAN + "Finished loading the checkpoint in 1.20 seconds.", "train"),
    (TITAN + "Training completed", "shutdown"),
    (TITAN + "Process group destroyed", "shutdown"),
    (HF + "***** Running training *****", "train"),
    (HF + "Saving model checkpoint to /out/checkpoint-500", "checkpoint"),
    (HF + "Deleting older checkpoint [/out/checkpoint-100] due to args.save_total_limit", "train"),
    (HF + "***** Running Evaluation *****", "evaluation"),
    (HF + "***** Running Prediction *****", "evaluation"),
    ("{'eval_loss': '2.1', 'eval_runtime': '12.3', 'epoch': '1.0'}", "train"),
    ("{'train_runtime': 120.5, 'train_samples_per_second': 8.3, 'epoch': 3.0}", "shutdown"),
    ("Training completed. Do not forget to share your model on huggingface.co/models =)", "shutdown"),
    (
        "03/03/2025 05:18:41 - INFO - accelerate.accelerator - Saving current state to /out/checkpoint-3000",
        "checkpoint",
    ),
    (
        "03/03/2025 05:18:41 - INFO - accelerate.checkpointing - Random states saved in /out/random_states_0.pkl",
        "train",
    ),
    ("Sanity Checking DataLoader 0:  50%|█████     | 1/2 [00:00<00:00,  9.1it/s]", "evaluation"),
    ("Validation DataLoader 0:  40%|████      | 4/10 [00:00<00:00,  9.1it/s]", "evaluation"),
    ("Validation:  40%|████      | 4/10 [00:00<00:00,  9.1it/s]", "evaluation"),
    ("`Trainer.fit` stopped: `max_steps=100` reached.", "shutdown"),
    ("(TaskRunner pid=222265) local_global_step_folder: /ckpt/global_step_10", "checkpoint"),
    ("(TaskRunner pid=222265) Initial validation metrics: {'val/acc': 0.2}", "train"),
    ("(TaskRunner pid=222265) 'Final validation metrics: {'val/acc': 0.7}'", "shutdown"),
    ("INFO 11-29 12:00:00 ppo_trainer.py:547] ✨ Evaluation completed in 12.3s, global_step 12", "train"),
]
"""A line and the phase that it begins."""

SENTENCES = [
    "we stop as soon as training is done",
    "set --save to keep what was saved after training completed",
    "saving checkpoints every 500 steps",
    "Saving checkpoint every 500 steps",
    "saving checkpoint is disabled",
    "the last saved checkpoint is three days old",
    "Saved checkpoint will be removed",
    "checkpoint activations in every layer",
    "checkpointing is off, validation every 1000 iterations",
    "will be running evaluation after each epoch",
    "Running evaluation every 100 steps",
    "evaluation strategy: steps",
    "***** train metrics *****",
    "***** eval metrics *****",
    "eval_steps=500, eval_iters=10",
    "training ...",
    "args.validation_split 0.1 - checkpoint_activations: false",
    "Loading shards of training data",
    "saving memory by offloading",
    "skip downloading, all files are there",
    "downloading is disabled",
    "[Torch] Saving failed",
]
"""Lines that begin no phase."""

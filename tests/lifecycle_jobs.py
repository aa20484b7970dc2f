"""Synthetic jobs that end otherwise than by a fault of theirs, or that do, and are stopped besides."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streams_support import RANKS_PER_NODE, TRACEBACK, Script, agent, at, hanging, node_of, pid_of, worker

from schemas.events import Metric

RANKS = 8
NODES = tuple(sorted({node_of(rank) for rank in range(RANKS)}))
TERMINATED = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 90, in train\n'
    "    loss = model(batch)\n"
    '  File "/venv/torch/distributed/elastic/multiprocessing/api.py", line 86, in _terminate_process_handler\n'
    '    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)\n'
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 1000 got signal: 15"
)
INTERRUPTED = (
    "Traceback (most recent call last):\n"
    '  File "/job/train.py", line 90, in train\n'
    "    loss = model(batch)\n"
    "KeyboardInterrupt"
)
LOST = "[rank{0}]: RuntimeError: Connection closed by peer [10.0.0.{0}]:4711"
ABORTED = (
    "[rank{0}]:[E1129 12:00:00.000 ProcessGroupNCCL.cpp:1316] [PG 0 Rank {0}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
)
OLD_SIGTERM = "Received 15 death signal, shutting down workers"
SIGTERM = "Received Signals.SIGTERM death signal, shutting down workers"
DUMPED = "Fatal Python error: Aborted"
SLURM = "slurmstepd: error: *** {} ON {} CANCELLED AT 2026-11-29T18:11:01{} ***"


def training(job: str = "job", last: int = 30, alive: int | None = None) -> Script:
    """All train until second ``last``, their processes live on until ``alive``."""
    script = Script(job)
    script.start(RANKS)
    script.train(RANKS, 1, last)
    script.alive(RANKS, 0, alive or last + 4)
    return script


def after_it(script: Script, second: float, ranks: Iterable[int] = range(RANKS)) -> Script:
    """What ranks print while they are torn down: lost peers, a watchdog, dumps of SIGABRT."""
    for rank in ranks:
        said = (LOST, ABORTED, DUMPED)[rank % 3].format(rank)
        script.log(worker(script.job, rank), second + rank / 10, said)
    return script


def failed(script: Script, second: float, codes: dict[int, int]) -> Script:
    """Launchers report the ends of workers."""
    for rank, code in codes.items():
        local, pid = rank % RANKS_PER_NODE, pid_of(rank)
        text = f"failed (exitcode: {code}) local_rank: {local} (pid: {pid}) of binary: python"
        script.log(agent(script.job, node_of(rank)), second + rank / 10, text)
    return script


def by_slurm(*lines: str, job: str = "job", second: float = 31.0, torn: bool = True) -> Script:
    """Slurm ends the job: what its step daemons and srun print stands in the launcher's log of the first node."""
    script = training(job)
    for number, line in enumerate(lines):
        script.log(agent(job, NODES[0]), second + number / 10, line)
    for rank in range(RANKS):
        script.log(worker(job, rank), second + 0.3 + rank / 100, TERMINATED)
    return after_it(script, second + 0.5) if torn else script


def by_agents(said: str, nodes: Iterable[str] = NODES, second: float = 31.0) -> Script:
    """torchrun's agents are told to stop and tell their workers."""
    script = training()
    for node in nodes:
        script.log(agent(script.job, node), second, said)
        for rank in range(RANKS):
            if node_of(rank) == node:
                text = f"Sending process {pid_of(rank)} closing signal SIGTERM"
                script.log(agent(script.job, node), second + 0.1 + rank / 100, text)
    return script


def interrupted() -> Script:
    """Everybody is interrupted at once, and no launcher says anything."""
    script = training()
    for rank in range(RANKS):
        script.log(worker("job", rank), 31 + rank / 20, INTERRUPTED)
    return script


def by_ranks(said: str, ranks: Iterable[int] = range(RANKS)) -> Script:
    """Ranks handle the signal: they say so, and end some time later."""
    script = training(alive=60)
    for rank in ranks:
        script.log(worker("job", rank), 31 + rank / 10, said.format(rank))
    return after_it(script, 45)


def lone(
    said: str = SIGTERM, *, torn: bool = True, until: int = 70, codes: int | None = None, word_s: float = 31.0
) -> Script:
    """The agent of one node alone is told to end; the other ranks live on until they lose their peers."""
    script = training(alive=31)
    gone = [rank for rank in range(RANKS) if node_of(rank) == NODES[2]]
    rest = [rank for rank in range(RANKS) if rank not in gone]
    for node in NODES:
        script.log(agent("job", node), 0.1, "Starting elastic_operator with launch configs:")
    script.log(agent("job", NODES[2]), word_s, said)
    for rank in gone:
        script.log(agent("job", NODES[2]), word_s + 0.1, f"Sending process {pid_of(rank)} closing signal SIGTERM")
    for second in range(32, until, 4):
        for rank in rest:
            metric = Metric(time=at(second + 0.3), name="cpu_percent", value=95.0, pid=pid_of(rank))
            script.send(worker("job", rank), metric)
    if codes is not None:
        failed(script, 33, dict.fromkeys(rest, codes))
    return after_it(script, word_s + 0.5, rest) if torn else script


def drained_then_ended() -> Script:
    """One agent is told to end, and a minute later all others are."""
    script = lone(until=100)
    for node in NODES:
        if node != NODES[2]:
            script.log(agent("job", node), 90, SIGTERM)
    return script


def node_failed(*lines: str) -> Script:
    """A node fails; Slurm says so, and ends what runs on the others."""
    script = training(alive=31)
    for number, line in enumerate(lines):
        script.log(agent("job", NODES[0]), 31 + number / 10, line)
    rest = [rank for rank in range(RANKS) if node_of(rank) != NODES[2]]
    for rank in rest:
        script.log(worker("job", rank), 31.5 + rank / 100, TERMINATED)
    return after_it(script, 32, rest)


def lost_before(second: float = 39.0) -> Script:
    """Ranks lose each other in the window before that in which the job is said to be cancelled."""
    script = training(last=38, alive=44)
    after_it(script, second, range(0, RANKS, 3))
    for line in CANCELLED:
        script.log(agent("job", NODES[0]), 41.0, line)
    return script


def own_error(script: Script, rank: int, second: float) -> Script:
    script.log(worker(script.job, rank), second, TRACEBACK)
    return script


def done(word: str, ranks: Iterable[int] = range(RANKS), second: float = 150) -> Script:
    """Training comes to its end, the processes do not; some ranks print a word of it two minutes later."""
    script = Script("job")
    script.start(RANKS)
    for step in range(1, 31):
        elapsed = f"elapsed time per iteration (ms): 1000.{step % 10}"
        script.log(worker("job", 0), step + 0.5, f"iteration {step:8d}/ 30 | {elapsed} | lm loss: 2.0E+00 |", step)
    script.alive(RANKS, 0, 170)
    for rank in ranks:
        script.log(worker("job", rank), second + rank / 10, word.format(rank))
    return script


def node_by_node(every: int = 25) -> Script:
    """The agents are told to end one after another, and each node lives on until its own is."""
    script = Script("job")
    script.start(RANKS)
    script.train(RANKS, 1, 30)
    for number, node in enumerate(NODES):
        script.log(agent("job", node), 0.1, "Starting elastic_operator with launch configs:")
        end = 31 + number * every
        for second in range(0, end, 4):
            for rank in range(RANKS):
                if node_of(rank) == node:
                    metric = Metric(time=at(second + 0.3), name="cpu_percent", value=95.0, pid=pid_of(rank))
                    script.send(worker("job", rank), metric)
        script.log(agent("job", node), end, SIGTERM)
    script.log(agent("job", NODES[0]), 150, "bye")
    return script


def hung_after_a_sample() -> Script:
    """A rank prints text about a job that was cancelled, a second before rank 5 begins to load for ever."""
    script = training(alive=70)
    script.log(worker("job", 1), 29.9, f"sample 7: {CANCELLED[1]} what happened to my job?")
    script.stacks(RANKS, range(35, 70, 10), 5)
    return script


JOB, STEP = "JOB 77", "STEP 77.0"
CANCELLED = (SLURM.format(STEP, NODES[0], ""), SLURM.format(JOB, NODES[0], ""))
LIMIT, PREEMPTED, REQUEUED = (" DUE TO TIME LIMIT", " DUE TO PREEMPTION", " DUE TO JOB REQUEUE")
NODE_FAILURE = " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS"

STOPPED: dict[str, Callable[[], Script]] = {
    "scancel": lambda: by_slurm(*CANCELLED),
    "scancel, told by srun": lambda: by_slurm("srun: Force Terminated job 77", CANCELLED[0]),
    "scancel, told by srun of now": lambda: by_slurm("srun: Force Terminated StepId=77.0", CANCELLED[0]),
    "scancel of the step": lambda: by_slurm(CANCELLED[0]),
    "time limit": lambda: by_slurm(SLURM.format(STEP, NODES[0], LIMIT), SLURM.format(JOB, NODES[0], LIMIT)),
    "cancelled, some of it heard before": lost_before,
    "time limit of an older Slurm": lambda: by_slurm(
        "slurmstepd: error: *** JOB 77 CANCELLED AT 2026-11-29T18:11:01 DUE TO TIME LIMIT on node00 ***"
    ),
    "time limit, told by salloc": lambda: by_slurm(
        "salloc: Job 77 has exceeded its time limit and its allocation has been revoked."
    ),
    "preempted": lambda: by_slurm(SLURM.format(JOB, NODES[0], PREEMPTED)),
    "requeued": lambda: by_slurm(SLURM.format(JOB, NODES[0], REQUEUED)),
    "agents": lambda: by_agents(OLD_SIGTERM),
    "agents of now": lambda: by_agents(SIGTERM),
    "agents, by hand": lambda: by_agents("Received Signals.SIGINT death signal, shutting down workers"),
    "agents, torn down": lambda: after_it(by_agents(SIGTERM), 33),
    "agents that failed after it": lambda: failed(by_agents(SIGTERM), 33, dict.fromkeys(range(RANKS), -6)),
    "agents say no more than whom they end": lambda: by_agents("leaving"),
    "agents, one after another": node_by_node,
    "interrupted": interrupted,
    "done, and peers go away": lambda: done(LOST),
    "done, and some wait for who goes away": lambda: done(ABORTED, range(4)),
    "interrupted, torn down": lambda: after_it(interrupted(), 32.5),
    "ends by SIGTERM": lambda: failed(training(), 31, dict.fromkeys(range(RANKS), -15)),
    "ends by 143": lambda: failed(training(), 31, dict.fromkeys(range(RANKS), 143)),
    "ends by SIGUSR1": lambda: failed(training(), 31, dict.fromkeys(range(RANKS), -10)),
    "ranks say so themselves": lambda: by_ranks("[rank: {0}] Received SIGTERM: 15"),
    "ranks say so themselves and save": lambda: by_ranks("rank {0} received signal 10, will save and exit"),
    "the job says so itself": lambda: by_ranks(
        "[exiting program after receiving SIGTERM.] datetime: 2026-11-29 18:11:01 ", [0]
    ),
}


def hung_then(*lines: str, second: float = 71.0) -> Script:
    script = hanging("job")
    for line in lines:
        script.log(agent("job", NODES[0]), second, line)
    return after_it(script, second + 0.5)


def failed_then(*lines: str, second: float = 33.0) -> Script:
    """Rank 4 fails by an error of its own and the others by its loss; then the launcher says these lines."""
    script = own_error(training(), 4, 30.8)
    after_it(script, 31.5, [rank for rank in range(RANKS) if rank != 4])
    for number, line in enumerate(lines):
        script.log(agent("job", NODES[0]), second + number / 10, line)
    return script


def alone_by_signal(code: int) -> Script:
    """One rank ends by a signal that nobody sent, the others lose it."""
    script = failed(training(alive=31), 31, {3: code})
    for second in range(32, 70, 4):
        for rank in set(range(RANKS)) - {3}:
            metric = Metric(time=at(second + 0.3), name="cpu_percent", value=95.0, pid=pid_of(rank))
            script.send(worker("job", rank), metric)
    return after_it(script, 31.5, [rank for rank in range(RANKS) if rank != 3])


def outlived(word: str) -> Script:
    """A word to end that the job outlives by a minute, before it hangs."""
    script = training(last=90, alive=140)
    script.log(agent("job", NODES[0]), 20, word)
    return script


def hanging_on(said: str, ranks: Iterable[int] = range(RANKS), until: int = 300) -> Script:
    """Ranks say that they were told to end, but rank 5 loads for ever and its peers wait for it."""
    script = training(alive=until)
    for rank in ranks:
        script.log(worker("job", rank), 31 + rank / 10, said.format(rank))
    script.stacks(RANKS, range(35, until, 15), 5)
    return script


def hanging_through(word: str, second: float = 100) -> Script:
    """Rank 5 loads for ever, and the job is told to end and does not."""
    script = training(alive=400)
    script.stacks(RANKS, range(35, 400, 15), 5)
    script.log(agent("job", NODES[0]), second, word)
    return script


def killed_hanging(second: float) -> Script:
    """Rank 5 loads for ever and its peers wait for it until all are ended by SIGTERM at once."""
    script = training(alive=int(second))
    script.stacks(RANKS, range(35, int(second), 5), 5)
    return failed(script, second, dict.fromkeys(range(RANKS), -15))


def failed_as_its_step_ended(gap: float = 0.8) -> Script:
    """Rank 5 fails, srun says so in one file, and the step's end stands in that of another node."""
    script = own_error(training(alive=31), 5, 31)
    for rank in set(range(RANKS)) - {5}:
        script.log(worker("job", rank), 31 + gap + 0.3 + rank / 50, LOST.format(rank))
    script.log(agent("job", NODES[0]), 30.9 + gap, "srun: error: node02: task 5: Exited with exit code 1")
    script.log(agent("job", NODES[3]), 31 + gap, CANCELLED[0])
    script.log(agent("job", NODES[0]), 80, "bye")
    return script


def failed_as_agents_were_told() -> Script:
    """Both ranks of a node fail, and the agents of all others are told at once."""
    script = training(alive=31)
    for node in NODES:
        script.log(agent("job", node), 0.1, "Starting elastic_operator with launch configs:")
    for rank in (4, 5):
        own_error(script, rank, 31)
    for node in set(NODES) - {NODES[2]}:
        script.log(agent("job", node), 31.9, SIGTERM)
    after_it(script, 32.4, set(range(RANKS)) - {4, 5})
    script.log(agent("job", NODES[0]), 80, "bye")
    return script


FAULTS: dict[str, tuple[Callable[[], Script], str, list[int]]] = {
    "hung, then cancelled": (lambda: hung_then(*CANCELLED), "hang", [5]),
    "failed, then cancelled": (lambda: failed_then(*CANCELLED), "crash", [4]),
    "failed, then its step ended": (lambda: failed_then(CANCELLED[0]), "crash", [4]),
    "failed, told by srun, step ended": (
        lambda: failed_then("srun: error: node02: task 4: Exited with exit code 1", CANCELLED[0], second=31.0),
        "crash",
        [4],
    ),
    "failed as its step ended": (failed_as_its_step_ended, "crash", [5]),
    "failed as its step ended, long after": (lambda: failed_as_its_step_ended(2), "crash", [5]),
    "failed as agents were told": (failed_as_agents_were_told, "crash", [4, 5]),
    "failed, then agents told": (lambda: failed_then(SIGTERM, second=39.0), "crash", [4]),
    "a node drained": (lone, "crash", [4, 5]),
    "a node drained, others hang": (lambda: lone(OLD_SIGTERM, torn=False), "crash", [4, 5]),
    "a node drained, others fail": (lambda: lone(until=41, codes=1), "crash", [4, 5]),
    "a node drained, the job ended later": (drained_then_ended, "crash", [4, 5]),
    "a node failed": (lambda: node_failed(SLURM.format(STEP, NODES[0], NODE_FAILURE)), "crash", []),
    "a node failed, by name": (
        lambda: node_failed("srun: error: Node failure on node02", SLURM.format(JOB, NODES[0], "")),
        "crash",
        [],
    ),
    "one killed": (lambda: alone_by_signal(-9), "crash", [3]),
    "one told to end": (lambda: alone_by_signal(-15), "hang", []),
    "hung, then ended in the window that shows it": (lambda: killed_hanging(62.5), "hang", [5]),
    "done, and all but one wait in vain": (lambda: done(ABORTED, set(range(RANKS)) - {5}), "hang", []),
    "hung after a printed sample": (hung_after_a_sample, "hang", [5]),
    "hung, and told to save": (lambda: hanging_on("Received SIGUSR1, saving a checkpoint"), "hang", [5]),
    "hung, and told to save by number": (lambda: hanging_on("Caught signal 10, saving before requeue"), "hang", [5]),
    "hung, and told to end for minutes": (lambda: hanging_on("[rank: {0}] Received SIGTERM: 15"), "hang", [5]),
    "hung, and the job was ended for minutes": (lambda: hanging_on(CANCELLED[1], [0]), "hang", [5]),
    "hung, then ended in vain": (lambda: hanging_through(CANCELLED[1]), "hang", [5]),
    "hung a minute after it was ended": (lambda: outlived(CANCELLED[1]), "hang", []),
}
"""Jobs that had a fault, however they were ended; the symptom, and who is named."""

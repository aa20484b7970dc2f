# ruff: noqa: E501 (real lines stand here as they are printed)
"""Lines of each predefined template: id, role, the text, and what is to be extracted from it.

Sources: PyTorch's ProcessGroupNCCL.cpp and issues 118369, 121209; NCCL's src/transport/net_ib; Megatron-LM; kernel lines
from github.com/leptonai/gpud test data, commit 4a8de33a3f02e207f39e9023d67125592d599731 (Apache-2.0), marked *gpud*;
node-problem-detector's kernel-monitor; Lustre's and IBM Storage Scale's messages. Others are those sources' own format
strings, filled in.
"""

from __future__ import annotations

HEAD = 'Traceback (most recent call last):\n  File "/workspace/train.py", line 110, in step\n    raise error\n'

Sample = tuple[str, str, str, dict[str, str]]

LINES: list[Sample] = [
    ("slurm.task_crashed", "candidate", "srun: error: node01: task 2: Segmentation fault (core dumped)", {"node": "node01", "task": "2"}),
    ("slurm.task_crashed", "candidate", "srun: error: gpu-07.cluster: tasks 0-3,6: Bus error", {"task": "0-3,6", "end": "Bus error"}),
    ("slurm.out_of_memory", "candidate", "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.", {"events": "1"}),
    ("slurm.out_of_memory", "candidate", "srun: error: node01: task 2: Out Of Memory", {"node": "node01"}),
    ("slurm.task_ended", "confirmation", "srun: error: node01: tasks 0-1: Exited with exit code 1", {"end": "Exited with exit code 1"}),
    ("slurm.task_ended", "confirmation", "srun: error: node02: task 3: Killed", {"task": "3"}),
    ("slurm.node_failed", "candidate", "srun: error: Node failure on jean-zay-iam49", {"node": "jean-zay-iam49"}),
    ("slurm.node_failed", "candidate", "slurmstepd: error: *** STEP 77.0 ON node01 CANCELLED AT 2026-11-29T18:10:59 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***", {}),
    ("launcher.told_to_stop", "confirmation", "W0616 00:37:22.830000 4015698 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers", {}),
    ("slurm.cancelled", "confirmation", "slurmstepd: error: *** STEP 77.0 ON node01 CANCELLED AT 2026-11-29T18:10:59 ***", {"number": "77.0"}),
    ("gloo.timeout", "cascade", "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:129] Timed out waiting 25000ms for send operation to complete", {}),
    ("nccl.watchdog_timeout", "cascade", "[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, NumelOut=466119168, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.", {"sequence": "1580", "operation": "ALLREDUCE"}),
    ("nccl.watchdog_timeout", "cascade", "[E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1806103 milliseconds before timing out.", {"sequence": "2", "operation": "_ALLGATHER_BASE"}),
    ("nccl.watchdog_failure", "cascade", "[PG ID 0 PG GUID 0(default_pg) Rank 1]  failure detected by watchdog at work sequence id: 2635 PG status: last enqueued work: 2635, last completed work: 2634", {"group": "0(default_pg)", "rank": "1", "sequence": "2635", "enqueued": "2635", "completed": "2634"}),
    ("nccl.watchdog_exception", "cascade", "[PG 1 Rank 0] Exception (either an error or timeout) detected by watchdog at work: 808, last enqueued NCCL work: 811, last completed NCCL work: 807.", {"group": "1", "rank": "0", "sequence": "808", "enqueued": "811", "completed": "807"}),
    ("nccl.heartbeat_timeout", "cascade", "[PG ID 0 PG GUID 0 Rank 1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.", {"group": "0", "rank": "1"}),
    ("nccl.heartbeat_timeout", "cascade", "[PG ID 0 PG GUID 0 Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=0", {}),
    ("nccl.dump_signal", "confirmation", "[PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from  rank 1 and we will try our best to dump the debug info.", {"rank": "3"}),
    ("nccl.remote_error", "cascade", "[2026-11-29 12:00:00] node1:101:214 [0] transport/net_socket.cc:512 NCCL WARN socketProgress: Connection closed by remote peer node2<40213>", {}),
    ("nccl.remote_error", "cascade", "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", {}),
    ("nccl.aborted", "cascade", "NCCL communicator was aborted on rank 3. Original reason for failure was: watchdog", {}),
    ("nccl.ib_completion", "cascade", "[2026-11-29 12:00:00] host:8514:8601 [0] transport/net_ib/p2p.cc:688 (ncclIbTest) NCCL WARN NET/IB: Got completion from peer 10.0.0.2<40213> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0 len=0 vendor_err=129 (Recv) hca mlx5_0", {"peer": "10.0.0.2<40213>", "status": "IBV_WC_RETRY_EXC_ERR", "device": "mlx5_0"}),
    ("nccl.ib_completion", "cascade", "node1:101:214 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<40213> with error 12, opcode 0, len 0, vendor err 129", {"status": "12"}),
    ("gloo.connection_closed", "cascade", "[pair.cc:553] Connection closed by peer [127.0.0.1]:11662. This is typically caused by a remote worker crashing.", {}),
    ("store.connection_lost", "cascade", "[rank3]:[W1129 18:15:22.525816018 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl: failed to recv, got 0 bytes", {}),
    ("cuda.out_of_memory", "candidate", "2026-11-29 18:15:13,942 [ERROR] CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.2 GiB is free.", {"requested": "2.00 GiB", "device": "0"}),
    ("gpu.ecc_uncorrectable", "candidate", "CUDA error: uncorrectable ECC error encountered", {}),
    ("nccl.device_fatal", "candidate", "[2026-11-29 12:00:00] host:8514:8601 [0] transport/net_ib/init.cc:90 NCCL WARN NET/IB : mlx5_0:1 async fatal event: local catastrophic error", {"device": "mlx5_0", "port": "1"}),
    ("nccl.watchdog_cuda_error", "candidate", "[PG ID 0 PG GUID 0(default_pg) Rank 5] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered", {"rank": "5"}),
    ("nccl.watchdog_terminated", "cascade", "[Rank 5] NCCL watchdog thread terminated with exception: NCCL error: unhandled system error", {}),
    ("torch.process_group", "cascade", "terminate called after throwing an instance of 'c10::DistBackendError'", {}),
    ("nccl.corrupted_data", "advice", "[Rank 0] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.", {}),
    ("nccl.taken_down", "confirmation", "[Rank 0] To avoid data inconsistency, we are taking the entire process down.", {}),
    ("nccl.first_to_dump", "advice", "[PG ID 0 PG GUID 0(default_pg) Rank 0] First PG on this rank to signal dumping.", {"group": "0(default_pg)"}),
    ("nccl.no_stack_trace", "advice", "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.", {}),
    ("cuda.asynchronous", "advice", "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.", {}),
    ("nccl.async_event", "confirmation", "host:8514:8601 [0] transport/net_ib/init.cc:96 NCCL WARN NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)", {"device": "mlx5_0", "port": "1"}),
    ("nccl.async_event", "confirmation", "host:8514:8601 [0] NCCL WARN NET/IB : mlx5_0:1 async fatal event on QP (0x7f00): local work queue catastrophic error", {}),
    ("nccl.warning", "confirmation", "[2026-11-29 12:00:00] host:8514:8601 [0] misc/cudawrap.cc:188 (initOnce) NCCL WARN Cuda failure 'API call is not supported in the installed CUDA driver'", {}),
    ("sxid.12028", "confirmation", "detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61", {"code": "12028", "pci": "0000:86:00.0", "port": "61", "severity": "non-fatal"}),
    ("sxid.19084", "candidate", "detected NVSwitch fatal error 19084 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61", {"code": "19084", "pci": "0000:86:00.0", "port": "61", "severity": "fatal"}),
    ("python.fatal_error", "confirmation", "Fatal Python error: Segmentation fault", {"signal": "Segmentation fault"}),
    ("checkpoint.saved", "confirmation", "  successfully saved checkpoint from iteration    1000 to /ckpt/run1 [ t 1/8, p 1/1 ]", {"iteration": "1000"}),
    ("checkpoint.saving", "confirmation", "saving checkpoint at iteration    1000 to /ckpt/run1 in torch_dist format", {"iteration": "1000"}),
    ("checkpoint.loaded", "confirmation", "  successfully loaded checkpoint from /ckpt/run1 [ t 1/8, p 1/1 ] at iteration 1000", {"iteration": "1000"}),
    ("checkpoint.loading", "confirmation", " loading distributed checkpoint from /ckpt/run1 at iteration 1000", {"iteration": "1000"}),
    ("launcher.child_failed", "confirmation", "Root Cause (first observed failure):", {}),
    ("launcher.worker_failed", "confirmation", "E0801 13:23:17.366000 32974 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -9) local_rank: 1 (pid: 78971) of binary: /opt/venv/bin/python", {"exitcode": "-9", "local_rank": "1", "pid": "78971"}),
    ("launcher.closing_signal", "confirmation", "W0801 13:23:17.366000 32974 torch/distributed/elastic/multiprocessing/api.py:900] [0/0] Sending process 33110 closing signal SIGTERM", {"pid": "33110", "signal": "SIGTERM"}),
    ("launcher.told_to_stop", "confirmation", "[2026-11-29 18:15:13,942] torch.distributed.elastic.agent.server.api: [WARNING] Received 15 death signal, shutting down workers", {}),
    ("host.oom_memcg", "candidate", "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=cri-containerd-3fc28fa1c647ceede9f6b340d0b16c9f1f663698972d22a52e296f291638e014.scope,mems_allowed=0-1,oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1,task=python3,pid=4242,uid=0", {"constraint": "CONSTRAINT_MEMCG", "pid": "4242", "cgroup": "/kubepods/pod1"}),
    ("host.oom_memcg", "candidate", "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:9000kB, anon-rss:8000kB, file-rss:10kB, shmem-rss:0kB", {"pid": "4242"}),
    ("host.oom_memcg", "candidate", "kern  :warn  : 2025-01-21T08:42:30,287197+00:00 oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),", {"constraint": "CONSTRAINT_MEMCG"}),  # gpud
    ("host.oom_node", "candidate", "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg=/user.slice,task=python3,pid=4242,uid=0", {"constraint": "CONSTRAINT_NONE", "pid": "4242"}),
    ("host.oom_node", "candidate", "kern  :warn  : 2025-01-21T08:43:30,287197+00:00 Out of memory: Killed process 123, UID 48, (httpd)", {"pid": "123"}),  # gpud
    ("host.oom_node", "candidate", "kern  :warn  : 2025-01-21T08:44:30,287197+00:00 Out of memory: Kill process 456 (python) score 50 or sacrifice child", {"pid": "456"}),  # gpud
    ("host.oom_invoked", "confirmation", "python3 invoked oom-killer: gfp_mask=0x100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0", {}),
    ("host.oom_invoked", "confirmation", "kern  :warn  : 2025-01-21T08:41:30,287197+00:00 oom_reaper: reaped process 345646 (vector), now anon-rss:0kB, file-rss:0kB, shmem-rss:0", {"pid": "345646"}),  # gpud
    ("host.hung_task", "confirmation", "INFO: task python3:1234 blocked for more than 120 seconds.", {"pid": "1234", "seconds": "120"}),
    ("host.soft_lockup", "candidate", "watchdog: BUG: soft lockup - CPU#4 stuck for 21s! [python3:1234]", {"device": "4", "seconds": "21"}),
    ("host.rcu_stall", "candidate", "rcu: INFO: rcu_sched self-detected stall on CPU", {}),
    ("host.rcu_stall", "candidate", "[ 3098.275469] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", {}),
    ("host.panic", "candidate", "<0>[ 3098.275469] Kernel panic - not syncing: Test panic triggered by crash_test module", {}),  # gpud
    ("host.segfault", "confirmation", "kern  :warn  : 2025-01-21T04:41:44,285060+00:00 pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in libnccl.so.2[7f7c7ac00000+d3d3000]", {"pid": "2536443", "library": "libnccl.so.2"}),  # gpud
    ("memory.uncorrected", "candidate", "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0", {"device": "MC0"}),
    ("memory.corrected", "confirmation", "EDAC MC1: 3 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0", {"device": "MC1"}),
    ("xid.94", "candidate", "[2397166.983093] NVRM: Xid (PCI:0000:0f:00): 94, pid=2503421, name=python3, Ch 00000008", {"code": "94", "pci": "0000:0f:00.0", "pid": "2503421"}),
    ("xid.79", "candidate", "NVRM: Xid (PCI:0000:05:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", {"code": "79", "pci": "0000:05:00.0"}),
    ("xid.64", "candidate", "NVRM: Xid (PCI:0000:9b:00): 64, pid='<unknown>', name=<unknown>, Row Remapper Error: (0x0000) - All reserved rows for bank are remapped", {"code": "64", "pci": "0000:9b:00.0"}),
    ("xid.149", "candidate", "NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000)", {"code": "149", "pci": "0000:04:00.0"}),
    ("xid.154", "confirmation", "NVRM: Xid (PCI:0000:04:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", {"code": "154"}),
    ("xid.45", "confirmation", "NVRM: Xid (PCI:0000:04:00): 45, pid=1818990, name=python3, Ch 00000001 caused by previous Xid 149", {"code": "45", "pid": "1818990", "previous": "149"}),
    ("xid.31", "candidate", "NVRM: Xid (PCI:0000:44:00): 31, pid=2512125, name=python3.10, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS", {"code": "31", "pci": "0000:44:00.0"}),
    ("xid.43", "confirmation", "kern  :warn  : 2025-01-21T04:41:44,287197+00:00 NVRM: Xid (PCI:0000:38:00): 43, pid=2924364, name=pt_main_thread, Ch 00000008", {"code": "43", "pci": "0000:38:00.0"}),  # gpud
    ("xid.119", "candidate", "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4).", {"code": "119", "pid": "2024380"}),  # gpud
    ("xid.999", "candidate", "NVRM: Xid (0002:44:00): 999, something new", {"code": "999", "pci": "0002:44:00.0"}),
    ("sxid.12028", "confirmation", "nvidia-nvswitch2: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 61 egress non-posted PRIV error (First)", {"code": "12028", "pci": "0000:85:00.0", "device": "nvidia-nvswitch2", "severity": "Non-fatal", "port": "61"}),
    ("sxid.20034", "candidate", "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", {"code": "20034", "severity": "Fatal", "port": "30"}),
    ("gpu.fallen_off_the_bus", "candidate", "NVRM: fallen off the bus and is not responding to commands.", {}),
    ("gpu.fallen_off_the_bus", "candidate", "NVRM: GPU 0000:5D:00.0: GPU has fallen off the bus.", {"pci": "0000:5d:00.0"}),
    ("gpu.peer_memory_invalid", "confirmation", "6,3973,227996636,-;nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing", {}),  # gpud
    ("ib.cable_error", "candidate", "mlx5_core 0000:01:00.0: mlx5_port_module_event:1131:(pid 0): Port module event[error]: module 0, Cable error, High Temperature", {"pci": "0000:01:00.0", "port": "0"}),
    ("ib.cable_unplugged", "confirmation", "<6>[    2.962781] mlx5_core 0000:41:00.1: Port module event: module 1, Cable unplugged", {"pci": "0000:41:00.1", "port": "1"}),  # gpud
    ("ib.link_down", "candidate", "mlx5_core 0000:ab:00.0 mlx5_5: Port: 1 Link DOWN", {"pci": "0000:ab:00.0", "device": "mlx5_5", "port": "1"}),
    ("ib.link_down", "candidate", "mlx5_core 0000:c1:00.0 enp1s0f0: Link down", {"pci": "0000:c1:00.0", "device": "enp1s0f0"}),
    ("ib.link_down", "candidate", "systemd-networkd[901]: ib0: Lost carrier", {"device": "ib0"}),
    ("ib.link_up", "confirmation", "<6>[   14.952018] mlx5_core 0000:41:00.0 enp65s0f0np0: Link up", {"pci": "0000:41:00.0", "device": "enp65s0f0np0"}),  # gpud
    ("ib.link_up", "confirmation", "systemd-networkd[901]: ib0: Gained carrier", {"device": "ib0"}),
    ("pcie.bandwidth_limited", "confirmation", "mlx5_core 0000:01:00.0: 252.056 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at 0000:00:01.1", {"pci": "0000:01:00.0"}),
    ("pcie.insufficient_power", "confirmation", "mlx5_core 0000:01:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W).", {"pci": "0000:01:00.0", "watts": "27"}),
    ("lustre.evicted", "candidate", "LustreError: 167-0: X-MDT0000-mdc-ffff8800: This client was evicted by X-MDT0000; in progress operations using this service will fail.", {"target": "X-MDT0000"}),
    ("lustre.connection_lost", "confirmation", "Lustre: X-OST0001-osc-ffff8800: Connection to X-OST0001 (at 192.168.14.178@tcp) was lost; in progress operations using this service will wait for recovery to complete", {"target": "X-OST0001"}),
    ("lustre.connection_restored", "confirmation", "Lustre: X-OST0001-osc-ffff8800: Connection restored to 192.168.14.178@tcp (at 192.168.14.178@tcp)", {"target": "192.168.14.178@tcp"}),
    ("lustre.slow_reply", "confirmation", "Lustre: 3389:0:(client.c:2295:ptlrpc_expire_one_request()) @@@ Request sent has timed out for slow reply: [sent 1696590759/real 1696590759]  req@ffff8800 x177/t0(0) o400->DIAS-OST0002-osc-ffff8800@192.168.14.178@tcp:28/4 lens 224/224 e 0 to 1 rc 0/-1", {}),
    ("lustre.operation_failed", "confirmation", "LustreError: 11-0: X-OST0001-osc-ffff8800: operation ost_read to node 192.168.14.178@tcp failed: rc = -107", {"operation": "ost_read"}),
    ("lustre.network", "confirmation", "LNetError: 3389:0:(lib-move.c:2163:lnet_handle_find_routed_path()) no route to 10.0.0.1@o2ib", {}),
    ("gpfs.shutdown", "candidate", "Mon Jun 25 22:23:36.298 2018: 6027-650 [X] The mmfs daemon is shutting down abnormally.", {}),
    ("gpfs.membership_lost", "candidate", "Mon Jun 25 16:11:21 2018: Lost membership in cluster remote.cluster. Unmounting file systems.", {"target": "remote.cluster"}),
    ("gpfs.reconnecting", "confirmation", "Mon Jun 25 22:23:36.298 2018: Close connection to 192.168.10.109 c5n109. Attempting reconnect.", {}),
    ("nfs.not_responding", "confirmation", "nfs: server filer12 not responding, still trying", {"target": "filer12"}),
    ("nfs.responding", "confirmation", "nfs: server filer12 OK", {"target": "filer12"}),
]  # fmt: skip
"""Records without a traceback."""

ERRORS: list[Sample] = [
    ("gloo.timeout", "cascade", "RuntimeError: [unbound_buffer.cc:129] Timed out waiting 25000ms for recv operation to complete", {}),
    ("nccl.watchdog_timeout", "cascade", "torch.distributed.DistBackendError: [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=BROADCAST, Timeout(ms)=600000)", {"sequence": "7"}),
    ("nccl.remote_error", "cascade", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2027, remote process exited or there was a network error, ncclRemoteError", {}),
    ("nccl.aborted", "cascade", "RuntimeError: NCCL communicator was aborted on rank 5.", {}),
    ("gloo.connection_closed", "cascade", "RuntimeError: [pair.cc:553] Connection closed by peer [127.0.0.1]:11662", {}),
    ("store.connection_lost", "cascade", "torch.distributed.DistBackendError: [3] is setting up NCCL communicator: Socket Timeout", {}),
    ("python.connection_lost", "cascade", "BrokenPipeError: [Errno 32] Broken pipe", {}),
    ("process.terminated", "cascade", "torch.distributed.elastic.multiprocessing.api.SignalException: Process 23463 got signal: 15", {"pid": "23463"}),
    ("cuda.out_of_memory", "candidate", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.2 GiB is free.", {"requested": "2.00 GiB", "device": "0"}),
    ("cuda.out_of_memory", "candidate", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 79.10 GiB total capacity)", {"requested": "20.00 MiB"}),
    ("host.allocation_failed", "candidate", "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 70368744177664 bytes.", {}),
    ("gpu.ecc_uncorrectable", "candidate", "RuntimeError: CUDA error: uncorrectable ECC error encountered", {}),
    ("gpu.fallen_off_the_bus", "candidate", "RuntimeError: GPU has fallen off the bus", {}),
    ("storage.stale_handle", "candidate", "OSError: [Errno 116] Stale file handle: '/data/shard_00045.bin'", {}),
    ("torch.process_group", "cascade", "torch.distributed.DistNetworkError: The client socket has timed out after 60s", {}),
    ("launcher.child_failed", "confirmation", "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\ntrain.py FAILED", {}),
    ("python.assertion_error", "candidate", "AssertionError: expected 64 samples, got 63", {}),
    ("python.exception", "candidate", "ValueError: expected sequence of length 64 at dim 1 (got 63)", {}),
]  # fmt: skip
"""Closing lines of tracebacks."""

"""What workers tell of their job goes through both stages, and an incident has the job's labels."""

from __future__ import annotations

from streams_support import Script, agent, at, hanging, records, run, worker, written_log

from schemas.events import Job
from schemas.jobs import JobDescription
from streams import report


def told(script: Script) -> Script:
    team = Job(time=at(1), labels={"team": "language"}, world_size=64, layout={"pp": 4}, source="job.json")
    script.send(agent(script.job, "node00"), team)
    for rank, algorithm in enumerate(["Tree", "Tree", "Ring"]):
        script.send(worker(script.job, rank), Job(time=at(2), environment={"NCCL_ALGO": algorithm}, source="env"))
    return script


def test_what_workers_tell_becomes_one_description_and_the_incident_has_the_labels() -> None:
    log = written_log(told(hanging()).recording)
    run(log)
    assert records(log, "dead-letters") == []
    found = report.descriptions(log)["hang"]
    assert found.labels == {"team": "language"}
    assert found.differing["environment.NCCL_ALGO"] == ["Ring", "Tree"]
    incidents = records(log, "incidents")
    assert {tuple(one.labels.items()) for one in incidents} == {(("team", "language"),)}


def test_an_attempt_with_other_settings_has_its_own_labels_and_the_rest_of_the_job_s() -> None:
    script = Script("again")
    script.send(agent(script.job, "node00"), Job(time=at(1), command=["train"], labels={"queue": "long"}, source="j"))
    for attempt, zero in (("0", 0.0), ("1", 100.0)):
        script.start(8, zero + 0.2, attempt)
        script.train(8, 1, 30, attempt=attempt, zero=zero + 1)
        script.alive(8, int(zero) + 1, int(zero) + 95, attempt=attempt)
        script.stacks(8, range(int(zero) + 35, int(zero) + 95, 5), 5, attempt)
        job = Job(time=at(zero + 2), labels={"team": f"team {attempt}"}, hyperparameters={"lr": f"1e-{attempt}"})
        script.send(worker(script.job, 0, attempt), job)
    log = written_log(script.recording)
    run(log)
    labels = {one.attempt: one.labels for one in records(log, "incidents")}
    assert labels == {number: {"queue": "long", "team": f"team {number}"} for number in "01"}


def test_what_files_tell_accuses_nobody() -> None:
    plain, described = written_log(hanging().recording), written_log(told(hanging()).recording)
    for log in (plain, described):
        run(log)
    one, other = records(plain, "incidents")[-1], records(described, "incidents")[-1]
    assert (one.suspects, one.victims, one.missing, one.reason) == (
        *(other.suspects, other.victims, other.missing, other.reason),
    )


def test_the_report_says_all_facets() -> None:
    said = report.description_json(JobDescription(framework="verl", layout={"tp": 2}))
    assert (said["framework"], said["layout"], said["labels"], said["differing"]) == ("verl", {"tp": "2"}, {}, {})

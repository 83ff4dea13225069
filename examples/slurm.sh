#!/bin/bash
# A run of Longwall as a SLURM job that may be preempted, reach its time limit or lose its node, and goes on each time:
#
#     sbatch slurm.sh mine.toml
#
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=04:00:00
# Let SLURM start the job again after a preemption or the loss of a node, and append to its log.
#SBATCH --requeue
#SBATCH --open-mode=append
# Send SIGTERM to this script two minutes before the time is over; Longwall ends in a few seconds.
#SBATCH --signal=B:TERM@120

most_restarts=100
if [ $# -ne 1 ]; then
    echo "usage: sbatch slurm.sh CONFIG" >&2
    exit 2
fi
config=$1
# The number of a job stays the same when the job is requeued; so the run is found again.
run=runs/${SLURM_JOB_NAME}-${SLURM_JOB_ID}
stopped=

stop() {
    stopped=yes
    if [ -n "$!" ]; then kill -TERM "$!" 2>/dev/null; fi
}
trap stop TERM

if [ -e "$run/manifest.json" ]; then
    command=(longwall resume "$run")
else
    # An attempt that was killed as it began has left a folder without a manifest.
    if [ -d "$run" ]; then rmdir "$run" 2>/dev/null || longwall rm --yes "$run" || exit 2; fi
    command=(longwall run "$config" --set "run.directory=${run%/*}" --set "run.name=${run##*/}")
fi
if [ -n "$stopped" ]; then exit 143; fi

# In the background: the shell handles a signal only while it waits.
"${command[@]}" --json &
wait "$!"
code=$?
# A signal ends the first `wait`, but not Longwall, which writes down what is finished.
while kill -0 "$!" 2>/dev/null; do
    wait "$!"
    code=$?
done

# 128 and more: a signal ended the run. 0 is success, 1 a run that failed, 2 wrong input: these are not repeated.
if [ "$code" -gt 128 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "$most_restarts" ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"

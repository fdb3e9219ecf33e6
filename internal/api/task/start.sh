# What a task's container runs: start.sh FILES SCRATCH [SUPERVISOR...]
#
# FILES holds run.sh, perhaps setup.sh, and the workdir's files; SCRATCH may be written. SUPERVISOR is put before the
# command of the run, in a gang. It is sh's, because an image may have nothing better, and it is process 1, to which
# the kernel delivers no signal without a handler: a script of its own would only die when its grace period is over.
#
# Ends as run ends. 143, whatever the scripts say, when the pod is asked to stop; the Job does not count that.

files=$1
scratch=$2
shift 2
shell=$(command -v bash || command -v sh)
child=   # nothing, "starting", or the number of what runs
stopped= # nothing, "early" while that number is not known yet, or "yes"

stop() {
	[ -z "$stopped" ] || return
	case $child in
	'') exit 143 ;;
	starting) stopped=early ;;
	*) terminate ;;
	esac
}
trap stop TERM INT

terminate() {
	stopped=yes
	# As process 1 this reaches everything in the container and nothing else.
	if [ $$ -eq 1 ]; then kill -TERM -1; else kill -TERM "$child"; fi 2>/dev/null
	# The kubelet kills processes that do not stop, which looks like a failure.
	(sleep "${ELASTIC_STOP_SECONDS:-28}"; if [ $$ -eq 1 ]; then kill -KILL -1; else kill -KILL "$child"; fi) >/dev/null 2>&1 &
	killer=$!
}

# Says whether anything lives in this container besides process 1 and the killer. A program may outlive the shell that
# started it, and has its grace period too: with process 1 it would end.
others() {
	for pid in /proc/[0-9]*; do
		pid=${pid#/proc/}
		[ "$pid" -ne 1 ] && [ "$pid" -ne "$killer" ] && read -r line 2>/dev/null <"/proc/$pid/stat" || continue
		set -- ${line##*) } # state and parent
		[ "$1" = Z ] || [ "$2" -eq "$killer" ] || return 0
	done
	return 1
}

# A signal interrupts wait; what it says then is not the child's end.
await() {
	child=starting
	"$@" &
	child=$!
	[ "$stopped" != early ] || terminate
	while :; do
		wait "$child"
		code=$?
		kill -0 "$child" 2>/dev/null || break
	done
	child=
	[ -n "$stopped" ] || return
	if [ $$ -eq 1 ]; then
		while kill -0 "$killer" 2>/dev/null && others; do sleep 0.1 2>/dev/null || sleep 1; done
	fi
	kill "$killer" 2>/dev/null # before the number of its victim is another's
	exit 143
}

workdir=$scratch/workdir
mkdir -p "$workdir" && cd "$workdir" || exit
if [ -d "$files/workdir" ]; then
	cp -RL "$files/workdir/." . && chmod -R u+w . || exit
fi
# Where SkyPilot has it. Not on a simulated node, whose home is somebody's.
if [ $$ -eq 1 ] && [ -n "$HOME" ] && [ ! -e "$HOME/sky_workdir" ]; then
	ln -s "$workdir" "$HOME/sky_workdir" 2>/dev/null
fi

if [ -f "$files/setup.sh" ]; then
	await "$shell" "$files/setup.sh"
	if [ "$code" -ne 0 ]; then
		echo "elastic_task: setup ended with exit code $code" >&2
		exit "$code"
	fi
fi
await "$@" "$shell" "$files/run.sh"
exit "$code"

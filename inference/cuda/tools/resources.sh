#!/bin/sh
# Assembles the kernels and prints what each takes: resources.sh DIR ARCHITECTURE…
# A line is: architecture, kernel, registers, bytes of shared memory, bytes spilled.
# NVRTC reports success for code that only the assembler refuses, so this step is a
# check, too. DIR is what fetch.sh filled.
set -eu
here=$(dirname "$0")
dir=$1
shift
measure() { # architecture
	for source in kernels tensor half attend_tensor; do
		[ $source = kernels ] || [ "${1#sm_}" -ge 80 ] || continue
		"$here/nvrtc.sh" "$dir" "$here/../kernel/$source.cu" "$dir/check_$1.cubin" -cubin "$1" --ptxas-options=-v 2>"$dir/check_$1.part" ||
			{ cat "$dir/check_$1.part" >&2; exit 1; }
		cat "$dir/check_$1.part"
	done >"$dir/check_$1.log"
	awk -v arch="$1" '
		/Function properties for/ { name = $NF }
		/bytes spill stores/ { match($0, /[0-9]+ bytes spill stores/); spilled = substr($0, RSTART) + 0 }
		/Used [0-9]+ registers/ {
			match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5) + 0; shared = 0
			if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART) + 0
			print arch, name, registers, shared, spilled
		}' "$dir/check_$1.log" >"$dir/check_$1.txt"
}

# The architectures are measured side by side.
running=
for arch in "$@"; do
	measure "$arch" &
	running="$running $!"
done
for id in $running; do wait "$id"; done
for arch in "$@"; do cat "$dir/check_$arch.txt"; done | LC_ALL=C sort

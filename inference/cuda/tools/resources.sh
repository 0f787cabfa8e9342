#!/bin/sh
# Assembles the kernels and prints what each takes: resources.sh DIR ARCHITECTURE…
# A line is: architecture, kernel, registers, bytes of shared memory, bytes spilled.
# NVRTC reports success for code that only the assembler refuses, so this step is a
# check, too. DIR is what fetch.sh filled.
set -eu
here=$(dirname "$0")
dir=$1
shift
for arch in "$@"; do
	for source in kernels tensor half; do
		[ $source = kernels ] || [ "${arch#sm_}" -ge 80 ] || continue
		"$here/nvrtc.sh" "$dir" "$here/../kernel/$source.cu" "$dir/check_$arch.cubin" -cubin "$arch" --ptxas-options=-v 2>"$dir/check_$source.log" ||
			{ cat "$dir/check_$source.log" >&2; exit 1; }
		cat "$dir/check_$source.log"
	done >"$dir/check_$arch.log"
	awk -v arch="$arch" '
		/Function properties for/ { name = $NF }
		/bytes spill stores/ { match($0, /[0-9]+ bytes spill stores/); spilled = substr($0, RSTART) + 0 }
		/Used [0-9]+ registers/ {
			match($0, /Used [0-9]+/); registers = substr($0, RSTART + 5) + 0; shared = 0
			if (match($0, /[0-9]+ bytes smem/)) shared = substr($0, RSTART) + 0
			print arch, name, registers, shared, spilled
		}' "$dir/check_$arch.log"
done | LC_ALL=C sort

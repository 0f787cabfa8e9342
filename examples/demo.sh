#!/usr/bin/env bash
# Starts ragd, reads examples/corpus, asks three questions and shows both
# ledgers. At a terminal the server stays up until Ctrl-C.
set -euo pipefail
ragd=${1:-bin/ragd}
addr=${RAGD_SERVER_ADDR:-127.0.0.1:8080}
here=$(dirname "$0")
log=$(mktemp)
server=

finish() {
	if [ -n "$server" ]; then
		kill -INT "$server" 2>/dev/null || true
		wait "$server" || true
	fi
	rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT TERM

if "$ragd" doctor --ready --addr "$addr" >/dev/null 2>&1; then
	echo "using the ragd that already answers on http://$addr"
else
	"$ragd" serve --addr "$addr" 2>"$log" >/dev/null &
	server=$!
	until "$ragd" doctor --ready --addr "$addr" >/dev/null 2>&1; do
		if ! kill -0 "$server" 2>/dev/null; then
			echo "the server did not start:" >&2
			cat "$log" >&2
			exit 1
		fi
		sleep 0.2
	done
fi

echo "── reading $here/corpus"
"$ragd" ingest "$here/corpus" --collection demo --addr "$addr"

while IFS= read -r line; do
	question=$(printf '%s' "$line" | python3 -c 'import json,sys; print(json.load(sys.stdin)["question"])')
	echo
	echo "── $question"
	"$ragd" ask "$question" --collection demo --addr "$addr"
done <"$here/questions.jsonl"

echo
echo "ragd answers on http://$addr — for example:"
echo "  curl -s http://$addr/ask -d '{\"question\": \"...\", \"collection\": \"demo\"}'"
if [ -n "$server" ] && [ -t 0 ]; then
	echo "Ctrl-C stops it."
	wait "$server"
fi

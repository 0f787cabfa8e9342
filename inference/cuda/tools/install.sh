#!/bin/sh
# Installs a Debian package: install.sh PACKAGE. Who is not root is told what to do.
set -eu
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "$1 is missing and is needed by the simulated device: as root, apt-get install $1" >&2
	exit 1
fi
apt-get install -qq -y --no-install-recommends "$1" || { apt-get update -qq && apt-get install -qq -y --no-install-recommends "$1"; }

#!/bin/sh
# Builds the simulated driver: simdriver.sh DIR → DIR/libcuda.so.1, with the kernels
# and the test kernels of simdriver/testdata in it. DIR is what fetch.sh filled.
set -eu
dir=$1
cuda=$(dirname "$0")/..
src=$cuda/simdriver/src
flags="-std=c++17 -O3 -march=x86-64-v3 -ffp-contract=off -fno-strict-aliasing -fPIC -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -Wno-unknown-pragmas"
# Objects are kept as long as the sum of all sources is the same: times of files say
# nothing after a checkout.
sum=$({ echo "$flags"; find "$src" "$cuda/kernel" "$cuda/simdriver/testdata" \( -name '*.c*' -o -name '*.h' \) | sort | xargs cat; } | sha256sum)
if [ "$(cat "$dir/simdriver.sum" 2>/dev/null)" != "$sum" ]; then
	rm -f "$dir"/*.o
	printf '%s\n' "$sum" >"$dir/simdriver.sum"
fi
objects=
compile() { # object, source, option...
	objects="$objects $dir/$1"
	object=$dir/$1 source=$2
	shift 2
	if [ -f "$object" ]; then return; fi
	g++ $flags -I"$src" -I"$cuda/kernel" -isystem "$dir/nvidia/cuda_runtime/include" "$@" -c "$source" -o "$object"
}
for part in block memory module stream driver; do compile $part.o "$src/$part.cc"; done
compile kernels.o "$cuda/kernel/kernels.cu" -DRAGD_SIM -x c++
compile tensor.o "$cuda/kernel/tensor.cu" -DRAGD_SIM -x c++
compile half.o "$cuda/kernel/half.cu" -DRAGD_SIM -x c++
compile attend_tensor.o "$cuda/kernel/attend_tensor.cu" -DRAGD_SIM -x c++
compile misuse.o "$cuda/simdriver/testdata/misuse.cu" -DRAGD_SIM -x c++
g++ -shared -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o "$dir/libcuda.so.1" $objects -lpthread

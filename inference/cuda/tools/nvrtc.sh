#!/bin/sh
# Compiles kernels: nvrtc.sh DIR SOURCE OUT -ptx|-cubin ARCHITECTURE OPTION…
# DIR is what fetch.sh filled.
set -eu
here=$(dirname "$0")
dir=$1 source=$2 out=$3 kind=$4 arch=$5
shift 5
[ "$dir/nvrtcc" -nt "$here/nvrtcc.c" ] || cc -O1 -Wall -I"$dir/nvidia/cuda_nvrtc/include" -o "$dir/nvrtcc" "$here/nvrtcc.c" -ldl
exec "$dir/nvrtcc" "$dir/nvidia/cuda_nvrtc/lib/libnvrtc.so.12" "$source" "$out" "$kind" --gpu-architecture="$arch" --std=c++17 --fmad=false -I"$here/../kernel" "$@"

#!/bin/sh
# Compiles kernels: nvrtc.sh DIR SOURCE OUT -ptx|-cubin ARCHITECTURE
# DIR is what fetch.sh filled.
set -eu
here=$(dirname "$0")
[ "$1/nvrtcc" -nt "$here/nvrtcc.c" ] || cc -O1 -Wall -I"$1/nvidia/cuda_nvrtc/include" -o "$1/nvrtcc" "$here/nvrtcc.c" -ldl
exec "$1/nvrtcc" "$1/nvidia/cuda_nvrtc/lib/libnvrtc.so.12" "$2" "$3" "$4" --gpu-architecture="$5" --std=c++17 --fmad=false -I"$here/../kernel"

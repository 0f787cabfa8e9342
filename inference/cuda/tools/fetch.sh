#!/bin/sh
# Fetches the CUDA compiler and headers into the folder given: two pip wheels of
# CUDA 12.1, held to their checksums. No GPU and no account is needed.
set -eu
dir=$1
fetch() { # wheel, sha256, package==version
	if [ ! -f "$dir/wheels/$1" ]; then
		python3 -m pip -q download --no-deps -d "$dir/wheels" --only-binary :all: --platform manylinux1_x86_64 "$3"
	fi
	echo "$2  $dir/wheels/$1" | sha256sum --check --quiet
}
mkdir -p "$dir/wheels"
fetch nvidia_cuda_nvrtc_cu12-12.1.105-py3-none-manylinux1_x86_64.whl 339b385f50c309763ca65456ec75e17bbefcbbf2893f462cb8b90584cd27a1c2 nvidia-cuda-nvrtc-cu12==12.1.105
fetch nvidia_cuda_runtime_cu12-12.1.105-py3-none-manylinux1_x86_64.whl 6e258468ddf5796e25f1dc591a31029fa317d97a0a94ed93468fc86301d61e40 nvidia-cuda-runtime-cu12==12.1.105
[ -f "$dir/nvidia/cuda_runtime/include/cuda.h" ] && [ -f "$dir/nvidia/cuda_nvrtc/lib/libnvrtc.so.12" ] ||
	for w in "$dir"/wheels/*.whl; do python3 -m zipfile -e "$w" "$dir"; done

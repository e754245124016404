# ./run gpu-check pack [FILE]: what has been built, as a bundle that checks a machine without a compiler: unpack it
# there and call ./gpu-check. Sourced by steps.sh. The kernels of the workloads lie in it compiled, where NVRTC is here:
# the plug-in's compile_key names no driver, so they are found there.

GPU_PACK_TARGET=${GPU_PACK_TARGET:-90}    # the architecture that kernels are compiled for
GPU_PACK_MEGABYTES=40

# Libraries that the programs need and that another machine may lack; those of the C library are everywhere.
gpu_pack_libraries() {
  ldd $GPU_BUILD/librosin.so $GPU_BUILD/tools/gpu_check | awk '$3 ~ /^\// {print $3}' | sort -u |
    grep -Ev '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so|/librosin\.so' || true
}

# gpu_pack [FILE]
gpu_pack() {
  local file=${1:-build/gpu-check.tar.xz} folder=build/gpu-check-bundle path bytes
  [ -x $GPU_BUILD/tools/gpu_check ] || stop "gpu-check pack: nothing is built; begin with ./run gpu-check build"
  rm -rf "$folder"
  mkdir -p "$folder"/{lib,examples,bench/results,tools/gpu_check,$GPU_BUILD/{rosin,tools,examples}}
  cp -L $GPU_BUILD/librosin.so.0 "$folder/$GPU_BUILD/"
  ln -s librosin.so.0 "$folder/$GPU_BUILD/librosin.so"
  cp $GPU_BUILD/rosin/librosin_cuda.so $GPU_BUILD/rosin/librosin_null.so $GPU_BUILD/rosin/librosin_comm_{mpi,nccl}.so \
    "$folder/$GPU_BUILD/rosin/"
  cp $GPU_BUILD/tools/gpu_check "$folder/$GPU_BUILD/tools/"
  for path in conformance comm_conformance; do
    [ ! -x "$GPU_BUILD/$path" ] || cp "$GPU_BUILD/$path" "$folder/$GPU_BUILD/"
  done
  for path in $GPU_BUILD/examples/example_1[0-9]_* $GPU_BUILD/examples/demo; do
    [ ! -x "$path" ] || cp "$path" "$folder/$GPU_BUILD/examples/"
  done
  cp examples/1[0-9]_*.cpp "$folder/examples/"
  cp tools/gpu_check/*.sh tools/gpu_check/*.py "$folder/tools/gpu_check/"
  for path in $(gpu_pack_libraries); do cp -L "$path" "$folder/lib/"; done
  git rev-parse --short HEAD >"$folder/COMMIT" 2>/dev/null || echo unknown >"$folder/COMMIT"
  gpu_pack_front >"$folder/gpu-check"
  chmod +x "$folder/gpu-check"
  find "$folder/$GPU_BUILD" "$folder/lib" -type f -exec strip --strip-unneeded {} + 2>/dev/null || true
  gpu_pack_kernels "$folder"
  tar -C "$folder" --owner=0 --group=0 --numeric-owner -cJf "$file" .
  bytes=$(stat -c %s "$file")
  echo "gpu-check pack: $file, $((bytes / 1000000)) MB; there: tar -xf $(basename "$file") && ./gpu-check"
  [ "$bytes" -le $((GPU_PACK_MEGABYTES * 1000000)) ] || stop "gpu-check pack: more than $GPU_PACK_MEGABYTES MB"
}

# The bundle's own front door: as ./run gpu-check without the step that builds.
gpu_pack_front() {
  cat <<'TEXT'
#!/usr/bin/env bash
# Checks the GPUs of this machine: ./gpu-check [facts|correct|seeds|train|kernels|steps|peers...] [--device NAME]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export GPU_PEER_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH=$PWD/build/release:$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ ! -d kernel_cache ] || export ROSIN_CACHE_DIR=${ROSIN_CACHE_DIR:-$PWD/kernel_cache}
stop() { echo "gpu-check: $1" >&2; exit 1; }
source tools/gpu_check/steps.sh
[ $# -gt 0 ] || set -- facts correct seeds train kernels steps peers
gpu_check "$@"
TEXT
}

# NVRTC's file, of CUDA 12 or later; nothing where there is none.
gpu_nvrtc() {
  local folder name
  for folder in $(tr : ' ' <<<"${ROSIN_CUDA_LIBRARIES:-}") "${CUDA_HOME:-/usr/local/cuda}"/lib{64,} /usr/local/cuda*/lib{64,} \
    /usr/lib/x86_64-linux-gnu $(python3 -c 'import sys; print(*(p + "/nvidia/" + d + "/lib" for p in sys.path for d in ("cu13", "cuda_nvrtc")))' 2>/dev/null); do
    for name in libnvrtc.so.13 libnvrtc.so.12; do
      [ ! -f "$folder/$name" ] || { echo "$folder/$name"; return; }
    done
  done
}

# Runs every workload on a pretended GPU that computes nothing, so that the real NVRTC compiles its kernels; they stay
# in the bundle's cache. Sizes are those of the workloads, since kernels follow from some of them.
gpu_pack_kernels() {
  local nvrtc name count cache=$PWD/$1/kernel_cache
  nvrtc=$(gpu_nvrtc)
  if [ -z "$nvrtc" ] || [ ! -e $GPU_BUILD/fake_cuda/libcuda.so.1 ] || ! command -v python3 >/dev/null; then
    echo "gpu-check pack: kernels are NOT compiled beforehand: NVRTC, the pretended CUDA of the tests or python3 is missing here"
    return
  fi
  mkdir -m 700 "$cache"
  for name in ${GPU_PACK_WORKLOADS:-$(python3 tools/gpu_check/measure.py names peers)}; do
    ROSIN_CUDA_LIBRARIES=$PWD/$GPU_BUILD/fake_cuda ROSIN_CACHE_DIR=$cache ROSIN_LOG=none \
      FAKE_CUDA="devices=1,idle=1,memory=$((1 << 37)),arch=$GPU_PACK_TARGET,nvrtc=$nvrtc" \
      timeout 300 python3 tools/gpu_check/measure.py compile "$name" --program $GPU_BUILD/tools/gpu_check \
      --device CUDA:0 || echo "gpu-check pack: the kernels of $name are left out"
  done
  count=$(find "$cache" -name '*.bin' | wc -l)
  echo "gpu-check pack: $count programs of kernels are compiled for sm_$GPU_PACK_TARGET by $nvrtc"
}

# The steps of ./run gpu-check, which sources this file and brings configure, werror, jobs_that_fit and stop.
# A step is cut into units (a program on a device). A unit that went well since the last build is not run again, so a
# step that ran out of its time goes on when it is called once more. Installs nothing.
# Exit status: 0 all good, 1 something failed, 3 there is no device to check, 75 not done yet: call it again.
#   facts    versions, copies, products, launches of graphs
#   correct  the contract of back ends, ops against the CPU, 20 losses against the CPU's and those without graphs
#   nccl     the contract of transports over NCCL or RCCL, on memory of the CUDA or AMDGPU device, as one rank
#   seeds    the programs of Flux's GPU page      train    the demo with both models
#   kernels  single kernels beside their goals    steps    training steps beside their goals
#   peers    the same in PyTorch and JAX: equal losses, ratios beside their goals
# With --fake all of it but the figures is tried on the pretended GPU of tests/fake_cuda, with small sizes; with
# --device Metal too on that of tests/fake_metal.
# Read next: main.cpp (the devices, the table of ops), measure.py (workloads and peers), pack.sh (a bundle).

GPU_STEPS=(build facts correct nccl seeds train kernels steps peers)
GPU_STEP_SECONDS=${GPU_STEP_SECONDS:-460}
GPU_BUILD=build/release
GPU_FAKE=${GPU_SHORT:+--short}    # small sizes and few of them: options of measure.py; --fake sets it too
GPU_DONE=${GPU_DONE:-$PWD/$GPU_BUILD/gpu-check}    # what went well
GPU_RESULTS=${GPU_RESULTS:-bench/results}          # what was said, a file per back end and day
GPU_DAY=${GPU_DAY:-$(date -u +%F)}                 # on which the check began, be it past midnight now
declare -A gpu_verdicts=()
gpu_devices=() gpu_built= gpu_status=0 gpu_began=0

# gpu_check [STEP...] [--device NAME] [--fake]; gpu_check pack [FILE]
gpu_check() {
  local steps=() wanted=
  [ "${1:-}" != pack ] || { source tools/gpu_check/pack.sh; gpu_pack "${@:2}"; return; }
  while [ $# -gt 0 ]; do
    case "$1" in
      --device) [ $# -ge 2 ] || stop "--device needs a name such as CUDA or CUDA:1"; wanted=$2; shift ;;
      --fake) GPU_FAKE=--short ;;
      build | facts | correct | nccl | seeds | train | kernels | steps | peers) steps+=("$1") ;;
      *) stop "gpu-check takes ${GPU_STEPS[*]}, --device NAME, --fake, or pack [FILE]; got $1" ;;
    esac
    shift
  done
  if [ -n "$GPU_FAKE" ]; then
    gpu_pretend
    wanted=${wanted:-CUDA:0}
    [ "${wanted%:*}" != Metal ] || gpu_pretend_metal
    [ ${#steps[@]} -gt 0 ] || steps=(facts correct nccl kernels steps peers)
  fi
  [ ${#steps[@]} -gt 0 ] || steps=("${GPU_STEPS[@]}")
  if [ "${steps[0]}" = build ]; then
    gpu_build
    steps=("${steps[@]:1}")
  fi
  gpu_find "$wanted"
  local step
  for step in "${steps[@]}"; do
    gpu_began=$SECONDS
    gpu_each "$step"
  done
  gpu_sum
}

# A machine with one pretended GPU; what it says stays in the build.
gpu_pretend() {
  export ROSIN_CUDA_LIBRARIES=${ROSIN_CUDA_LIBRARIES:-$PWD/$GPU_BUILD/fake_cuda}
  [ -e "$ROSIN_CUDA_LIBRARIES/libcuda.so.1" ] ||
    stop "gpu-check --fake: the build has no pretended CUDA; ./run test makes it"
  export FAKE_CUDA=${FAKE_CUDA:-devices=1,checks=0}
  export ROSIN_CACHE_DIR=${ROSIN_CACHE_DIR:-$PWD/$GPU_BUILD/kernel_cache}
  GPU_DONE=$GPU_DONE-fake
  [ "$GPU_RESULTS" != bench/results ] || GPU_RESULTS=$GPU_BUILD/gpu-check-results
}

gpu_pretend_metal() {
  export ROSIN_METAL_LIBRARIES=${ROSIN_METAL_LIBRARIES:-$PWD/$GPU_BUILD/fake_metal}
  export FAKE_METAL=${FAKE_METAL:-system=15,checks=0}
}

# gpu_at_worst STATUS: a failure counts more than what is left to do.
gpu_at_worst() {
  [ "$gpu_status" -eq 1 ] || gpu_status=$1
}

gpu_build() {
  local tool
  for tool in "$CXX" cmake; do
    command -v "$tool" >/dev/null || stop "gpu-check needs $tool; it installs nothing"
  done
  local generator=()
  [ -f $GPU_BUILD/CMakeCache.txt ] || command -v ninja >/dev/null || generator=(-G "Unix Makefiles")
  cmake --preset release "${generator[@]}" -DROSIN_WERROR="$(werror)" || stop "gpu-check: configuring failed"
  local targets=(rosin rosin_plugins rosin_examples gpu_check) status=0
  timeout $GPU_STEP_SECONDS cmake --build $GPU_BUILD -j "$(jobs_that_fit)" --target "${targets[@]}" || status=$?
  [ $status -ne 124 ] || { echo "gpu-check: build: not done after $GPU_STEP_SECONDS s; call it again"; exit 75; }
  [ $status -eq 0 ] || stop "gpu-check: the build failed"
  # Without GoogleTest there is no such program.
  cmake --build $GPU_BUILD -j "$(jobs_that_fit)" --target conformance >/dev/null 2>&1 || true
  cmake --build $GPU_BUILD -j "$(jobs_that_fit)" --target comm_conformance >/dev/null 2>&1 || true
  gpu_built=", build good"
}

# gpu_find [NAME]: fills gpu_devices, and says what there is.
gpu_find() {
  [ -x $GPU_BUILD/tools/gpu_check ] || stop "gpu-check: nothing is built; begin with ./run gpu-check build"
  mkdir -p "$GPU_DONE"
  $GPU_BUILD/tools/gpu_check devices || true
  mapfile -t gpu_devices < <($GPU_BUILD/tools/gpu_check names | grep -iE "^${1:-.*}(:|\$)")
  [ ${#gpu_devices[@]} -gt 0 ] || { echo "gpu-check: there is no device ${1:-but the CPU}"; exit 3; }
}

gpu_each() {
  local device
  for device in "${gpu_devices[@]}"; do
    "gpu_$1" "$device"
  done
}

# gpu_timed COMMAND...: ends it with what is left of the step's time.
gpu_timed() {
  timeout $((gpu_began + GPU_STEP_SECONDS - SECONDS)) "$@"
}

# gpu_measure COMMAND [WORKLOAD] DEVICE
gpu_measure() {
  local device=${!#} place
  place=$(gpu_results "$device")
  gpu_timed python3 tools/gpu_check/measure.py "${@:1:$#-1}" --program $GPU_BUILD/tools/gpu_check --device "$device" \
    --json "${place%.txt}.json" $GPU_FAKE
}

gpu_facts() {
  if command -v python3 >/dev/null; then
    gpu_unit facts "$1" facts gpu_measure facts "$1"
  else
    gpu_unit facts "$1" facts gpu_timed $GPU_BUILD/tools/gpu_check facts "$1"
  fi
}

gpu_correct() {
  local mlp="mlp batch=32 inputs=40 hidden=16 classes=10" gpt="gpt batch=2 time=8 width=8 heads=2 layers=1 vocabulary=16"
  gpu_unit correct "$1" contract gpu_contract "$1"
  gpu_unit correct "$1" table gpu_timed $GPU_BUILD/tools/gpu_check ops "$1" ${GPU_FAKE:+12}
  gpu_unit correct "$1" losses-mlp gpu_timed $GPU_BUILD/tools/gpu_check agree "$1" $mlp
  gpu_unit correct "$1" losses-gpt gpu_timed $GPU_BUILD/tools/gpu_check agree "$1" $gpt
  gpu_unit correct "$1" graphs-mlp gpu_graphs "$1" $mlp
  [ -n "$GPU_FAKE" ] || gpu_unit correct "$1" losses-lenet gpu_timed $GPU_BUILD/tools/gpu_check agree "$1" lenet batch=16 image=28
  [ -n "$GPU_FAKE" ] || gpu_unit correct "$1" graphs-gpt gpu_graphs "$1" $gpt
}

gpu_nccl() {
  gpu_unit nccl "$1" contract-nccl gpu_nccl_contract "$1"
}

# The conformance program of transports; without NCCL there is nothing to check.
gpu_nccl_contract() {
  local plugin said status=0
  [[ ${1%%:*} =~ ^(CUDA|AMDGPU)$ ]] || { echo "nccl on $1: SKIPPED, NCCL and RCCL take memory of CUDA and AMDGPU devices alone"; return; }
  [ -x $GPU_BUILD/comm_conformance ] || { echo "nccl on $1: SKIPPED, comm_conformance is not built"; return; }
  plugin=$($GPU_BUILD/tools/gpu_check plugin "${1%%:*}") || return 1
  said=$(gpu_timed $GPU_BUILD/comm_conformance $GPU_BUILD/rosin/librosin_comm_nccl.so --device "$plugin" 2>&1) || status=$?
  if grep -q "join: UNSUPPORTED: .*CCL is not found" <<<"$said"; then
    echo "nccl on $1: SKIPPED, ${said#*UNSUPPORTED: }"
    return
  fi
  [ $status -eq 0 ] || { printf '%s\n' "$said"; return $status; }
  grep "ranks over" <<<"$said"
  echo "nccl on $1: $(tail -n 1 <<<"$said")"
}

# The conformance program on the plug-in that is in use.
gpu_contract() {
  local plugin last parts=()
  [ -x $GPU_BUILD/conformance ] || { echo "contract on $1: SKIPPED, the program conformance is not built"; return; }
  plugin=$($GPU_BUILD/tools/gpu_check plugin "$1") || return 1
  [ -z "$GPU_FAKE" ] || parts=(--only device,memory,streams,graphs)
  local status=0 said
  said=$(gpu_timed $GPU_BUILD/conformance "$plugin" --device "${1#*:}" "${parts[@]}" 2>&1) || status=$?
  last=$(tail -n 1 <<<"$said")
  echo "contract on $1: $last"
  [ $status -eq 0 ] || { grep -v '^ok\|^passed' <<<"$said" | head -n 20; return 1; }
}

# gpu_graphs DEVICE KIND SIZES...: 20 losses have the same bits whether steps are launched as graphs or one by one.
gpu_graphs() {
  local with without
  with=$(gpu_timed $GPU_BUILD/tools/gpu_check losses "$@") || return 1
  without=$(ROSIN_GRAPHS=0 gpu_timed $GPU_BUILD/tools/gpu_check losses "$@") || return 1
  if [ "$with" = "$without" ]; then echo "$2 on $1: graphs give the bits of single launches"; return; fi
  echo "$2 on $1: graphs give OTHER BITS than single launches"
  diff <(echo "$with") <(echo "$without") | head -n 6
  return 1
}

gpu_kernels() {
  gpu_workloads kernels ours "$1"
}

gpu_steps() {
  gpu_workloads steps ours "$1"
}

gpu_peers() {
  gpu_workloads peers peers "$1"
}

# gpu_workloads STEP COMMAND DEVICE: each workload of the step, with measure.py. Of peers, the fake tries two.
gpu_workloads() {
  local name names
  command -v python3 >/dev/null || { echo "$1: SKIPPED, there is no python3"; return; }
  names=$(python3 tools/gpu_check/measure.py names "$1" $GPU_FAKE)
  [ -z "$GPU_FAKE" ] || [ "$1" != peers ] || names="G1 G12"
  for name in $names; do
    gpu_unit "$1" "$3" "$name" gpu_measure "$2" "$name" "$3"
  done
}

# The examples that are the programs of Flux's GPU page; they choose the first device of a back end.
gpu_seeds() {
  local source
  [ "${1#*:}" = 0 ] || return 0
  for source in examples/1[0-9]_*.cpp; do
    gpu_unit seeds "$1" "$(basename "$source" .cpp)" gpu_example "$source" "${1%:*}"
  done
}

# gpu_example SOURCE BACKEND: the example ends with the line that its source names.
gpu_example() {
  local name expected last program
  name=$(basename "$1" .cpp)
  program=$PWD/$GPU_BUILD/examples/example_$name
  expected=$(sed -n 's|^// Last line: ||p' "$1")
  last=$(cd "$GPU_DONE" && ROSIN_LOG=none ROSIN_GPU_BACKEND=$2 gpu_timed "$program" | tail -n 1)
  echo "$name on $2:0: $last"
  [ "$last" = "$expected" ]
}

gpu_train() {
  gpu_unit train "$1" mlp gpu_demo mlp 2 "$1"
  gpu_unit train "$1" lenet gpu_demo lenet 1 "$1"
}

# gpu_demo MODEL EPOCHS DEVICE: the demo reaches an accuracy of 0.9 on digits that it draws itself.
gpu_demo() {
  local began=$SECONDS last
  local program=("$PWD/$GPU_BUILD/examples/demo" --model "$1" --epochs "$2" --device "$3" --save none)
  last=$(cd "$GPU_DONE" && gpu_timed "${program[@]}" | tail -n 1)
  echo "$1 on $3, epochs: $2, $last, $((SECONDS - began)) s"
  [[ $last =~ ^"test accuracy: "(0\.9|1\.) ]]
}

# gpu_unit STEP DEVICE NAME COMMAND...: runs it unless it went well since the last build. One that began late and met
# the end of the step's time is run again by the next call, one that had all of it has failed.
gpu_unit() {
  local step=$1 device=$2 name=$3 log began=$SECONDS
  shift 3
  log=$GPU_DONE/$step-$device-$name
  if [ "$log" -nt $GPU_BUILD/librosin.so ]; then
    sed 's/^/done before: /' "$log"
  elif gpu_time_is_up; then
    gpu_leave "$step" "$device" "$name"
    return
  elif "$@" >"$log.new" 2>&1; then
    mv "$log.new" "$log"
    tee -a "$(gpu_results "$device")" <"$log"
  elif gpu_time_is_up && [ "$began" -gt "$gpu_began" ]; then
    gpu_leave "$step" "$device" "$name"
    return
  else
    sed -i '1s/^/FAILED /' "$log.new"
    tee -a "$(gpu_results "$device")" <"$log.new"
    gpu_verdicts[$device/$step]=FAILED
    gpu_status=1
    return
  fi
  if ! grep -qv SKIPPED "$log"; then
    : "${gpu_verdicts[$device/$step]:=SKIPPED}"
  elif [ "${gpu_verdicts[$device/$step]:-SKIPPED}" = SKIPPED ]; then
    gpu_verdicts[$device/$step]=good
  fi
}

gpu_leave() {
  echo "$1: $3 on $2 is left for the next call"
  gpu_verdicts[$2/$1]=unfinished
  gpu_at_worst 75
}

gpu_time_is_up() {
  [ $((SECONDS - gpu_began)) -ge "$GPU_STEP_SECONDS" ]
}

# gpu_results DEVICE: the file of its back end and this day. A new build begins a new block with what was checked.
gpu_results() {
  local backend=${1%:*} file described
  file=$GPU_RESULTS/gpu-${backend,,}-$GPU_DAY.txt
  described=$GPU_DONE/$backend.described
  mkdir -p "$GPU_RESULTS"
  if [ ! -f "$file" ] || [ ! "$described" -nt $GPU_BUILD/librosin.so ]; then
    {
      echo "== $(date -u '+%F %H:%M') UTC, commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
      $GPU_BUILD/tools/gpu_check devices | grep "^$backend:"
    } >>"$file"
    touch "$described"
  fi
  echo "$file"
}

# One line per device.
gpu_sum() {
  local device step line
  for device in "${gpu_devices[@]}"; do
    line=$gpu_built
    for step in "${GPU_STEPS[@]}"; do
      [ -z "${gpu_verdicts[$device/$step]:-}" ] || line+=", $step ${gpu_verdicts[$device/$step]}"
    done
    echo "gpu-check: $device: ${line:2}"
  done
  exit $gpu_status
}

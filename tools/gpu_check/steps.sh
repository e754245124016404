# The steps of ./run gpu-check, which sources this file and brings configure, werror, jobs_that_fit and stop.
# A step is cut into units (a program on a device). A unit that went well since the last build is not run again, so a
# step that ran out of its time goes on when it is called once more. Installs nothing.
# Exit status: 0 all good, 1 something failed, 3 there is no device to check, 75 not done yet: call it again.
# Read next: main.cpp (the devices, the table of ops), ../../bench/devices.cpp.

GPU_STEPS=(build ops seeds train bench)
GPU_STEP_SECONDS=${GPU_STEP_SECONDS:-460}
GPU_BUILD=build/release
GPU_DONE=${GPU_DONE:-$PWD/$GPU_BUILD/gpu-check}    # what went well
GPU_RESULTS=${GPU_RESULTS:-bench/results}          # what was said, a file per back end and day
declare -A gpu_verdicts=()
gpu_devices=() gpu_built= gpu_status=0 gpu_began=0

# gpu_check [STEP...] [--device NAME]
gpu_check() {
  local steps=() wanted=
  while [ $# -gt 0 ]; do
    case "$1" in
      --device) [ $# -ge 2 ] || stop "--device needs a name such as CUDA or CUDA:1"; wanted=$2; shift ;;
      build | ops | seeds | train | bench) steps+=("$1") ;;
      *) stop "gpu-check takes ${GPU_STEPS[*]} and --device NAME; got $1" ;;
    esac
    shift
  done
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
  local targets=(rosin rosin_plugins rosin_examples bench_devices gpu_check) status=0
  timeout $GPU_STEP_SECONDS cmake --build $GPU_BUILD -j "$(jobs_that_fit)" --target "${targets[@]}" || status=$?
  [ $status -ne 124 ] || { echo "gpu-check: build: not done after $GPU_STEP_SECONDS s; call it again"; exit 75; }
  [ $status -eq 0 ] || stop "gpu-check: the build failed"
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

gpu_ops() {
  gpu_unit ops "$1" table gpu_timed $GPU_BUILD/tools/gpu_check ops "$1"
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

gpu_bench() {
  gpu_unit bench "$1" steps gpu_timed $GPU_BUILD/bench/bench_devices "$1"
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
  : "${gpu_verdicts[$device/$step]:=good}"
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
  file=$GPU_RESULTS/gpu-${backend,,}-$(date -u +%F).txt
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

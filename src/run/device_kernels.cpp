// See device_kernels.hpp.
#include "run/device_kernels.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "kernels/text.hpp"
#include "run/kernel_files.hpp"
#include "run/open_device.hpp"

namespace rosin {
namespace {

using kernels::KernelCode;
using kernels::KernelOperation;

// The C names of the same things: numbers agree, so a code is handed over field by field.
static_assert(static_cast<int>(DType::Bool) == ROSIN_BOOL && static_cast<int>(DType::Float16) == ROSIN_FLOAT16 &&
              static_cast<int>(DType::ComplexF64) == ROSIN_COMPLEX64);
static_assert(static_cast<int>(ScalarType::boolean) == ROSIN_SCALAR_BOOL &&
              static_cast<int>(ScalarType::float64) == ROSIN_SCALAR_FLOAT64);
static_assert(static_cast<int>(Primitive::select) == ROSIN_SELECT &&
              static_cast<int>(Primitive::convert) == ROSIN_CONVERT);
static_assert(static_cast<int>(KernelOperation::round) == ROSIN_ROUND &&
              static_cast<int>(KernelOperation::barrier) == ROSIN_BARRIER &&
              static_cast<int>(KernelOperation::end_if) == ROSIN_END_IF &&
              static_cast<int>(KernelOperation::tanh_approximate) == ROSIN_TANH_APPROXIMATE &&
              static_cast<int>(KernelOperation::shuffle) == ROSIN_SHUFFLE &&
              static_cast<int>(KernelOperation::multiply_matrices) == ROSIN_MULTIPLY_MATRICES &&
              static_cast<int>(KernelOperation::choose) == ROSIN_CHOOSE &&
              static_cast<int>(KernelOperation::arrive) == ROSIN_ARRIVE &&
              kernels::chosen_buffer == ROSIN_CHOSEN_BUFFER);

/// One code in C, and the lists that it points to.
struct CodeInC {
  std::vector<int32_t> buffers, parameters;
  std::vector<rosin_shared_array> shared;
  std::vector<rosin_instruction> instructions;

  rosin_kernel_code fill(const KernelCode& code) {
    for (const DType type : code.buffers) buffers.push_back(static_cast<int32_t>(type));
    for (const ScalarType type : code.parameters) parameters.push_back(static_cast<int32_t>(type));
    for (const kernels::SharedArray& array : code.shared) {
      shared.push_back({static_cast<int32_t>(array.type), array.count});
    }
    for (const kernels::KernelInstruction& i : code.instructions) {
      instructions.push_back(
          {i.operation, static_cast<uint16_t>(i.type), {i.operands[0], i.operands[1], i.operands[2]}, i.immediate});
    }
    rosin_kernel_code c{};
    c.size = sizeof c;
    c.name = code.name.c_str();
    c.group = code.group;
    c.buffer_count = static_cast<uint32_t>(buffers.size());
    c.buffers = buffers.data();
    c.parameter_count = static_cast<uint32_t>(parameters.size());
    c.parameters = parameters.data();
    c.shared_count = static_cast<uint32_t>(shared.size());
    c.shared = shared.data();
    c.instruction_count = static_cast<uint32_t>(instructions.size());
    c.instructions = instructions.data();
    return c;
  }
};

kernels::Language language_of(int32_t language) {
  switch (language) {
    case ROSIN_LANGUAGE_CUDA: return kernels::Language::cuda;
    case ROSIN_LANGUAGE_HIP: return kernels::Language::hip;
    case ROSIN_LANGUAGE_METAL: return kernels::Language::metal;
    default: return kernels::Language::opencl;
  }
}

bool uses_float64(const KernelCode& code) {
  const auto is_wide = [](const kernels::KernelInstruction& i) { return i.type == ScalarType::float64; };
  return std::any_of(code.instructions.begin(), code.instructions.end(), is_wide);
}

/// Of square matrices that warps multiply; none where a later plug-in names one that is not known here.
kernels::MatrixLayout layout_of(const rosin_device_info& info) {
  if ((info.instructions & ROSIN_TAKES_SQUARE_MATRICES) == 0) return kernels::MatrixLayout::none;
  const bool known =
      info.matrix_layout >= 0 && info.matrix_layout < static_cast<int>(std::size(kernels::square_layouts));
  return known ? static_cast<kernels::MatrixLayout>(info.matrix_layout) : kernels::MatrixLayout::none;
}

}  // namespace

kernels::Abilities abilities_of(const rosin_device_info& info) {
  const auto takes = [&](uint64_t what) { return (info.instructions & what) != 0; };
  kernels::Abilities device;
  device.vector_bytes = takes(ROSIN_TAKES_VECTORS) ? info.vector_bytes : 0;
  device.warp = takes(ROSIN_TAKES_SHUFFLE) ? info.warp : 0;
  device.read_only = takes(ROSIN_TAKES_READ_ONLY);
  device.argument_bytes = std::max(info.argument_bytes, device.argument_bytes);
  device.choices = takes(ROSIN_TAKES_CHOICES);
  device.arrivals = takes(ROSIN_TAKES_ARRIVALS);
  device.matrix_layout = layout_of(info);
  const bool multiplies = takes(ROSIN_TAKES_MATRICES) || device.matrix_layout != kernels::MatrixLayout::none;
  device.matrix_types = multiplies ? info.matrix_types : 0;
  device.shared_bytes = takes(ROSIN_TAKES_LARGE_SHARED) ? info.largest_shared : info.shared_bytes;
  return device;
}

const DeviceKernels::Entry* DeviceKernels::find(const KernelCode& code, uint64_t hash) const {
  const auto [first, last] = entries_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (at->second.code == code) return &at->second;
  }
  return nullptr;
}

std::vector<LoadedKernel> DeviceKernels::kernels_for(std::span<const kernels::Launch> launches) {
  std::lock_guard guard(lock_);
  std::vector<const kernels::Launch*> fresh;
  for (const kernels::Launch& launch : launches) {
    if (launch.call >= 0 || find(launch.code, launch.code.hash())) continue;
    const auto same = [&](const kernels::Launch* other) { return other->code == launch.code; };
    if (std::any_of(fresh.begin(), fresh.end(), same)) continue;
    check_types(launch);
    fresh.push_back(&launch);
    if (collecting_) note(launch);
  }
  if (!fresh.empty() && !collecting_) compile(fresh);
  std::vector<LoadedKernel> kernels;
  for (const kernels::Launch& launch : launches) {
    const Entry* entry = launch.call < 0 ? find(launch.code, launch.code.hash()) : nullptr;
    kernels.push_back(entry ? LoadedKernel{entry->kernel, entry->module.lock()} : LoadedKernel{});
  }
  return kernels;
}

bool DeviceKernels::has_many() {
  std::lock_guard guard(lock_);
  return entries_.size() > many_;
}

void DeviceKernels::unload_unused() {
  std::lock_guard guard(lock_);
  std::erase_if(modules_, [](const std::shared_ptr<rosin_module>& module) { return module.use_count() == 1; });
  std::erase_if(entries_, [](const auto& entry) { return entry.second.module.expired(); });
  many_ = std::max(many_, 2 * entries_.size());
}

void DeviceKernels::collect() {
  std::lock_guard guard(lock_);
  collecting_ = true;
}

void DeviceKernels::note(const kernels::Launch& launch) {
  const auto same = [&](const kernels::Launch& other) { return other.code == launch.code; };
  if (std::none_of(collected_.begin(), collected_.end(), same)) collected_.push_back(launch);
}

void DeviceKernels::compile_collected() {
  std::lock_guard guard(lock_);
  collecting_ = false;
  const std::vector<kernels::Launch> collected = std::move(collected_);
  collected_.clear();
  std::vector<const kernels::Launch*> fresh;
  for (const kernels::Launch& launch : collected) fresh.push_back(&launch);
  if (!fresh.empty()) compile(fresh);
}

void DeviceKernels::check_types(const kernels::Launch& launch) const {
  if (device_.info.float64 || !uses_float64(launch.code)) return;
  throw Error(ErrorKind::dtype, launch.what + ": " + device_.name +
                                    " has no Float64; cast to Float32, or move with the " +
                                    "default policy, which does so (x | device instead of device.with(keep))");
}

void DeviceKernels::compile(const std::vector<const kernels::Launch*>& fresh) {
  std::vector<CodeInC> lists(fresh.size());
  std::vector<rosin_kernel_code> codes;
  std::vector<KernelCode> originals;
  std::string ops;
  for (size_t i = 0; i < fresh.size(); ++i) {
    codes.push_back(lists[i].fill(fresh[i]->code));
    originals.push_back(fresh[i]->code);
    ops.append(i > 0 ? ", " : "").append(fresh[i]->what);
  }
  std::string text;
  if (device_.info.language != ROSIN_LANGUAGE_NONE)
    text = kernels::kernel_text(language_of(device_.info.language), originals, device_.info.shared_bytes);
  rosin_program program{};
  program.size = sizeof program;
  program.text = device_.info.language == ROSIN_LANGUAGE_NONE ? nullptr : text.c_str();
  program.kernel_count = static_cast<uint32_t>(codes.size());
  program.kernels = codes.data();
  const std::shared_ptr<rosin_module> module = load(program, ops);
  modules_.push_back(module);
  std::vector<rosin_kernel*> kernels(fresh.size());
  for (size_t i = 0; i < fresh.size(); ++i) {
    const rosin_status status = device_.functions.kernel(module.get(), codes[i].name, &kernels[i]);
    device_.check(status, fresh[i]->what);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    const uint64_t hash = originals[i].hash();
    entries_.emplace(hash, Entry{std::move(originals[i]), kernels[i], module});
  }
  counts_.kernels += static_cast<int64_t>(fresh.size());
}

std::string DeviceKernels::key_of(const char* text) const {
  std::string key("rosin " ROSIN_VERSION "\n");
  const rosin_backend& functions = device_.functions;
  const char* compiler = device_.info.driver;
  if (functions.compile_key && functions.compile_key(device_.device, &compiler) != ROSIN_OK) {
    compiler = device_.info.driver;
  }
  const char* target = device_.info.target;
  for (const char* part : {functions.name, functions.version, compiler, target}) {
    key.append(part ? part : "").append("\n");
  }
  return key.append(text);
}

rosin_module* DeviceKernels::load_from_disk(const std::string& key) {
  const auto found = find_kernel_file(key);
  if (!found) return nullptr;
  rosin_module* module = nullptr;
  const rosin_status status = device_.functions.load(device_.device, found->data(), found->size(), &module);
  if (status == ROSIN_DEVICE_FAULT) device_.fail(status, "load of kernels");
  if (status != ROSIN_OK) return nullptr;
  ++counts_.from_disk;
  return module;
}

std::shared_ptr<rosin_module> DeviceKernels::load(const rosin_program& program, const std::string& ops) {
  // Code without text costs nothing to compile: it is not kept on disk.
  const std::string key = program.text ? key_of(program.text) : std::string();
  if (program.text) {
    if (rosin_module* module = load_from_disk(key)) return {module, device_.functions.unload};
  }
  void* bytes = nullptr;
  uint64_t count = 0;
  const rosin_status status = device_.functions.compile(device_.device, device_.info.target, &program, &bytes, &count);
  if (status != ROSIN_OK) throw_not_compiled(program, ops);
  ++counts_.programs;
  rosin_module* module = nullptr;
  const rosin_status loaded = device_.functions.load(device_.device, bytes, count, &module);
  if (loaded == ROSIN_OK && program.text) store_kernel_file(key, bytes, count);
  device_.functions.free_bytes(bytes);
  device_.check(loaded, ops);
  return {module, device_.functions.unload};
}

void DeviceKernels::throw_not_compiled(const rosin_program& program, const std::string& ops) {
  const char* log = device_.functions.error_text();
  std::string text = ops + ": a kernel does not compile for " + device_.name + "; the compiler says:\n" +
                     (log && *log ? log : "(nothing)");
  if (program.text) {
    const std::string path = keep_failed_source(program.text);
    text += path.empty() ? "" : "\nthe source is kept in " + path;
  }
  throw Error(ErrorKind::backend, text + "\nreport it with the output of \"rosin devices\"");
}

DeviceKernels::Counts DeviceKernels::counts() {
  std::lock_guard guard(lock_);
  Counts counts = counts_;
  counts.loaded = static_cast<int64_t>(entries_.size());
  return counts;
}

}  // namespace rosin

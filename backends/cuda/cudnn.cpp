// See cudnn.hpp.
#include "cuda/cudnn.hpp"

#include <cmath>

#include "cuda/device_libraries.hpp"
#include "vendor/scratch.hpp"

namespace rosin::cuda {
namespace {

using driver::Address;
using driver::Failure;
using vendor::ScratchMemory;
using vendor::ScratchStream;

constexpr size_t most_kept = 256;

// The convolution that is tried: images of 5 x 6 in 8 channels.
constexpr int64_t batch = 2, channels = 8, rows = 5, columns = 6, window = 3, results = 16;

Tensor channels_first(int at, int64_t outer, int64_t inner, int64_t height, int64_t width) {
  return {{outer, inner, height, width}, {inner * height * width, 1, width * inner, inner}, at};
}

Convolution tried_convolution(bool with_epilogue) {
  Convolution made;
  made.deterministic = true;
  made.x = channels_first(0, batch, channels, rows, columns);
  made.w = channels_first(1, results, channels, window, window);
  made.y = channels_first(2, batch, results, rows, columns);
  made.stride = made.dilation = made.pad_low = made.pad_high = {1, 1};
  if (with_epilogue) {
    made.bias = {{1, results, 1, 1}, {results, 1, results, results}, 3};
    made.relu = true;
  }
  return made;
}

size_t at(const Tensor& tensor, int64_t n, int64_t c, int64_t h, int64_t w) {
  const std::vector<int64_t>& s = tensor.strides;
  return static_cast<size_t>(n * s[0] + c * s[1] + h * s[2] + w * s[3]);
}

/// One element of its result.
float tried_element(const Convolution& c, const std::vector<float>& x, const std::vector<float>& w, int64_t n,
                    int64_t k, int64_t row, int64_t column) {
  float sum = 0;
  for (int64_t i = 0; i < window * window; ++i) {
    const int64_t h = row + i / window - 1, v = column + i % window - 1;
    if (h < 0 || h >= rows || v < 0 || v >= columns) continue;
    for (int64_t l = 0; l < channels; ++l) sum += x[at(c.x, n, l, h, v)] * w[at(c.w, k, l, i / window, i % window)];
  }
  return sum;
}

std::vector<float> small_integers(size_t count, size_t period) {
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<float>(i % period) - static_cast<float>(period / 2);
  return all;
}

}  // namespace

const rosin_host* host_of_plans = nullptr;

Dnn::Dnn(const rosin_device& device) : reason_(dnn_library().reason()) {
  char name[256] = "";
  driver::the_driver().functions.device_name(name, sizeof name - 1, device.number);
  kept_for_ = device.target + " " + name;
  if (!reason_.empty()) return;
  try {
    dnn_library().check(dnn_library().functions().create(&handle_), "start");
    try_out();
  } catch (const Failure& failure) {
    reason_ = failure.text;
  }
}

Dnn::~Dnn() {
  found_.clear();
  if (handle_) dnn_library().functions().destroy(handle_);
}

std::shared_ptr<DnnWays> Dnn::ways_of(const std::string& key, const std::function<DnnGraph(const DnnTarget&)>& graph,
                                      uint64_t workspace) {
  const std::lock_guard guard(finding_);
  if (const auto known = found_.find(key); known != found_.end()) return known->second;
  const DnnTarget target{&dnn_library(), handle_, nullptr, host_of_plans, kept_for_};
  auto ways = std::make_shared<DnnWays>(target, graph(target), workspace);
  if (found_.size() >= most_kept) {
    std::erase_if(found_, [](const auto& one) { return one.second.use_count() == 1; });
  }
  return found_.emplace(key, std::move(ways)).first->second;
}

void Dnn::run(driver::Stream stream, const DnnWays& ways, size_t way, const Address* arrays, Address workspace) {
  const DnnLibrary& library = dnn_library();
  const DnnGraph& graph = ways.graph();
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, at] : graph.arrays) {
    ids.push_back(id);
    pointers.push_back(reinterpret_cast<void*>(arrays[at]));
  }
  for (const auto& [id, number] : graph.numbers) {
    ids.push_back(id);
    pointers.push_back(const_cast<float*>(&number));
  }
  const DnnDescriptor pack(library, dnn::Kind::variant_pack);
  pack.set(dnn::Attribute::pack_ids, dnn::ValueType::int64, ids);
  pack.set(dnn::Attribute::pack_pointers, dnn::ValueType::pointer, pointers);
  pack.set(dnn::Attribute::pack_workspace, dnn::ValueType::pointer, reinterpret_cast<void*>(workspace));
  pack.finish("arrays of a call");
  use(stream, graph.name.c_str(),
      [&](dnn::Handle handle) { return library.functions().execute(handle, ways.plan(way), pack.get()); });
}

void Dnn::check(int status, const char* what) {
  if (status == dnn::success) return;
  // Whether the device is lost is the driver's to say.
  size_t free = 0, total = 0;
  const driver::Driver& driver = driver::the_driver();
  driver.check(driver.functions.memory_info(&free, &total), what);
  dnn_library().check(status, what);
}

/// Of small integers; the bias is 1 everywhere.
std::vector<float> Dnn::tried_result(bool with_epilogue, const std::vector<float>& x, const std::vector<float>& w) {
  constexpr uint64_t most_room = uint64_t{16} << 20;
  const std::shared_ptr<DnnWays> ways = ways_of(tried_convolution(with_epilogue), most_room);
  const size_t way = ways->first();
  const std::vector<float> ones(results, 1.0f);
  std::vector<float> got(static_cast<size_t>(batch * results * rows * columns));
  const ScratchMemory there_x(x.size() * 4), there_w(w.size() * 4), there_y(got.size() * 4), bias(ones.size() * 4),
      room(std::max<uint64_t>(ways->workspace(way), 1));
  ScratchStream stream;
  stream.copy_in(there_x, x.data());
  stream.copy_in(there_w, w.data());
  stream.copy_in(bias, ones.data());
  const Address arrays[] = {there_x.address(), there_w.address(), there_y.address(), bias.address()};
  run(stream.stream(), *ways, way, arrays, ways->workspace(way) > 0 ? room.address() : 0);
  stream.copy_out(got.data(), there_y);
  stream.sync();
  return got;
}

/// A convolution of small integers must be exact; of one with NaN, relu must leave the NaN.
void Dnn::try_out() {
  const Convolution tried = tried_convolution(false);
  std::vector<float> x = small_integers(static_cast<size_t>(batch * channels * rows * columns), 7);
  const std::vector<float> w = small_integers(static_cast<size_t>(results * channels * window * window), 5);
  std::vector<float> wanted(static_cast<size_t>(batch * results * rows * columns));
  const auto compute = [&] {
    for (int64_t i = 0; i < static_cast<int64_t>(wanted.size()); ++i) {
      const int64_t k = i % results, column = i / results % columns, row = i / results / columns % rows;
      wanted[static_cast<size_t>(i)] = tried_element(tried, x, w, i / results / columns / rows, k, row, column);
    }
  };
  compute();
  if (tried_result(false, x, w) != wanted) {
    throw Failure{ROSIN_UNSUPPORTED, "cuDNN " + dnn_library().version() + " computes a small convolution wrongly"};
  }
  x[0] = NAN;
  compute();
  try {
    const std::vector<float> got = tried_result(true, x, w);
    takes_epilogues_ = true;
    for (size_t i = 0; i < got.size(); ++i) {
      const bool same = std::isnan(wanted[i]) ? std::isnan(got[i]) : got[i] == std::max(wanted[i] + 1, 0.0f);
      takes_epilogues_ = takes_epilogues_ && same;
    }
  } catch (const Failure& failure) {
    if (failure.status != ROSIN_UNSUPPORTED) throw;
  }
}

Dnn& dnn_of(rosin_device& device) { return DeviceLibraries::of<Dnn>(device); }

}  // namespace rosin::cuda

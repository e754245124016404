// The command `rosin ranks`: the processes that were started together exchange arrays, on the CPU and on a device of
// each, and rank 0 says what came of it.
#include <algorithm>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/distributed.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/move.hpp>
#include <rosin/stats.hpp>

#include "commands.hpp"
#include "survey.hpp"
#include "text.hpp"

namespace command {
namespace {

namespace distributed = rosin::distributed;
using rosin::Array;

constexpr int64_t elements = 1000;

/// Where arrays were, what became of them, and how they went.
struct Place {
  std::string device, trouble, way;
};

/// The device of each rank besides the CPU: of the back end that was named, else its GPU. The CPU where there is none.
rosin::Device device_of(const std::string& backend, int rank) {
  if (backend.empty()) {
    const std::vector<std::string> gpus = rosin::supported_gpu_backends();
    const auto works = [](const std::string& name) { return rosin::functional(name); };
    return std::any_of(gpus.begin(), gpus.end(), works) ? rosin::gpu_device() : rosin::Device();
  }
  const auto count = static_cast<int>(as_usage([&] { return rosin::devices(backend); }).size());
  if (count == 0) throw rosin::Error(rosin::ErrorKind::device, "ranks: " + rosin::why_not(backend));
  return rosin::get_device(backend, rank % count);
}

/// What is wrong with what came; empty: nothing. Every rank goes to the end, as the others wait for it.
std::string trouble_of(const distributed::Backend& ranks, const rosin::Device& device) {
  const int rank = distributed::local_rank(ranks), n = distributed::total_workers(ranks);
  const auto own = [&](rosin::DType type, double value) {
    return rosin::cast(rosin::full({elements}, value, rosin::Float32), type) | device.with(rosin::keep);
  };
  std::string trouble;
  const auto expect = [&](const Array& got, double value, const std::string& what) {
    const std::vector<double> all = got.to_vector<double>();
    if (!std::all_of(all.begin(), all.end(), [=](double each) { return each == value; })) trouble = what;
  };
  for (const rosin::DType type : {rosin::Int32, rosin::BFloat16, rosin::Float32}) {
    const int last = rank == n - 1;  // (of 16-bit floats few sums are exact)
    const bool is_half = type == rosin::BFloat16;
    expect(distributed::allreduce(ranks, own(type, is_half ? last : rank + 1), distributed::Reduction::sum),
           is_half ? 1 : n * (n + 1) / 2, std::string("sums of ") + to_string(type) + " are wrong");
  }
  for (int root = 0; root < n; ++root) {
    expect(distributed::bcast(ranks, own(rosin::Float32, rank), {.root = root}), root,
           "arrays of rank " + std::to_string(root) + " come out wrong");
  }
  return trouble;
}

/// Whether arrays of a device go through memory of the host.
std::string way_of(const distributed::Backend& ranks, const rosin::Device& device) {
  if (device.position() == 0) return "memory of the host";
  const Array x = rosin::full({elements}, 1.0f) | device;
  eval(x);
  const int64_t before = rosin::stats().from_devices;
  eval(distributed::allreduce(ranks, x, distributed::Reduction::sum));
  return rosin::stats().from_devices > before ? "over the host" : "from device to device";
}

Place tried(const distributed::Backend& ranks, const rosin::Device& device) {
  const std::string own = trouble_of(ranks, device);
  const Array fine = distributed::allreduce(ranks, Array(own.empty() ? 1 : 0), distributed::Reduction::sum);
  const int64_t wrong = distributed::total_workers(ranks) - fine.item<int64_t>();
  const std::string trouble =
      own.empty() && wrong > 0 ? count_text(static_cast<size_t>(wrong), "rank") + " got wrong elements" : own;
  return {name_of(device), trouble, way_of(ranks, device)};
}

distributed::Backend joined(bool over_nccl) {
  if (!over_nccl) {
    distributed::initialize();
    return distributed::get_distributed_backend();
  }
  distributed::initialize<distributed::NCCLBackend>();
  return distributed::get_distributed_backend<distributed::NCCLBackend>();
}

}  // namespace

Status try_ranks(const std::string& backend, bool over_nccl, const Style& style) {
  const distributed::Backend ranks = joined(over_nccl);
  const int rank = distributed::local_rank(ranks);
  std::vector<Place> places{tried(ranks, rosin::Device())};
  const rosin::Device device = device_of(backend, rank);
  if (device.position() != 0) places.push_back(tried(ranks, device));
  const bool ok = std::all_of(places.begin(), places.end(), [](const Place& place) { return place.trouble.empty(); });
  if (rank != 0) return ok ? all_fine : not_functional;
  const auto count = static_cast<size_t>(distributed::total_workers(ranks));
  Json rows = Json::array();
  if (!style.json) say(count_text(count, "rank") + " over " + std::string(ranks.name()));
  for (const Place& place : places) {
    rows.push_back({{"device", place.device}, {"trouble", place.trouble}, {"way", place.way}});
    const std::string result = place.trouble.empty() ? "OK, " + place.way : "FAILED, " + place.trouble;
    if (!style.json) say("  " + place.device, 14, result);
  }
  if (style.json) print_json({{"ok", ok}, {"ranks", count}, {"transport", ranks.name()}, {"devices", rows}});
  return ok ? all_fine : not_functional;
}

}  // namespace command

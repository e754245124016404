// See workloads.hpp.
#include "workloads.hpp"

#include <stdexcept>

namespace gpu_check {
namespace {

/// A number without pattern for each place (the last steps of MurmurHash3, which is in the public domain).
uint32_t mixed(uint32_t place, uint32_t array) {
  uint32_t x = place + array * 0x9E3779B9u;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

}  // namespace

Sizes::Sizes(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::invalid_argument("sizes are written as batch=128; got " + word);
    sizes_[word.substr(0, equals)] = std::stoll(word.substr(equals + 1));
  }
}

int64_t Sizes::operator[](const std::string& name) const {
  const auto found = sizes_.find(name);
  if (found == sizes_.end()) throw std::invalid_argument("the size " + name + " is missing");
  return found->second;
}

int64_t Sizes::get(const std::string& name, int64_t otherwise) const {
  const auto found = sizes_.find(name);
  return found == sizes_.end() ? otherwise : found->second;
}

rosin::Array Numbers::uniform(const rosin::Shape& shape, double scale) {
  std::vector<float> values(static_cast<size_t>(shape.count()));
  ++arrays_;
  for (size_t i = 0; i < values.size(); ++i) {
    const float unit = static_cast<float>(mixed(static_cast<uint32_t>(i), arrays_) >> 8) * 0x1p-24f;
    values[i] = (2 * unit - 1) * static_cast<float>(scale);
  }
  return {values, shape};
}

rosin::Array Numbers::whole(const rosin::Shape& shape, int64_t bound) {
  std::vector<int32_t> values(static_cast<size_t>(shape.count()));
  ++arrays_;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int32_t>(mixed(static_cast<uint32_t>(i), arrays_) % static_cast<uint32_t>(bound));
  }
  return {values, shape};
}

std::unique_ptr<Session> make_session(const std::string& kind, const Sizes& sizes, const rosin::Device& device) {
  if (auto session = make_training(kind, sizes, device)) return session;
  if (auto session = make_kernel(kind, sizes, device)) return session;
  throw std::invalid_argument("there is no workload of the kind " + kind);
}

}  // namespace gpu_check

// What a training program says of itself: a line for each step and, where a file is named, the same as a line of JSON.
#pragma once

#include <rosin/rosin.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

namespace models {

/// The words of a command line, KEY=VALUE each; what was not asked for is refused at the end.
class Words {
 public:
  Words(int count, char** words) {
    for (int i = 1; i < count; ++i) {
      const std::string word = words[i];
      const size_t place = word.find('=');
      if (place == std::string::npos) throw std::invalid_argument("KEY=VALUE is expected, got " + word);
      values_[word.substr(0, place)] = word.substr(place + 1);
    }
  }
  std::string text(const std::string& key, const std::string& otherwise = {}) {
    const auto found = values_.find(key);
    if (found == values_.end()) return otherwise;
    std::string value = found->second;
    values_.erase(found);
    return value;
  }
  double number(const std::string& key, double otherwise) {
    const std::string given = text(key);
    if (given.empty()) return otherwise;
    char* end = nullptr;
    const double value = std::strtod(given.c_str(), &end);
    if (*end != '\0') throw std::invalid_argument("no number: " + key + "=" + given);
    return value;
  }
  int64_t count(const std::string& key, int64_t otherwise) {
    return static_cast<int64_t>(number(key, static_cast<double>(otherwise)));
  }
  /// bf16, f16 or f32: what the products are computed in.
  rosin::DType type() {
    const std::string given = text("type", "bf16");
    if (given == "f32") return rosin::Float32;
    if (given == "f16") return rosin::Float16;
    if (given == "bf16") return rosin::BFloat16;
    throw std::invalid_argument("type is bf16, f16 or f32, got " + given);
  }
  rosin::Device device() {
    const std::string given = text("device");
    return given.empty() ? rosin::get_device() : rosin::get_device(given);
  }
  void finish() const {
    if (!values_.empty()) throw std::invalid_argument("no such option: " + values_.begin()->first);
  }

 private:
  std::map<std::string, std::string> values_;
};

/// The scope that a type of the command line means.
inline rosin::Autocast scope_of(rosin::DType type) {
  return type == rosin::Float32 ? rosin::autocast(rosin::nothing) : rosin::autocast(type);
}

/// A state whose losses are scaled where the products are of Float16.
template <rosin::Rule R, class M> rosin::State state_for(rosin::DType type, const R& rule, const M& model) {
  return type == rosin::Float16 ? rosin::setup(rosin::LossScale{rule}, model) : rosin::setup(rule, model);
}

/// Times and counts steps. MFU is the share of `peak` (FLOP/s) that the arithmetic of the model takes, without what is
/// computed again; 0: unknown. Reading the loss waits for the step.
class Measure {
 public:
  struct Work {
    const char* unit;  // of what a step takes `items`: images, tokens
    double items;
    double flops;  // of a step, forward and back
    double peak;
  };

  Measure(const Work& work, const std::string& file) : work_(work), before_(rosin::stats()), start_(now()) {
    if (!file.empty() && !(file_ = std::fopen(file.c_str(), "w"))) throw std::runtime_error("cannot write " + file);
  }
  Measure(const Measure&) = delete;
  Measure& operator=(const Measure&) = delete;
  ~Measure() {
    if (file_) std::fclose(file_);
  }

  void step(int64_t number, const rosin::Array& loss, double rate) {
    const double value = loss.item(), end = now(), seconds = end - start_;
    const rosin::Stats stats = rosin::stats();
    const double gigabytes =
        1e-9 * static_cast<double>(stats.read_bytes - before_.read_bytes + stats.written_bytes - before_.written_bytes);
    const int64_t launches = stats.launches > before_.launches
                                 ? stats.launches - before_.launches
                                 : stats.kernels - before_.kernels + stats.calls - before_.calls;
    const double speed = work_.items / seconds, mfu = work_.peak > 0 ? work_.flops / seconds / work_.peak : 0;
    std::printf("step %lld: loss %.4f, rate %.2e, %.1f ms, %.4g %s/s, MFU %.1f %%, %.3f GB moved, %lld launches\n",
                static_cast<long long>(number), value, rate, 1e3 * seconds, speed, work_.unit, 100 * mfu, gigabytes,
                static_cast<long long>(launches));
    if (file_) {
      std::fprintf(file_,
                   "{\"step\": %lld, \"loss\": %.9g, \"rate\": %.9g, \"seconds\": %.6g, \"%s_per_second\": %.6g, "
                   "\"mfu\": %.6g, \"bytes\": %.0f, \"launches\": %lld}\n",
                   static_cast<long long>(number), value, rate, seconds, work_.unit, speed, mfu, 1e9 * gigabytes,
                   static_cast<long long>(launches));
    }
    before_ = rosin::stats();
    start_ = now();
  }

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  Work work_;
  rosin::Stats before_;
  double start_;
  std::FILE* file_ = nullptr;
};

/// main of a training program: a wrong word or file is one line on stderr and exit status 2.
inline int run(const char* name, void (*train)(Words&), int count, char** words) {
  try {
    Words given(count, words);
    train(given);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  }
}

}  // namespace models

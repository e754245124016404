// Training on a pretended device while one call of its driver fails; see ../cuda_faults_test.py and
// ../metal_faults_test.py, which start this once for each fault and compare what is printed. Each phase that throws is
// tried once more.
//   fault_steps BACKEND LIBRARY COUNTS            trains; exit status 1 where a rule is broken. COUNTS: the function of
//                                                 the pretended LIBRARY that tells how often each call was made
//   fault_steps BACKEND LIBRARY COUNTS convnet    trains a model with convolutions
//   fault_steps BACKEND LIBRARY COUNTS attention  trains a model with attention, and evaluates it
#include <rosin/rosin.hpp>

#include <dlfcn.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

namespace {

using namespace rosin;

using Values = std::vector<float>;

struct Network {
  Embedding words{7, 6};
  Dense hidden{6, 8, relu};
  Dense out{8, 3};
  Array operator()(const Array& x) const { return out(hidden(words(x))); }

  std::vector<const Array*> weights() const {
    return {&words.weight, &hidden.weight, &hidden.bias, &out.weight, &out.bias};
  }
  static Array input(int step) { return Array({step % 7, 3, (step + 2) % 7, 6}, {4}); }
};

/// A small LeNet.
struct Convnet {
  Conv first{{3, 3}, 1, 2, relu, {.pad = 1}};
  Conv second{{2, 2}, 2, 3, relu};
  Dense out{12, 3};
  Array operator()(const Array& x) const { return out(flatten(second(maxpool(first(x), 2)))); }

  std::vector<const Array*> weights() const {
    return {&first.weight, &first.bias, &second.weight, &second.bias, &out.weight, &out.bias};
  }
  static Array input(int step) {
    std::vector<float> pixels;
    for (int i = 0; i < 144; ++i) pixels.push_back(static_cast<float>((i * 7 + step * 3) % 11) / 5 - 1);
    return Array(pixels, {6, 6, 1, 4});
  }
};

/// Attention, and what its last place says.
struct Attending {
  static constexpr bool is_evaluated = true;
  MultiHeadAttention attention{8, {.nheads = 2}};
  Dense out{8, 3};
  Array operator()(const Array& x) const { return out(select(attention(x, {.causal = true}), 1, -1)); }

  std::vector<const Array*> weights() const {
    return {&attention.q_proj.weight,
            &attention.k_proj.weight,
            &attention.v_proj.weight,
            &attention.out_proj.weight,
            &out.weight,
            &out.bias};
  }
  static Array input(int step) {
    std::vector<float> all;
    for (int i = 0; i < 160; ++i) all.push_back(static_cast<float>((i * 7 + step * 3) % 11) / 5 - 1);
    return Array(all, {8, 5, 4});
  }
};

bool broken = false, lost = false;

void expect(bool holds, const std::string& rule) {
  if (holds) return;
  broken = true;
  std::printf("BROKEN: %s\n", rule.c_str());
}

bool says_lost(const std::string& text) { return text.find("this one needs a new process") != std::string::npos; }

/// What holds where the second attempt fails as well.
enum Second { must_work, may_fail };

/// Runs it, once more where it throws. False: that failed too, or the device is lost.
bool attempt(
    const char* phase, const std::function<void()>& run, Second second = must_work,
    const std::function<void()>& after_failure = [] {}) {
  for (int left = 2; left > 0; --left) {
    try {
      run();
      return true;
    } catch (const Error& error) {
      std::printf("error in %s: %s: %s\n", phase, to_string(error.kind()), error.what());
      lost = lost || says_lost(error.what());
      if (lost) return false;
      if (left == 2) after_failure();
    } catch (const std::exception& error) {
      expect(false, std::string(phase) + " threw what is no Error: " + error.what());
      return false;
    }
  }
  expect(second == may_fail, std::string(phase) + " failed twice");
  return false;
}

Values read(const Array& x) { return x.to_vector<float>(); }

template <class Model> Values weights_of(const Model& m) {
  Values all;
  for (const Array* w : m.weights()) {
    const Values part = read(*w);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

uint64_t hash_of(const Values& values) {
  uint64_t hash = 14695981039346656037u;
  for (const float value : values) hash = (hash ^ std::bit_cast<uint32_t>(value)) * 1099511628211u;
  return hash;
}

/// Five steps: the third one makes a graph. What they lead to is printed.
template <class Model> void train(const Device& device) {
  seed(3);
  std::optional<Model> model;
  State state;
  const Model made;
  if (!attempt("move", [&] { model = made | device; })) return;
  if (!attempt("setup", [&] { state = setup(Adam{.eta = 0.05}, *model); })) return;
  Values before = weights_of(made);
  for (int i = 0; i < 5; ++i) {
    Array x = Model::input(i), y = onehotbatch(Array({0, 1, 2, i % 3}, {4}), 3), loss;
    const auto move = [&] { x = x | device, y = y | device; };
    if (!attempt("move of a batch", move)) return;
    const auto step = [&] {
      auto [l, g] = withgradient([&](const Model& m) { return logitcrossentropy(m(x), y); }, *model);
      update(state, *model, g);
      loss = l;
    };
    const auto unchanged = [&] {
      attempt("read after a failure", [&] { expect(weights_of(*model) == before, "a failed step changed the model"); });
    };
    if (!attempt("step", step, must_work, unchanged)) return;
    if (!attempt("read of the loss", [&] { std::printf("loss %a\n", static_cast<double>(loss.item())); })) return;
    if (!attempt("read of the weights", [&] { before = weights_of(*model); })) return;
    if constexpr (requires { Model::is_evaluated; }) {
      const auto evaluate = [&] {
        const Array at = logitcrossentropy((*model)(x), y);
        std::printf("loss %a\n", static_cast<double>(at.item()));
      };
      if (!attempt("evaluation", evaluate)) return;
    }
  }
  std::printf("weights %016llx\n", static_cast<unsigned long long>(hash_of(before)));
}

/// A device that is lost says so at each use, and nothing else is lost with it.
void use_lost(const std::string& backend, const Device& device) {
  for (int i = 0; i < 2; ++i) {
    try {
      (ones({3}) | device).to_vector<float>();
      expect(false, "a lost device worked on");
    } catch (const Error& error) {
      expect(says_lost(error.what()), std::string("a lost device does not say so: ") + error.what());
    }
  }
  expect(read(ones({2}) * 2) == Values{2, 2}, "the CPU computes");
  if (devices(backend).size() < 2) return;
  expect(read((ones({2}) | get_device(backend, 1)) * 2) == Values{2, 2}, "the other device computes");
}

void say_counts(const char* library, const char* function) {
  void* fake = dlopen(library, RTLD_NOW);
  const auto counts = fake ? reinterpret_cast<const char* (*)()>(dlsym(fake, function)) : nullptr;
  if (counts) std::printf("counts\n%s", counts());
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) return 2;
  const std::string backend = words[1];
  std::optional<Device> device;
  const auto open = [&] {
    if (!functional(backend)) throw Error(ErrorKind::device, why_not(backend));
    device = get_device(backend, 0);
    (ones({1}) | *device).to_vector<float>();
  };
  const bool opened = attempt("open", open, may_fail);
  const std::string model = count > 4 ? words[4] : "";
  if (opened && model == "convnet") train<Convnet>(*device);
  else if (opened && model == "attention") train<Attending>(*device);
  else if (opened) train<Network>(*device);
  else std::printf("%s\n", lost ? "lost" : "no device");
  if (lost) use_lost(backend, *device);
  if (opened && !lost) attempt("trim", [&] { trim(), trim(*device); });
  say_counts(words[2], words[3]);
  return broken ? 1 : 0;
}
